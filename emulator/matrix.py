"""One experiment file as all its runs: the combinations of a matrix, times the repeats."""
from __future__ import annotations

import itertools
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from emulator.errors import BadInput, nearest
from emulator.experiment import MAX_RUNS, Experiment, make, option_names

SEED = "seed"


@dataclass(frozen=True)
class Run:
    """One run of an experiment.

    varied: option -> its value here as a person reads it, of each option that differs between the runs, the
    seed included; two values of one option never read alike. reference: it is there only for others to be
    measured against. label: all of this in words, empty for a single run.
    """

    experiment: Experiment
    varied: Mapping[str, str]
    reference: bool = False

    @property
    def label(self) -> str:
        return label_of(self.varied, self.reference)


def label_of(varied: Mapping[str, str], reference: bool) -> str:
    """'routing=ecmp seed=3', with the word 'reference' before it for a run that is one."""
    return " ".join([*(["reference"] if reference else []), *(f"{k}={v}" for k, v in varied.items())])


def expand(values: dict[str, Any], where: str = "the options") -> list[Run]:
    """All runs of an experiment: the matrix times the repeats; BadInput with one sentence for a slip."""
    values = dict(values)
    matrix = values.pop("matrix", {}) or {}
    for key in ("reference", "table"):  # `crosstable.py` reads them
        values.pop(key, None)
    for key, listed in matrix.items():
        if key in ("repeat", "pcap", "events", "jobs") or key not in option_names():
            raise BadInput(f'{where}: matrix cannot vary "{key}"{nearest(key, option_names())}.')
        if not listed:
            raise BadInput(f"{where}: matrix: {key} lists no values.")
        twice = [value for number, value in enumerate(listed) if value in listed[:number]]
        if twice:
            raise BadInput(f"{where}: matrix: {key} lists {twice[0]} twice.")
    repeat = make(values, where).repeat
    count = repeat * math.prod(len(listed) for listed in matrix.values())
    if count > MAX_RUNS:
        raise BadInput(f"{where}: {count} runs are more than {MAX_RUNS}; shorten matrix or repeat.")
    if repeat > 1 and SEED in matrix:
        raise BadInput(f"{where}: repeat runs the seeds that follow, and the matrix has seeds of its own; "
                       "leave one of them out.")
    return list(_combinations(values, matrix, where))


def _combinations(values: dict[str, Any], matrix: dict[str, list[Any]], where: str) -> Iterator[Run]:
    shown = {key: names(listed) for key, listed in matrix.items()}
    for places in itertools.product(*(range(len(listed)) for listed in matrix.values())):
        chosen = dict(zip(matrix, places))
        base = make({**values, **{key: matrix[key][place] for key, place in chosen.items()}}, where)
        if base.seed + base.repeat > 2**32:
            raise BadInput(f"{where}: seed={base.seed} leaves no room for {base.repeat} seeds below 2^32.")
        varied = {key: shown[key][place] for key, place in chosen.items()}
        for seed in range(base.seed, base.seed + base.repeat):
            yield Run(base.model_copy(update={SEED: seed, "repeat": 1}),
                      {**varied, SEED: str(seed)} if base.repeat > 1 else varied)


def names(listed: Sequence[Any]) -> list[str]:
    """The values of an option as a person reads them, no two alike: programs of one name with their folders,
    and where that does not help, all but the first are numbered ('gradients+storage #2').
    """
    found: list[str] = []
    short = [_shown(value) for value in listed]
    for value, plain in zip(listed, short):
        if isinstance(value, tuple) and short.count(plain) > 1:
            plain = " ".join(value)
        name, number = plain, 1
        while name in found:
            number += 1
            name = f"{plain} #{number}"
        found.append(name)
    return found


def _shown(value: Any) -> str:
    """Of a table its names, of a program its words with the names of files alone, of all else itself."""
    if isinstance(value, tuple):
        return " ".join(os.path.basename(word) if os.path.isfile(word) else word for word in value)
    return "off" if value is False else "+".join(map(str, value)) if isinstance(value, dict) else str(value)
