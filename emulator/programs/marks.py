"""Marks: how a program may say that a step begins, so that start-up is not measured and steps are timed.

A rank writes a line into the file that FABRIC_MARKS names at the beginning of its measured part and after
each step. The file is a FIFO which is read at once, so a mark costs a system call and no packet.
"""
from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from traffic.records import Iteration

_ONE_READ = 1 << 16


class Marks:
    """A FIFO for each rank below `directory`, which is made."""

    def __init__(self, directory: Path, ranks: int) -> None:
        self._directory = directory
        directory.mkdir(parents=True)
        directory.chmod(0o755)
        self._files: dict[int, int] = {}
        self.times_s: dict[int, list[float]] = {rank: [] for rank in range(ranks)}
        for rank in range(ranks):
            os.mkfifo(self.path(rank))
            os.chmod(self.path(rank), 0o666)
            # for reading and writing: a writer never waits for us and we never see an end
            self._files[os.open(self.path(rank), os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)] = rank

    def path(self, rank: int) -> Path:
        """What FABRIC_MARKS says to a rank."""
        return self._directory / f"rank{rank}"

    @property
    def descriptors(self) -> list[int]:
        """To wait on."""
        return list(self._files)

    def read(self, descriptor: int) -> None:
        """Note the time of each line that has come."""
        now_s = time.monotonic()
        try:
            lines = os.read(descriptor, _ONE_READ).count(b"\n")
        except BlockingIOError:
            return
        self.times_s[self._files[descriptor]] += [now_s] * lines

    def close(self) -> None:
        for descriptor in self._files:
            os.close(descriptor)
        self._files = {}


def boundaries(times_s: Mapping[int, Sequence[float]]) -> list[float]:
    """When the last of the ranks that mark had made its k-th mark, for each mark that all of them made.

    Marks that came together are one, since no step takes no time. Several that all came together say nothing
    of when their program made them, and so are none.
    """
    made = _made(times_s)
    at = list(dict.fromkeys(made))
    return at if len(at) > 1 or len(made) == 1 else []


def iterations(times_s: Mapping[int, Sequence[float]], start_s: float, end_s: float) -> list[Iteration]:
    """The steps between marks; up to end_s after the only mark; all of the run where nobody marks."""
    at = boundaries(times_s) or [start_s]
    if len(at) == 1:
        at = [*at, end_s]
    return [Iteration(index, True, begin_s, after_s)
            for index, (begin_s, after_s) in enumerate(zip(at, at[1:]))]


def notes(times_s: Mapping[int, Sequence[float]]) -> list[str]:
    """A sentence where marks came together."""
    at = Counter(_made(times_s))
    made, alike = sum(at.values()), sum(count for count in at.values() if count > 1)
    if not alike:
        return []
    left = ("so all of the run is measured, as one iteration" if len(at) == 1 else
            f"so {len(at) - 1} of {made - 1} steps are timed")
    return [f"{alike} of {made} marks came together, as from a program that keeps lines in a buffer, {left}; flush "
            "FABRIC_MARKS after each line (in Python: open it with buffering=1)."]


def _made(times_s: Mapping[int, Sequence[float]]) -> list[float]:
    return [max(kth) for kth in zip(*(marks for marks in times_s.values() if marks))]
