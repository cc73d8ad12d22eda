"""From what the user asked to what will run: everything resolved, checked and predicted, nothing started.

Needs no root. The plan is plain data and travels into the sandbox as it is.
"""
from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path

from controllers.routing import check_routing, parse_routing, scheduling_of
from controllers.scheduling.foresight import foreseen
from controllers.scheduling.options import Scheduling
from controllers.scheduling.paths import PathLists
from emulator.asic.biterrors import parse_bit_errors
from emulator.asic.cc import Swift
from emulator.asic.queueing import Queueing, one_queue
from emulator.asic.shaper import service
from emulator.class_specs import parse_classes
from emulator.classes import DEFAULT_TABLE, ClassTable
from emulator.capacity import Capacity, largest_rate_bps, predict
from emulator.delay.relay import check as check_delay
from emulator.errors import BadInput
from emulator.events.check import check_events
from emulator.events.spec import Event, parse_events
from emulator.experiment import FILE_OPTIONS, Experiment, with_file
from emulator.fabric.pcap import check_ports
from emulator.fabric.spec import ETHERNET_BYTES, FabricSpec
from emulator.job_entry import with_workload_files
from emulator.scaling import scaled, scaling
from emulator.units import RATES, parse_rate, parse_size, parse_time
from topologies.catalog import resolve_topology
from topologies.graph import Graph, interface
from traffic import jobs_ideal
from traffic.background import resolve_background, with_absolute_cdf
from traffic.check import check_schedule
from traffic.fluid import ROUTINGS as FLUID_ROUTINGS, Share, expected_share, messages_by_step
from traffic.ideal import Ideal
from traffic.jobs import chosen, resolve_jobs
from traffic.load import link_bytes, tier_bytes
from traffic.paths import Paths
from traffic.placement import with_absolute_file
from traffic.schedule import Job, Workload
from traffic.specs import Setting, resolve_workload
from traffic.wire import Wire

