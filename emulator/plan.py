"""From what the user asked to what will run: everything resolved, checked and predicted, nothing started.

Needs no root. The plan is plain data and travels into the sandbox as it is.
"""
from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from controllers.routing import parse_routing
from emulator.asic.cc import Swift
from emulator.asic.queueing import Queueing, one_queue
from emulator.capacity import Capacity, largest_rate_bps, predict
from emulator.errors import BadInput
from emulator.experiment import FILE_OPTIONS, Experiment, with_file
from emulator.fabric.pcap import check_ports
from emulator.fabric.spec import ETHERNET_BYTES, FabricSpec
from emulator.programs.spec import Program, resolve_program, stand_in, with_files
from emulator.units import RATES, parse_rate, parse_size, parse_time
from topologies.catalog import resolve_topology
from topologies.graph import Graph, interface
from traffic.check import check_schedule
from traffic.fluid import ROUTINGS as FLUID_ROUTINGS, Share, expected_share
from traffic.ideal import Ideal, ideal
from traffic.load import link_bytes, tier_bytes
from traffic.paths import Paths
from traffic.schedule import Schedule, Workload
from traffic.specs import Setting, resolve_workload
from traffic.wire import Wire

DEFAULT_BUFFER_FRAMES = 100
LEAST_DEADLINE_S = 60.0
EXPECTED_SEEDS = 100
SWIFT_TARGET_FRAMES = 12
DEADLINE_FACTOR = 10.0
PROGRAM_DEADLINE_S = 600.0
PROGRAM_SHARE = 0.5
SWITCHES = ("auto", "ovs", "bpf")


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
    switch: str
    datapath: str
    deadline_s: float
    ideal: Ideal | None  # a program has none
    tier_bytes: dict[str, float]
    expected: Share | None
    capacity: Capacity
    program: Program | None = None

    @property
    def fabric(self) -> FabricSpec:
        return FabricSpec(self.graph, self.wire.rate_bps, self.wire.mtu, self.buffer_bytes, self.switch,
                          self.datapath, self.experiment.seed, ecn=self.ecn_bytes is not None,
                          quickack=self.experiment.cc == "swift")

    @property
    def queueing(self) -> Queueing:
        """How a port of a bpf switch queues."""
        return one_queue(self.ecn_bytes)

    @property
    def swift(self) -> Swift:
        """Swift's target: a queue of a dozen frames above the base round trip, which is next to nothing."""
        return Swift(SWIFT_TARGET_FRAMES * 8 * self.wire.frame_bytes / self.wire.rate_bps)

    @property
    def resolved(self) -> Experiment:
        """The experiment with nothing left to choose or to look for: it repeats the run anywhere."""
        files = {key: with_file(getattr(self.experiment, key), lambda name: str(Path(name).absolute()))
                 for key in FILE_OPTIONS}
        return self.experiment.model_copy(update={
            **files, "run": with_files(self.experiment.run, _absolute), "switch": self.switch, "rate": f"{self.wire.rate_bps:.17g}bit",
            "buffer": f"{self.buffer_bytes}B", "deadline": f"{self.deadline_s:.17g}s"})

    @property
    def iterations(self) -> int:
        return self.workload.warmup + self.workload.iterations


def _absolute(word: str) -> str | None:
    return os.path.abspath(word) if os.path.isfile(word) else None


def resolve(label: str, experiment: Experiment, switch: str, datapath: str) -> Plan:
    """Check all input and compute the plan. `switch` and `datapath` are what this machine will use.

    Raises BadInput with one sentence for anything that cannot be.
    """
    routing, _ = parse_routing(experiment.routing)
    if switch == "ovs" and routing.method != "hash":
        raise BadInput(f'--routing "{experiment.routing}" needs --switch bpf; Open vSwitch only hashes whole flows.')
    graph = resolve_topology(experiment.topology)
    check_ports((interface(node, number) for node, ports in graph.neighbours.items() for number in ports),
                experiment.pcap)
    paths = Paths(graph)
    program = resolve_program(experiment.run, len(graph.hosts), experiment.seed) if experiment.run else None
    if program:
        return _program(label, experiment, graph, paths, program, switch, datapath)
    workload, wire = _workload(experiment, graph, paths, switch, datapath)
    check_schedule(workload.schedule, len(graph.hosts))
    perfect = ideal(workload, paths, wire)
    iterations = workload.warmup + workload.iterations
    return Plan(
        label=label, experiment=experiment, graph=graph, workload=workload, wire=wire,
        buffer_bytes=_buffer_bytes(experiment.buffer, wire), ecn_bytes=_ecn_bytes(experiment, wire, switch),
        switch=switch, datapath=datapath,
        deadline_s=_deadline_s(experiment.deadline, perfect.ideal_s * iterations), ideal=perfect,
        tier_bytes=tier_bytes(link_bytes(workload.schedule, workload.placement, paths), graph),
        expected=_expected(workload, paths, experiment),
        capacity=predict(workload, paths, wire, switch, datapath))


