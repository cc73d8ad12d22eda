"""From what the user asked to what will run: everything checked and predicted, nothing started. No root."""
from __future__ import annotations

from dataclasses import replace

from controllers.external import external_address
from controllers.routing import check_routing, parse_routing, scheduling_of
from controllers.scheduling.foresight import foreseen
from controllers.scheduling.options import Scheduling
from controllers.scheduling.paths import PathLists
from emulator import link_options
from emulator.asic.biterrors import parse_bit_errors
from emulator.asic.shaper import service
from emulator.asic.sizes import check_groups
from emulator.capacity import largest_rate_bps, predict
from emulator.class_specs import parse_classes
from emulator.classes import DEFAULT_TABLE, ClassTable
from emulator.delay.relay import check as check_delay
from emulator.errors import BadInput
from emulator.events.check import check_events
from emulator.events.spec import parse_events
from emulator.experiment import Experiment
from emulator.fabric.pcap import check_ports
from emulator.plan import Plan
from emulator.programs.spec import resolve_program, stand_in
from emulator.scaling import scaled, scaling
from emulator.units import parse_time
from topologies.catalog import resolve_topology
from topologies.graph import Graph, interface
from traffic import jobs_ideal
from traffic.background import resolve_background
from traffic.fluid import EXPECTED_SEEDS, ROUTINGS as FLUID_ROUTINGS, Share, expected_share, messages_by_step
from traffic.jobs import chosen, resolve_jobs
from traffic.load import link_bytes, tier_bytes
from traffic.paths import Paths
from traffic.schedule import Schedule, Workload
from traffic.specs import Setting, resolve_workload
from traffic.wire import Wire

SCHEDULED_SEEDS = 10  # annealing takes 20 ms for 16 hosts
PROGRAM_DEADLINE_S = 600.0
PROGRAM_SHARE = 0.5
SWITCHES = ("auto", "ovs", "bpf")
NOT_WITH_PROGRAMS = {"event": ((),), "classes": ("off",), "background": ("off",), "verify": (False,),
                     "dilation": ("auto", 1), "byte-scale": ("auto", 1), "target-rate": ("auto",)}
"""Options that act on the messages of a schedule -> their values where they are left out."""


