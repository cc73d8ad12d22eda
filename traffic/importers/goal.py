"""GOAL schedules (Hoefler, Siebert, Lumsdaine, ICPP 2009; LogGOPSim's text form) as traces.

    num_ranks 2
    rank 0 {
    l1: calc 100
    l2: send 10b to 1 tag 7
    l2 requires l1
    }
    rank 1 {
    l1: recv 10b from 0 tag 7
    }

`a requires b`: a starts when b has ended; `a irequires b`: when b has started. calc is in nanoseconds.
"""
from __future__ import annotations

import re
from dataclasses import replace

from emulator.errors import BadInput, nearest
from traffic.importers.text import Word, read_lines, shown, slip, whole_number, words_of
from traffic.trace import MOST_RANKS, MOST_STEPS, Does, Step, Trace

OPERATIONS = ("send", "recv", "calc")
REQUIRES = ("requires", "irequires")
_Needs = tuple[int, str, str, str]
"""(line, label, 'requires' or 'irequires', label)"""


def read_goal(path: str) -> Trace:
    """The trace of a GOAL file; every slip is a BadInput with file, line and column."""
    reader = _Reader(path)
    for number, line in enumerate(_without_comments(read_lines(path, "a GOAL schedule")), 1):
        words = words_of(re.sub(r"([{}])", r" \1 ", line) if "{" in line or "}" in line else line)
        if words:
            reader.take(number, words)
    return reader.trace()


def _without_comments(lines: list[str]) -> list[str]:
    """Block comments and what follows // or # blanked out, so that lines and columns stay."""
    text = re.sub(r"/\*.*?\*/", lambda match: re.sub(r"[^\n]", " ", match[0]), "\n".join(lines),
                  flags=re.DOTALL)
    return [re.split(r"//|#", line, maxsplit=1)[0] for line in text.split("\n")]


