"""What an imported trace says before collectives become messages: per rank a list of steps.

Simulators and profilers write down collectives over groups of ranks, not messages. An importer turns
its file into a Trace; `expand` turns a Trace into a Schedule. Times and sizes are still the target's.
"""
from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, replace

from emulator.errors import BadInput

MOST_RANKS = 4096
MOST_STEPS = 1_000_000


class Does(enum.Enum):
    COMPUTE = "compute"
    SEND = "send"
    RECV = "recv"
    COLLECTIVE = "collective"


@dataclass(frozen=True, slots=True)
class Step:
    """One thing a rank does. `deps` are indices into the same rank's list; all must have finished.

    where: the line, or the id of the node, that it comes from. peer, size_bytes, tag: of a message.
    collective: a key of `traffic.collective_specs.ALGORITHMS`, or 'barrier'; `size_bytes` is then S as
    nccl-tests counts it (all-gather, reduce-scatter, all-to-all: the whole buffer of a rank) and
    `group` are the ranks that take part. root: of a broadcast or reduce, -1 for the group's first.
    duration_s: of a compute. phase, traffic_class: as in `traffic.schedule.Op`.
    """

    does: Does
    where: int
    deps: tuple[int, ...] = ()
    peer: int = -1
    size_bytes: int = 0
    tag: int = 0
    collective: str = ""
    group: tuple[int, ...] = ()
    root: int = -1
    duration_s: float = 0.0
    phase: str = ""
    traffic_class: str = ""


@dataclass(frozen=True)
class Trace:
    """A whole trace. `path` is what the user named; `files` holds a file for each rank where there are
    several. `unit` says what `Step.where` counts. The first `block` ranks belong together, as do the
    next (a tensor-parallel group): `map=first` does not part them. `notes` go to the user.
    """

    path: str
    ranks: tuple[tuple[Step, ...], ...]
    notes: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    unit: str = "line"
    block: int = 1

    def slip(self, rank: int, step: Step, sentence: str) -> BadInput:
        """A BadInput that points at a step."""
        file = self.files[rank] if self.files else self.path
        if self.unit == "line":
            return BadInput(f"{file}:{step.where}: {sentence}")
        return BadInput(f"{file}: {self.unit} {step.where}: {sentence}")

    @property
    def message_bytes(self) -> int:
        """Bytes of all sends in the file."""
        return sum(step.size_bytes for steps in self.ranks for step in steps if step.does is Does.SEND)

    @property
    def collective_bytes(self) -> int:
        """S of every collective, each counted once (at the first of its group)."""
        return sum(step.size_bytes for rank, steps in enumerate(self.ranks) for step in steps
                   if step.does is Does.COLLECTIVE and step.group and step.group[0] == rank)


def check_rank_count(path: str, line: int | None, ranks: int) -> None:
    """Refuse what would take all memory before a single rank is made."""
    if not 1 <= ranks <= MOST_RANKS:
        place = f"{path}:{line}" if line else path
        raise BadInput(f"{place}: {ranks} ranks are not between 1 and {MOST_RANKS}, the most that a trace "
                       "can "
                       "have here.")


def chain(steps: Sequence[Step]) -> tuple[Step, ...]:
    """The same steps, each after the one before: what a file that lists one step a line means."""
    return tuple(replace(step, deps=(index - 1,)) if index else step for index, step in enumerate(steps))


def first_ranks(trace: Trace, most: int) -> Trace:
    """The trace of its first ranks only, as many whole blocks as `most` ranks take.

    Collectives go on among the members that are left; messages from and to others are left out, and
    what waited for them waits for what they waited for.
    """
    kept = most // trace.block * trace.block
    if not kept:
        raise BadInput(f"{trace.path}: its ranks come in groups of {trace.block}, which do not fit on {most} "
                       "hosts; use a larger fabric or map=pack.")
    smaller: dict[tuple[int, ...], tuple[int, ...]] = {}
    left_out = [0]

    def cut(step: Step) -> Step:
        if step.does is Does.COLLECTIVE:
            if step.group not in smaller:
                smaller[step.group] = tuple(rank for rank in step.group if rank < kept)
            root = step.root if step.root < kept else -1
            return replace(step, group=smaller[step.group], root=root)
        if step.does in (Does.SEND, Does.RECV) and step.peer >= kept:
            left_out[0] += step.size_bytes if step.does is Does.SEND else 0
            return Step(Does.COMPUTE, step.where, step.deps, phase=step.phase)
        return step

    ranks = tuple(tuple(cut(step) for step in steps) for steps in trace.ranks[:kept])
    note = (f"{trace.path}: map=first keeps ranks 0 to {kept - 1} of {len(trace.ranks)}; collectives run "
            "among "
            f"those of them that they name, and {left_out[0]} bytes of messages to other ranks are left out.")
    return replace(trace, ranks=ranks, files=trace.files[:kept], notes=(*trace.notes, note))
