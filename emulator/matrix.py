"""One experiment file as all its runs: the combinations of a matrix, times the repeats."""
from __future__ import annotations

import itertools
import math
import os
from collections.abc import Iterator
from typing import Any

from emulator.errors import BadInput, nearest
from emulator.experiment import MAX_RUNS, Experiment, make, option_names


def expand(values: dict[str, Any], where: str = "the options") -> list[tuple[str, Experiment]]:
    """All runs of an experiment as (label, Experiment): the matrix times the repeats.

    A label names what differs ('routing=ecmp seed=3'); it is empty for a single run.
    """
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
    if repeat > 1 and "seed" in matrix:
        raise BadInput(f"{where}: repeat runs the seeds that follow, and the matrix has seeds of its own; "
                       "leave one of them out.")
    return list(_combinations(values, matrix, where))


def _combinations(values: dict[str, Any], matrix: dict[str, list[Any]], where: str
                  ) -> Iterator[tuple[str, Experiment]]:
    for chosen in itertools.product(*matrix.values()):
        varied = dict(zip(matrix, chosen))
        base = make({**values, **varied}, where)
        if base.seed + base.repeat > 2**32:
            raise BadInput(f"{where}: seed={base.seed} leaves no room for {base.repeat} seeds below 2^32.")
        for number in range(base.repeat):
            label = [f"{key}={_shown(value)}" for key, value in varied.items()]
            if base.repeat > 1:
                label.append(f"seed={base.seed + number}")
            yield " ".join(label), base.model_copy(update={"seed": base.seed + number, "repeat": 1})


def _shown(value: Any) -> Any:
    """A value in a label: of a table its names, of a program its words with the names of files alone."""
    if isinstance(value, tuple):
        return " ".join(os.path.basename(word) if os.path.isfile(word) else word for word in value)
    return "off" if value is False else "+".join(value) if isinstance(value, dict) else value
