"""log.txt: when each stage began and what it took, how the run ended, its processes' logs. Pure."""
from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from emulator.units import show_time

MOST_CHARACTERS = 20_000
"""Of one process's log; the end is kept."""


@dataclass(frozen=True)
class Stage:
    """A stage of a run: its name, when it began (seconds since the epoch), what it took; None if it was
    broken off.
    """

    name: str
    began_s: float
    took_s: float | None


def compose(stages: Sequence[Stage], ended: str, logs: Mapping[str, str]) -> str:
    """The text of log.txt. `ended` is a sentence, empty for a run that came to its end; `logs` are texts by
    whose they are.
    """
    parts = ["stages of the run", *(_line(stage) for stage in stages), ended or "The run came to its end."]
    for whose, text in logs.items():
        kept = text[-MOST_CHARACTERS:].strip()
        parts += ["", f"log of {whose}", kept or "(nothing)"]
    return "\n".join(parts) + "\n"


def _line(stage: Stage) -> str:
    clock = time.strftime("%H:%M:%S", time.localtime(stage.began_s)) + f"{stage.began_s % 1:.3f}"[1:]
    took = "broken off" if stage.took_s is None else show_time(stage.took_s)
    return f"{clock} {stage.name} ({took})"