class _Reader:
    """The file so far: the ranks that are done and the one that is open."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.count: int | None = None
        self.done: dict[int, tuple[Step, ...]] = {}
        self.rank: int | None = None
        self.total = self.empty = self.calcs = 0
        self._open()

    def _open(self) -> None:
        self.steps: list[Step] = []
        self.labels: dict[str, int] = {}
        self.needs: list[_Needs] = []

    def take(self, line: int, words: list[Word]) -> None:
        """One line of the file."""
        if words[0] == "num_ranks":
            if self.count is not None or len(words) != 2:
                raise slip(self.path, line, "num_ranks N stands once, at the beginning.", words[0])
            self.count = whole_number(self.path, line, "num_ranks", words[1], 1, MOST_RANKS)
        elif self.count is None:
            raise slip(self.path, line, f'"{shown(words[0])}" comes before num_ranks.', words[0])
        elif words[0] == "rank":
            self._begin(line, words)
        elif self.rank is None:
            raise slip(self.path, line, f'"{shown(words[0])}" stands outside of all ranks.', words[0])
        elif words == ["}"]:
            self.done[self.rank] = self._resolved()
            self.rank = None
            self._open()
        elif len(words) == 3 and words[1] in REQUIRES:
            self.needs.append((line, *words))
        else:
            self._operation(line, words)

    def _begin(self, line: int, words: list[Word]) -> None:
        if self.rank is not None:
            raise slip(self.path, line, f"rank {self.rank} has no closing }} before this.", words[0])
        if len(words) != 3 or words[2] != "{":
            raise slip(self.path, line, 'expected "rank N {".', words[0])
        rank = whole_number(self.path, line, "rank", words[1], 0, self.count - 1)
        if rank in self.done:
            raise slip(self.path, line, f"rank {rank} comes twice.", words[1])
        self.rank = rank

    def _operation(self, line: int, words: list[Word]) -> None:
        if words[0].endswith(":"):
            label = words[0][:-1]
            if not label or label in self.labels:
                raise slip(self.path, line, f'the label "{shown(label)}" is empty or used twice.', words[0])
            self.labels[label] = len(self.steps)
            words = words[1:]
        if not words or words[0] not in OPERATIONS:
            word = words[0] if words else ""
            raise slip(self.path, line, f'"{shown(word)}" is no operation'
                                        f'{nearest(word, (*OPERATIONS, *REQUIRES))}.', word)
        self.total += 1
        if self.total > MOST_STEPS:
            raise slip(self.path, line, f"more than {MOST_STEPS} operations.", words[0])
        self.steps.append(self._calc(line, words) if words[0] == "calc" else self._message(line, words))

    def _calc(self, line: int, words: list[Word]) -> Step:
        if len(words) < 2:
            raise slip(self.path, line, "calc has no number of nanoseconds.", words[0])
        duration_ns = whole_number(self.path, line, "calc", words[1], 0, 10**15)
        self._options(line, words[2:])
        self.calcs += bool(duration_ns)
        return Step(Does.COMPUTE, line, duration_s=duration_ns * 1e-9, phase="calc")

    def _message(self, line: int, words: list[Word]) -> Step:
        does = Does.SEND if words[0] == "send" else Does.RECV
        link = "to" if does is Does.SEND else "from"
        if len(words) < 4 or words[2] != link or not words[1].endswith("b"):
            raise slip(self.path, line, f'expected "{words[0]} SIZEb {link} RANK".', words[0])
        size_bytes = whole_number(self.path, line, "size", Word(words[1][:-1], words[1].column))
        peer = whole_number(self.path, line, "rank", words[3], 0, self.count - 1)
        if peer == self.rank:
            raise slip(self.path, line, f"rank {peer} names itself as its peer.", words[3])
        tag = self._options(line, words[4:])
        if not size_bytes:
            self.empty += 1
        return Step(does, line, peer=peer, size_bytes=max(1, size_bytes), tag=tag, phase="message")

    def _options(self, line: int, words: list[Word]) -> int:
        """The tag among 'tag T cpu C nic N'."""
        given: dict[str, int] = {}
        for key, value in zip(words[::2], [*words[1::2], ""]):
            if key not in ("tag", "cpu", "nic") or key in given:
                raise slip(self.path, line, f'"{shown(key)}" is none of tag, cpu and nic, or comes '
                                            'twice.', key)
            given[key] = whole_number(self.path, line, key, value, 0, 2**32 - 1)
        return given.get("tag", 0)

    def _resolved(self) -> tuple[Step, ...]:
        """The steps of the open rank with their dependencies."""
        ends: list[list[int]] = [[] for _ in self.steps]
        starts: list[list[int]] = [[] for _ in self.steps]
        for line, label, how, needed in self.needs:
            for word in (label, needed):
                if word not in self.labels:
                    raise slip(self.path, line, f'there is no label "{shown(word)}" in rank '
                                                f'{self.rank}.', word)
            waits = ends if how == "requires" else starts
            waits[self.labels[label]].append(self.labels[needed])
        deps = [(*ends[i], *_when_started(starts[i], ends, starts)) for i in range(len(self.steps))]
        return tuple(replace(step, deps=tuple(dict.fromkeys(its))) for step, its in zip(self.steps, deps))

    def trace(self) -> Trace:
        if self.count is None:
            raise BadInput(f"{self.path} has no num_ranks.")
        if self.rank is not None:
            raise BadInput(f"{self.path}: rank {self.rank} has no closing }}.")
        missing = next((rank for rank in range(self.count) if rank not in self.done), None)
        if missing is not None:
            raise BadInput(f"{self.path}: num_ranks says {self.count}, but there is no rank {missing}.")
        notes = []
        if self.empty:
            notes.append(f"{self.path}: {self.empty} sends and receives of 0 bytes carry 1 byte.")
        if self.calcs:
            notes.append(f"{self.path}: operations wait for what they require only; cpu and nic are left "
                         "out, so "
                         "that calcs of a rank that do not require each other run at the same time.")
        return Trace(self.path, tuple(self.done[rank] for rank in range(self.count)), tuple(notes))


def _when_started(begun: list[int], ends: list[list[int]], starts: list[list[int]]) -> list[int]:
    """What must have ended for all of `begun` to have started."""
    found, todo, seen = [], list(begun), set(begun)
    for step in todo:  # grows while it is walked
        found += ends[step]
        for other in starts[step]:
            if other not in seen:
                seen.add(other)
                todo.append(other)
    return found