DEFAULT_BUFFER_FRAMES = 100
LEAST_DEADLINE_S = 60.0
EXPECTED_SEEDS, SCHEDULED_SEEDS = 100, 10  # annealing takes 20 ms for 16 hosts
SWIFT_TARGET_FRAMES = 12
DEADLINE_FACTOR = 10.0
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
    bit_error_rate: float
    switch: str
    datapath: str
    deadline_s: float
    events: tuple[Event, ...]
    ideal: Ideal
    tier_bytes: dict[str, float]
    expected: Share | None
    capacity: Capacity
    alone: tuple[Ideal, ...]
    only: frozenset[int] | None
    classes: ClassTable | None = None

    @property
    def fabric(self) -> FabricSpec:
        return FabricSpec(self.graph, self.wire.rate_bps, self.wire.mtu, self.buffer_bytes, self.switch,
                          self.datapath, self.experiment.seed,
                          ecn=any(each.mark_bytes for each in self.queueing.classes),
                          quickack=self.experiment.cc == "swift", delay_s=self.wire.delay_s,
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
        files = {key: with_file(getattr(self.experiment, key), lambda name: str(Path(name).absolute()))
                 for key in FILE_OPTIONS if key != "classes"}
        files["workload"] = with_absolute_file(files["workload"])
        jobs = with_workload_files(self.experiment.jobs, lambda spec: with_absolute_file(
            with_file(spec, lambda name: str(Path(name).absolute()))))
        return self.experiment.model_copy(update={
            **files, "classes": self.classes.as_mapping() if self.classes else "off", "jobs": jobs,
            "background": with_absolute_cdf(self.experiment.background), "switch": self.switch,
            "rate": f"{self.wire.rate_bps:.17g}bit", "buffer": f"{self.buffer_bytes}B",
            "deadline": f"{self.deadline_s:.17g}s"})

    @property
    def running(self) -> list[tuple[int, Job]]:
        """The jobs that run, with their numbers: all, or those of --only."""
        return [(number, job) for number, job in enumerate(self.workload.parts)
                if self.only is None or number in self.only]

    @property
    def iterations(self) -> int:
        return self.workload.warmup + self.workload.iterations


def resolve(label: str, experiment: Experiment, switch: str, datapath: str) -> Plan:
    """Check all input and compute the plan. `switch` and `datapath` are what this machine will use.

    Raises BadInput with one sentence for anything that cannot be.
    """
    routing, _ = parse_routing(experiment.routing)
    if switch == "ovs" and routing.method != "hash":
        raise BadInput(f'--routing "{experiment.routing}" needs --switch bpf; Open vSwitch only hashes whole flows.')
    classes = _classes(experiment, switch)
    graph = resolve_topology(experiment.topology)
    check_routing(experiment.routing, graph)
    check_ports((interface(node, number) for node, ports in graph.neighbours.items() for number in ports),
                experiment.pcap)
    paths = Paths(graph)
    workload, wire = _workload(experiment, graph, paths, switch, datapath, classes)
    experiment = scaled(experiment, workload, wire.rate_bps)
    for job in workload.parts:
        check_schedule(job.workload.schedule, len(graph.hosts))
    workload = replace(workload, notes=(*graph.notes, *workload.notes))
    only, alone = chosen(workload, experiment.only), jobs_ideal.alone(workload, paths, wire)
    perfect = jobs_ideal.together(workload, alone, paths, wire, only)
    iterations = workload.warmup + workload.iterations
    deadline_s = _deadline_s(experiment.deadline, perfect.ideal_s * iterations)
    events = parse_events(experiment.events)
    check_events(events, graph, experiment.routing, experiment.seed, switch, deadline_s, iterations,
                 (op.phase for ops in workload.schedule.ranks for op in ops), wire.frame_bytes)
    workload = replace(workload, background=resolve_background(
        experiment.background, _setting(experiment, graph, wire.rate_bps, classes), deadline_s))
    plan = Plan(
        label=label, experiment=experiment, graph=graph, workload=workload, wire=wire,
        buffer_bytes=_buffer_bytes(experiment.buffer, wire), ecn_bytes=_ecn_bytes(experiment, wire, switch),
        bit_error_rate=parse_bit_errors(experiment.loss, wire.frame_bytes, switch),
        switch=switch, datapath=datapath,
        deadline_s=deadline_s, events=events, ideal=perfect, alone=alone, only=only,
        tier_bytes=tier_bytes(link_bytes(workload.schedule, workload.placement, paths), graph),
        expected=_expected(workload, paths, experiment),
        capacity=predict(workload, paths, wire, switch, datapath), classes=classes)
    service(plan.queueing, wire.frame_bytes)  # refuses shares, thresholds and weights that no port can have
    if classes:
        classes.pause_thresholds(graph, wire.rate_bps, plan.buffer_bytes, wire.frame_bytes, wire.delay_s)
    return plan


def _classes(experiment: Experiment, switch: str) -> ClassTable | None:
    """The table of classes; None for a single queue."""
    table = parse_classes(experiment.classes)
    if table and switch != "bpf":
        raise BadInput("--classes needs --switch bpf; the ports of Open vSwitch have one queue here.")
    return table


def _workload(experiment: Experiment, graph: Graph, paths: Paths, switch: str, datapath: str,
              classes: ClassTable | None) -> tuple[Workload, Wire]:
    """The workload at its rate. Sizes can follow from the rate, and `auto` from what is sent where."""

    delay_s = parse_time(experiment.delay, "--delay")

    def at(rate_bps: float) -> Workload:
        setting = _setting(experiment, graph, rate_bps, classes)
        if experiment.jobs:
            return _one_scale(resolve_jobs(experiment.jobs, setting, resolve_workload), experiment)
        return resolve_workload(experiment.workload, setting)

    if experiment.rate == "auto":
        rate_bps = largest_rate_bps(at(1e6), paths, experiment.mtu, switch, datapath, delay_s)
    else:
        rate_bps = parse_rate(experiment.rate, "--rate")
        if rate_bps < 1000:
            raise BadInput(f'--rate "{experiment.rate}" is less than 1 kbit; a packet would take minutes.')
        if rate_bps > 100 * RATES["gbit"]:
            raise BadInput(f'--rate "{experiment.rate}" is more than any kernel forwards; emulate a slower '
                           "wire with --dilation K.")
    check_delay(delay_s, [rate_bps * link.speed for link in graph.links for _ in "ab"], experiment.mtu)
    return at(rate_bps), Wire.shaped(rate_bps, experiment.mtu, delay_s)


def _one_scale(workload: Workload, experiment: Experiment) -> Workload:
    """Of several jobs, models must not choose scales of their own: each would stand for another cluster."""
    for job in workload.jobs:
        target = job.workload.target
        if target and "auto" in (experiment.byte_scale, experiment.dilation):
            raise BadInput(f"Job {job.name} is a model beside other jobs, so all need one scale: give --dilation and "
                           f"--byte-scale (alone it would take {target.dilation:.4g} and {target.byte_scale:.4g}).")
    return workload


def _setting(experiment: Experiment, graph: Graph, rate_bps: float, classes: ClassTable | None) -> Setting:
    return Setting(graph, rate_bps, experiment.mtu, experiment.seed, delay_s=parse_time(experiment.delay, "--delay"),
                   classes=(classes or DEFAULT_TABLE).names, **scaling(experiment, rate_bps))


def _expected(workload: Workload, paths: Paths, experiment: Experiment) -> Share | None:
    """What the fluid model gives over many seeds; None for several jobs and routings that it does not cover."""
    if workload.jobs:
        return None
    scheduling = scheduling_of(experiment.routing)
    if scheduling and parse_routing(experiment.routing)[0].method == "hash":
        return _expected_scheduled(workload, paths, scheduling)
    if experiment.routing not in FLUID_ROUTINGS or not workload.schedule.bytes_sent:
        return None
    return expected_share(workload, paths, experiment.routing, range(EXPECTED_SEEDS))


def _expected_scheduled(workload: Workload, paths: Paths, scheduling: Scheduling) -> Share | None:
    """The same under global scheduling, where all connections are busy at once; None elsewhere."""
    steps = messages_by_step(workload.schedule)
    if not steps or any(step.keys() != steps[0].keys() for step in steps):
        return None
    lists = PathLists(paths.graph)
    return expected_share(workload, paths, "ecmp", range(SCHEDULED_SEEDS),
                          lambda pairs, seed: foreseen(lists, scheduling, pairs, seed))


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
