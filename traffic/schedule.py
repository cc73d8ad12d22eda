"""The one schedule format: per rank a DAG of send, recv, compute and reduce.

Every collective, job and imported trace becomes a Schedule; it is analysed without root, replayed
by the engine, exported. Sends and receives match by (source, destination, tag, channel) in the
order in which they stand in their rank's list.
"""
from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from traffic.target import Target


PACE = "pace"
"""The phase of a compute that only waits for its moment: no work of its rank."""


class Kind(enum.Enum):
    SEND = "send"
    RECV = "recv"
    COMPUTE = "compute"
    REDUCE = "reduce"


@dataclass(frozen=True, slots=True)
class Op:
    """One operation of one rank.

    deps: indices into the same rank's list; all of them must have finished first. A send has when its
        last byte was acknowledged, a recv when its last byte is there.
    triggers: (rank, index) pairs elsewhere that must have finished first, at no network cost
        (htsim's triggers; no collective uses them).
    peer: destination of a send, source of a recv. channel: which connection of the pair.
    size_bytes: of a send, recv or reduce. duration_s: of a compute, in emulated seconds.
    offset: where in the rank's data buffer a send reads, a recv writes, a reduce adds;
        a recv that feeds a reduce has offset -1 (it lands in a scratch block) and the reduce
        names it as its first dependency.
    phase: the collective or stage that it belongs to, for timelines and diagnoses
        ('all-reduce', 'forward', …). step: its step within the phase.
    traffic_class: what a send's bytes are for, which names its class of service ('gradients',
        'pipeline', 'tensor', 'expert', 'storage', …); empty: nothing in particular. A recv takes
        what its send has.
    """

    kind: Kind
    deps: tuple[int, ...] = ()
    peer: int = -1
    size_bytes: int = 0
    tag: int = 0
    channel: int = 0
    duration_s: float = 0.0
    offset: int = -1
    phase: str = ""
    step: int = 0
    traffic_class: str = ""
    triggers: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class Schedule:
    """One iteration of a workload. `ranks[r]` is rank r's list of operations.

    buffer_bytes: size of each rank's data buffer where offsets mean something (collectives that
    can be verified), else 0.
    """

    name: str
    ranks: tuple[tuple[Op, ...], ...]
    buffer_bytes: int = 0

    @property
    def bytes_sent(self) -> int:
        """Payload bytes of all messages."""
        return sum(op.size_bytes for ops in self.ranks for op in ops if op.kind is Kind.SEND)

    @cached_property
    def pair_bytes(self) -> Mapping[tuple[int, int, int], int]:
        """(source rank, destination rank, channel) -> bytes, in order of first use: the connections."""
        found: dict[tuple[int, int, int], int] = {}
        for rank, ops in enumerate(self.ranks):
            for op in ops:
                if op.kind is Kind.SEND:
                    key = (rank, op.peer, op.channel)
                    found[key] = found.get(key, 0) + op.size_bytes
        return found


@dataclass(frozen=True)
class Collective:
    """What nccl-tests would call the operation, for algbw and busbw. `size_bytes` is S."""

    name: str
    size_bytes: int


@dataclass(frozen=True)
class Workload:
    """A schedule with what is needed to run and judge it.

    placement[r] is the index of the host that carries rank r. `iterations` counts the measured
    ones; `warmup` iterations run before them and are not counted. `notes` are sentences for the
    user on what of the input was left out or stands for something else. `target` is the real job
    that it stands for, where bytes, rates and times were scaled together.

    Of several `jobs`, `schedule` holds the ranks of all of them, one job after the other, once each:
    what is sent between whom; they iterate each for itself (see `parts`). `background` runs beside.
    """

    name: str
    schedule: Schedule
    placement: tuple[int, ...]
    iterations: int = 1
    warmup: int = 0
    collective: Collective | None = None
    notes: tuple[str, ...] = ()
    target: Target | None = None
    jobs: tuple[Job, ...] = ()
    background: Background | None = None

    @property
    def parts(self) -> tuple[Job, ...]:
        """The jobs; a workload that is none of several is its only one."""
        return self.jobs or (Job(self.name, self),)

    @property
    def endpoints(self) -> tuple[int, ...]:
        """The host of each rank and, behind them, of each end of the background."""
        return (*self.placement, *(self.background.hosts if self.background else ()))

    @property
    def bytes_sent(self) -> int:
        """Payload of all iterations of all jobs; the background is not in it."""
        return sum(job.workload.schedule.bytes_sent * job.rounds for job in self.parts)


@dataclass(frozen=True)
class Job:
    """A job of a workload, with a loop of its own over its iterations.

    `workload` counts its ranks from 0; among all ranks they are first_rank, first_rank + 1, …. It
    begins at start_s or, with `after`, so long after the end of the job of that number.
    """

    name: str
    workload: Workload
    first_rank: int = 0
    start_s: float = 0.0
    after: int | None = None

    @property
    def ranks(self) -> int:
        return len(self.workload.schedule.ranks)

    @property
    def rounds(self) -> int:
        """Iterations that run, the warming ones included."""
        return self.workload.warmup + self.workload.iterations


@dataclass(frozen=True)
class BackgroundFlow:
    """From hosts[source] to hosts[destination] of a Background; start_s counts from the jobs' start."""

    start_s: float
    source: int
    destination: int
    size_bytes: int


@dataclass(frozen=True)
class Background:
    """Flows that run beside the jobs until these have ended; what is then under way is broken off.

    `hosts` are host indices. `load` is the share of each host link's payload rate that is offered.
    """

    name: str
    hosts: tuple[int, ...]
    flows: tuple[BackgroundFlow, ...]
    load: float
    traffic_class: str = ""