def resolve(label: str, experiment: Experiment, switch: str, datapath: str) -> Plan:
    """Check all input and compute the plan. `switch` and `datapath` are what this machine will use.

    Raises BadInput with one sentence for anything that cannot be.
    """
    routing, _ = parse_routing(experiment.routing)
    external_address(experiment.routing)  # a slip in it is said now
    if switch == "ovs" and routing.method != "hash":
        raise BadInput(f'--routing "{experiment.routing}" needs --switch bpf; Open vSwitch only hashes whole '
                       "flows.")
    classes = _classes(experiment, switch)
    graph = resolve_topology(experiment.topology)
    check_routing(experiment.routing, graph)
    if switch == "bpf":
        check_groups(graph, experiment.routing, experiment.seed)
    check_ports((interface(node, number) for node, ports in graph.neighbours.items() for number in ports),
                experiment.pcap)
    paths = Paths(graph)
    if experiment.run:
        return _program(label, experiment, graph, paths, switch, datapath)
    workload, wire = _workload(experiment, graph, paths, switch, datapath, classes)
    experiment = scaled(experiment, workload, wire.rate_bps)
    workload = replace(workload, notes=(*graph.notes, *workload.notes))
    only, alone = chosen(workload, experiment.only), jobs_ideal.alone(workload, paths, wire)
    perfect = jobs_ideal.together(workload, alone, paths, wire, only)
    iterations = workload.warmup + workload.iterations
    deadline_s = link_options.deadline_s(experiment.deadline, perfect.ideal_s * iterations)
    events = parse_events(experiment.events)
    check_events(events, graph, experiment.routing, experiment.seed, switch, deadline_s, iterations,
                 (op.phase for ops in workload.schedule.ranks for op in ops), wire.frame_bytes)
    workload = replace(workload, background=resolve_background(
        experiment.background, _setting(experiment, graph, wire.rate_bps, classes), deadline_s))
    limit_bytes = link_options.buffer_bytes(experiment.buffer, wire)
    plan = Plan(
        label=label, experiment=experiment, graph=graph, workload=workload, wire=wire,
        buffer_bytes=limit_bytes,
        ecn_bytes=link_options.ecn_bytes(experiment, wire, switch, limit_bytes),
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


def _program(label: str, experiment: Experiment, graph: Graph, paths: Paths, switch: str,
             datapath: str) -> Plan:
    """The plan of a real program: nobody knows what it will send, so there is no ideal time. Its load is
    predicted as that of a permutation of its ranks at full rate; `auto` leaves half of that to its computing.
    """
    program = resolve_program(experiment.run, graph.hosts, experiment.seed)
    given = {**experiment.model_dump(by_alias=True), "event": experiment.events}
    for option, left_out in NOT_WITH_PROGRAMS.items():
        if given[option] not in left_out:
            raise BadInput(f"--{option} does not apply to --run: a real program sends its own bytes in its "
                           "own time; leave it out.")
    busiest, delay_s = stand_in(program), parse_time(experiment.delay, "--delay")

    def half_bps() -> float:
        return PROGRAM_SHARE * largest_rate_bps(busiest, paths, experiment.mtu, switch, datapath, delay_s)

    wire = _wire(experiment, graph, link_options.rate_bps(experiment.rate, half_bps))
    silent = Workload(program.name, Schedule(program.kind, ((),) * len(program.placement)), program.placement,
                      notes=graph.notes)
    experiment = scaled(experiment, silent, wire.rate_bps)
    limit_bytes = link_options.buffer_bytes(experiment.buffer, wire)
    return Plan(
        label=label, experiment=experiment, graph=graph, workload=silent, wire=wire,
        buffer_bytes=limit_bytes,
        ecn_bytes=link_options.ecn_bytes(experiment, wire, switch, limit_bytes),
        bit_error_rate=parse_bit_errors(experiment.loss, wire.frame_bytes, switch),
        switch=switch, datapath=datapath, program=program, events=(), ideal=None, alone=(), only=None,
        tier_bytes={}, expected=None,
        deadline_s=PROGRAM_DEADLINE_S if experiment.deadline == "auto" else link_options.deadline_s(
            experiment.deadline, 0.0),
        capacity=predict(busiest, paths, wire, switch, datapath))


def _workload(experiment: Experiment, graph: Graph, paths: Paths, switch: str, datapath: str,
              classes: ClassTable | None) -> tuple[Workload, Wire]:
    """The workload at its rate. Sizes can follow from the rate, and `auto` from what is sent where."""

    delay_s = parse_time(experiment.delay, "--delay")

    def at(rate_bps: float) -> Workload:
        setting = _setting(experiment, graph, rate_bps, classes)
        if experiment.jobs:
            return _one_scale(resolve_jobs(experiment.jobs, setting, resolve_workload), experiment)
        return resolve_workload(experiment.workload, setting)

    rate_bps = link_options.rate_bps(experiment.rate, lambda: largest_rate_bps(
        at(1e6), paths, experiment.mtu, switch, datapath, delay_s))
    return at(rate_bps), _wire(experiment, graph, rate_bps)


def _wire(experiment: Experiment, graph: Graph, rate_bps: float) -> Wire:
    delay_s = parse_time(experiment.delay, "--delay")
    check_delay(delay_s, [rate_bps * link.speed for link in graph.links for _ in "ab"], experiment.mtu)
    return Wire.shaped(rate_bps, experiment.mtu, delay_s)


def _one_scale(workload: Workload, experiment: Experiment) -> Workload:
    """Of several jobs, models must not choose scales of their own: each would stand for another cluster."""
    for job in workload.jobs:
        target = job.workload.target
        if target and "auto" in (experiment.byte_scale, experiment.dilation):
            raise BadInput(f"Job {job.name} is a model beside other jobs, so all need one scale: give "
                           f"--dilation and --byte-scale (alone it would take {target.dilation:.4g} and "
                           f"{target.byte_scale:.4g}).")
    return workload


def _setting(experiment: Experiment, graph: Graph, rate_bps: float, classes: ClassTable | None) -> Setting:
    return Setting(graph, rate_bps, experiment.mtu, experiment.seed,
                   delay_s=parse_time(experiment.delay, "--delay"), classes=(classes or DEFAULT_TABLE).names,
                   kinds=DEFAULT_TABLE.names, **scaling(experiment, rate_bps))


def _expected(workload: Workload, paths: Paths, experiment: Experiment) -> Share | None:
    """What the fluid model gives over many seeds; None for several jobs and where it has no routing."""
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
