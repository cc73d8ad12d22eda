"""The plan of one run: everything resolved, checked and predicted, as plain data; nothing started.

It travels into the sandbox as it is. `emulator.resolve` makes it.
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from controllers.external import external_address
from controllers.routing import reorders
from emulator.asic.cc import Swift
from emulator.asic.queueing import Queueing, one_queue
from emulator.beside import in_full, placed
from emulator.capacity import Capacity
from emulator.classes import ClassTable
from emulator.events.spec import Event
from emulator.experiment import Experiment
from emulator.fabric.spec import FabricSpec
from emulator.programs.spec import Program
from topologies.graph import Graph
from traffic.fluid import Share
from traffic.ideal import Ideal
from traffic.schedule import Job, Workload
from traffic.wire import Wire

SWIFT_TARGET_FRAMES = 12
UNMARKED = ("--cc dctcp without --ecn: no queue marks packets, so DCTCP hears of none before it drops, and behaves "
            "much as Reno does; add --ecn SIZE")


@dataclass(frozen=True)
class Plan:
    """One run. Rates in bits per second, times in emulated seconds, sizes in bytes."""

    label: str
    experiment: Experiment
    graph: Graph
    workload: Workload
    wire: Wire
    buffer_bytes: int
    ecn_bytes: int | None
    bit_error_rate: float
    switch: str
    datapath: str
    deadline_s: float
    events: tuple[Event, ...]
    ideal: Ideal | None  # a real program has none
    tier_bytes: dict[str, float]
    expected: Share | None
    capacity: Capacity
    alone: tuple[Ideal, ...]
    only: frozenset[int] | None
    classes: ClassTable | None = None
    program: Program | None = None
    varied: Mapping[str, str] = field(default_factory=dict)  # see `matrix.Run`
    reference: bool = False
    remarks: tuple[str, ...] = ()  # on what this run has in common with others of its invocation

    @property
    def fabric(self) -> FabricSpec:
        return FabricSpec(self.graph, self.wire.rate_bps, self.wire.mtu, self.buffer_bytes, self.switch,
                          self.datapath, self.experiment.seed,
                          ecn=any(each.mark_bytes for each in self.queueing.classes),
                          quickack=self.experiment.cc == "swift",
                          reorders=reorders(self.experiment.routing), delay_s=self.wire.delay_s,
                          plain_hosts=self.classes is None)

    @property
    def queueing(self) -> Queueing:
        """How a port queues, of a bpf switch or of a host beside it."""
        if self.classes is None:
            return one_queue(self.ecn_bytes)
        return self.classes.queueing(self.buffer_bytes, self.ecn_bytes, self.wire.frame_bytes)

    def dscp_of(self, traffic_class: str) -> int:
        """The DSCP of what a traffic class sends."""
        return self.classes.dscp(traffic_class) if self.classes else 0

    def class_number(self, traffic_class: str) -> int:
        """The number of the queue that a traffic class waits in."""
        return self.classes.number(traffic_class) if self.classes else 0

    @property
    def swift(self) -> Swift:
        """Swift's target: a queue of a dozen frames above the base round trip, which is next to nothing."""
        return Swift(SWIFT_TARGET_FRAMES * 8 * self.wire.frame_bytes / self.wire.rate_bps)

    @property
    def resolved(self) -> Experiment:
        """The experiment with nothing left to choose or to look for: it repeats the run anywhere."""
        files = {key: placed(key, getattr(self.experiment, key), in_full)
                 for key in ("topology", "workload", "jobs", "background", "run")}
        return self.experiment.model_copy(update={
            **files, "classes": self.classes.as_mapping() if self.classes else "off", "switch": self.switch,
            "rate": f"{self.wire.rate_bps:.17g}bit", "buffer": f"{self.buffer_bytes}B",
            "deadline": f"{self.deadline_s:.17g}s"})

    @property
    def running(self) -> list[tuple[int, Job]]:
        """The jobs that run, with their numbers: all, or those of --only."""
        return [(number, job) for number, job in enumerate(self.workload.parts)
                if self.only is None or number in self.only]

    @property
    def external(self) -> tuple[str, int] | None:
        """(host, port) of a controller outside of the run that decides instead of ours."""
        return external_address(self.experiment.routing)

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences that a reader of the result should know."""
        unmarked = self.experiment.cc == "dctcp" and not self.fabric.ecn
        return (*self.workload.notes, *self.remarks, *([UNMARKED] if unmarked else []))

    @property
    def iterations(self) -> int:
        return self.workload.warmup + self.workload.iterations