def _program(label: str, experiment: Experiment, graph: Graph, paths: Paths, program: Program, switch: str,
             datapath: str) -> Plan:
    """The plan of a real program: nobody knows what it will send, so there is no ideal time. Its load is
    predicted as that of a permutation of its ranks at full rate; `auto` leaves half of that to its computing.
    """
    for option, left_out in (("--verify", not experiment.verify), ("--dilation", experiment.dilation == 1),
                             ("--byte-scale", experiment.byte_scale == 1)):
        if not left_out:
            raise BadInput(f"{option} does not apply to --run: a real program sends its own bytes in its own time; "
                           "leave it out.")
    busiest = stand_in(program)

    def rate_bps() -> float:
        return PROGRAM_SHARE * largest_rate_bps(busiest, paths, experiment.mtu, switch, datapath)

    wire = Wire.shaped(_rate_bps(experiment, rate_bps), experiment.mtu)
    silent = Workload(program.name, Schedule(program.kind, ((),) * len(program.placement)), program.placement)
    return Plan(
        label=label, experiment=experiment, graph=graph, workload=silent, wire=wire,
        buffer_bytes=_buffer_bytes(experiment.buffer, wire), ecn_bytes=_ecn_bytes(experiment, wire, switch),
        switch=switch, datapath=datapath, program=program, ideal=None, tier_bytes={}, expected=None,
        deadline_s=PROGRAM_DEADLINE_S if experiment.deadline == "auto" else _deadline_s(experiment.deadline, 0.0),
        capacity=predict(busiest, paths, wire, switch, datapath))


def _workload(experiment: Experiment, graph: Graph, paths: Paths, switch: str, datapath: str
              ) -> tuple[Workload, Wire]:
    """The workload at its rate. Sizes can follow from the rate, and `auto` from what is sent where."""

    def at(rate_bps: float) -> Workload:
        return resolve_workload(experiment.workload, Setting(
            graph, rate_bps, experiment.mtu, experiment.seed, experiment.dilation, experiment.byte_scale))

    rate_bps = _rate_bps(experiment, lambda: largest_rate_bps(at(1e6), paths, experiment.mtu, switch, datapath))
    return at(rate_bps), Wire.shaped(rate_bps, experiment.mtu)


def _rate_bps(experiment: Experiment, largest: Callable[[], float]) -> float:
    """The wire of a host link: as given, or the largest that this machine is expected to keep up with."""
    if experiment.rate == "auto":
        return largest()
    rate_bps = parse_rate(experiment.rate, "--rate")
    if rate_bps < 1000:
        raise BadInput(f'--rate "{experiment.rate}" is less than 1 kbit; a packet would take minutes.')
    if rate_bps > 100 * RATES["gbit"]:
        raise BadInput(f'--rate "{experiment.rate}" is more than any kernel forwards; emulate a slower '
                       "wire with --dilation K.")
    return rate_bps


def _expected(workload: Workload, paths: Paths, experiment: Experiment) -> Share | None:
    """What the fluid model gives over many seeds; None where it does not cover the routing."""
    if experiment.routing not in FLUID_ROUTINGS or not workload.schedule.bytes_sent:
        return None
    return expected_share(workload, paths, experiment.routing, range(EXPECTED_SEEDS))


def _buffer_bytes(text: str, wire: Wire) -> int:
    """The queue limit: bytes as given, a time at the host link's rate, or 100 frames."""
    if text == "auto":
        return DEFAULT_BUFFER_FRAMES * wire.frame_bytes
    try:
        size = parse_size(text, "--buffer")
    except BadInput as not_a_size:
        try:
            size = math.floor(parse_time(text, "--buffer") * wire.rate_bps / 8)
        except BadInput:
            raise not_a_size from None
    if size < wire.frame_bytes:
        raise BadInput(f'--buffer "{text}" is {size} bytes and holds not even one frame of {wire.frame_bytes} '
                       f"bytes (MTU {wire.mtu} + {ETHERNET_BYTES}).")
    if size > 2**31:
        raise BadInput(f'--buffer "{text}" is more than 2 GiB a port.')
    return size


def _ecn_bytes(experiment: Experiment, wire: Wire, switch: str) -> int | None:
    """The marking threshold K; None for no marking."""
    if experiment.ecn == "off":
        return None
    if switch != "bpf":
        raise BadInput(f'--ecn "{experiment.ecn}" needs --switch bpf; Open vSwitch marks nothing.')
    size = parse_size(experiment.ecn, "--ecn")
    if size < wire.frame_bytes:
        raise BadInput(f'--ecn "{experiment.ecn}" is less than one frame of {wire.frame_bytes} bytes.')
    return size


def _deadline_s(text: str, ideal_s: float) -> float:
    if text == "auto":
        return max(LEAST_DEADLINE_S, DEADLINE_FACTOR * ideal_s)
    deadline_s = parse_time(text, "--deadline")
    if deadline_s <= 0:
        raise BadInput(f'--deadline "{text}" must be more than zero.')
    return deadline_s
