"""From what a run brought back to what the bundle says: flows, summary. Pure; definitions in interfaces.

FCT = last byte acknowledged - start; slowdown = FCT / FCT alone on the path (the connection's least round
trip, and the time of the bytes beyond the shaper's burst at the slowest link); collective time = barrier to
barrier, the largest over ranks; algbw and busbw as nccl-tests defines them.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy

from emulator import __version__
from emulator.fidelity import Verdict
from emulator.outcome import Outcome
from emulator.plan import Plan
from emulator.steptime import iteration_times
from emulator.telemetry.summary import exact_queues, links_block, loss_block, queues_block
from topologies.graph import Link
from traffic.formulas import algbw_bps, busbw_bps
from traffic.load import pairs
from traffic.paths import Paths
from traffic.records import ConnectionKey

SCHEMA = 1


@dataclass(frozen=True)
class Flow:
    """One delivered message. start_s counts from the first iteration's start; path is 'h1 e0_0 … h16'.

    src_port, dst_port: TCP ports of its connection, which decide the path under ECMP.
    """

    iteration: int
    measured: bool
    src: str
    dst: str
    src_rank: int
    dst_rank: int
    channel: int
    src_port: int
    dst_port: int
    phase: str
    step: int
    bytes: int
    start_s: float
    fct_s: float
    ideal_s: float
    slowdown: float
    retransmits: int
    path: str


FLOW_COLUMNS = tuple(Flow.__dataclass_fields__)


def flows(plan: Plan, outcome: Outcome) -> list[Flow]:
    """Every message of the run, in order of start."""
    if outcome.engine is None:
        return []
    links = _links_between(plan)
    shortest = Paths(plan.graph)
    ideal: dict[tuple[ConnectionKey, int], float] = {}
    hosts = [plan.graph.hosts[index].name for index in plan.workload.placement]
    connection = {c.key: c for c in outcome.engine.connections}
    listed = []
    for message in sorted(outcome.engine.messages, key=lambda m: m.start_s):
        key = ConnectionKey(message.src, message.dst, message.channel)
        path = outcome.paths.get(key, ())
        if (key, message.size_bytes) not in ideal:
            crossed = _crossed(path, links) or shortest.first_links(hosts[key.src], hosts[key.dst])
            ideal[key, message.size_bytes] = (plan.wire.ideal_fct_s(crossed, message.size_bytes)
                                              + connection[key].info.min_rtt_s)
        alone = ideal[key, message.size_bytes]
        fct = message.acked_s - message.start_s
        listed.append(Flow(
            message.iteration, message.iteration >= plan.workload.warmup, hosts[key.src], hosts[key.dst],
            key.src, key.dst, key.channel, connection[key].src_port, connection[key].dst_port,
            message.phase, message.step, message.size_bytes,
            message.start_s - outcome.started_s, fct, alone, fct / alone, message.retransmits, " ".join(path)))
    return listed


def _links_between(plan: Plan) -> dict[frozenset[str], Link]:
    return {frozenset((link.a, link.b)): link for link in plan.graph.links}


def _crossed(path: Sequence[str], links: Mapping[frozenset[str], Link]) -> list[Link]:
    return [links[frozenset(pair)] for pair in zip(path, path[1:])]


def summarise(plan: Plan, outcome: Outcome, verdict: Verdict, listed: Sequence[Flow]) -> dict[str, Any]:
    """summary.json, schema 1. Values that a broken-off run does not have are null."""
    return {
        "schema": SCHEMA, "version": __version__, "experiment": _experiment(plan),
        "environment": dict(outcome.environment), "setup": _setup(plan, outcome),
        "workload": _workload(plan, outcome), "flows": _flow_statistics(listed),
        **_measured(plan, outcome), "projected": _projected(plan, outcome),
        "fidelity": {"verdict": verdict.verdict, "checks": [asdict(check) for check in verdict.checks]},
        "interrupted": outcome.interrupted, "sampling": _sampling(outcome),
        "captures": [{"port": c.port, "file": c.file.name, "packets": c.packets, "dropped_packets": c.dropped,
                      "full": c.full} for c in outcome.captures],
    }


def _sampling(outcome: Outcome) -> dict[str, Any] | None:
    """How often the queues were looked at, as asked and as the machine allowed, and what that cost."""
    r = outcome.recording
    return r and {"asked_hz": r.asked_hz, "rate_hz": r.rate_hz, "cpu_share": r.cpu_share,
                  "ended_early": r.ended_early}


def _notes(plan: Plan, outcome: Outcome) -> list[str]:
    """What a reader should know besides the numbers: of the input, and of the run."""
    return [*plan.workload.notes, *([outcome.switch_failure] if outcome.switch_failure else [])]


def _experiment(plan: Plan) -> dict[str, Any]:
    e = plan.experiment
    return {"label": plan.label, "topology": e.topology, "routing": e.routing, "switch": plan.switch,
            "datapath": plan.datapath, "workload": e.workload, "rate_bps": plan.wire.rate_bps,
            "mtu": plan.wire.mtu, "buffer_bytes": plan.buffer_bytes, "cc": e.cc, "swift_target_s": plan.swift.target_s if e.cc == "swift" else None,
            "ecn_bytes": plan.ecn_bytes, "seed": e.seed,
            "dilation": e.dilation, "byte_scale": e.byte_scale, "verify": e.verify,
            "deadline_s": plan.deadline_s, "iterations": plan.workload.iterations,
            "warmup": plan.workload.warmup}


def _setup(plan: Plan, outcome: Outcome) -> dict[str, Any]:
    times = outcome.setup
    return {"up_s": times and times.up_s, "ready_s": times and times.ready_s, "down_s": times and times.down_s,
            "hosts": len(plan.graph.hosts), "switches": len(plan.graph.switches), "links": len(plan.graph.links)}


def _workload(plan: Plan, outcome: Outcome) -> dict[str, Any]:
    w, engine = plan.workload, outcome.engine
    ranks = len(w.schedule.ranks)
    measured = [i for i in engine.iterations if i.measured] if engine else []
    completion = sum(i.end_s - i.start_s for i in measured) / len(measured) if measured else None
    collective, senders = w.collective, _senders(plan)
    bandwidths = (None, None)
    if collective and completion:
        bandwidths = (algbw_bps(collective.size_bytes, completion),
                      busbw_bps(collective.name, ranks, collective.size_bytes, completion))
    goodput = _goodput_bps(plan, outcome)
    wire_bps = senders * plan.wire.rate_bps
    return {
        "name": w.name, "ranks": ranks, "completion_s": completion, "ideal_s": plan.ideal.ideal_s,
        "efficiency": plan.ideal.ideal_s / completion if completion else None,
        "algbw_bps": bandwidths[0], "busbw_bps": bandwidths[1],
        "goodput_bps": goodput, "host_links_bps": wire_bps,
        "host_links_share": goodput / wire_bps if goodput is not None and wire_bps else None,
        "iterations": [asdict(t) for t in iteration_times(engine.spans, engine.iterations, ranks)] if engine else [],
        "bytes_sent": w.schedule.bytes_sent * plan.iterations,
        "bytes_received": engine.bytes_received if engine else 0,
        "verified": bool(engine and engine.verified), "checksum_errors": engine.checksum_errors if engine else 0,
        "wrong_values": engine.wrong_values if engine else 0,
        "stuck": list(engine.stuck) if engine else []}


def _senders(plan: Plan) -> int:
    """How many host links can be busy at once: no more senders than receivers, nor the reverse."""
    used = pairs(plan.workload.schedule)
    return min(len({key[0] for key in used}), len({key[1] for key in used})) if used else 0


def _goodput_bps(plan: Plan, outcome: Outcome) -> float | None:
    """Payload received by all hosts a second, from the replay's first measured start until the first
    message of that iteration is done or, where messages depend on one another, until its end.

    While all flows of a pattern run, this is the sum of their rates: what long flows reach.
    """
    engine = outcome.engine
    measured = [i for i in engine.iterations if i.measured] if engine else []
    if not measured or len(engine.received) < 2:
        return None
    first = measured[0]
    independent = not any(op.deps or op.triggers for ops in plan.workload.schedule.ranks for op in ops)
    of_it = [m for m in engine.messages if m.iteration == first.index]
    end = min(m.received_s for m in of_it) if independent and of_it else first.end_s
    times, received = (numpy.array(column) for column in zip(*engine.received))
    got = numpy.interp((first.start_s, end), times, received)
    return float(8 * (got[1] - got[0]) / (end - first.start_s))


def _flow_statistics(listed: Sequence[Flow]) -> dict[str, Any]:
    measured = [flow for flow in listed if flow.measured]
    if not measured:
        return {"count": 0, **dict.fromkeys(("fct_mean_s", "fct_p50_s", "fct_p99_s", "fct_max_s",
                                             "slowdown_p50", "slowdown_p99"))}
    fct = numpy.array([flow.fct_s for flow in measured])
    slowdown = numpy.array([flow.slowdown for flow in measured])
    return {"count": len(measured), "fct_mean_s": float(fct.mean()), "fct_p50_s": float(numpy.percentile(fct, 50)),
            "fct_p99_s": float(numpy.percentile(fct, 99)), "fct_max_s": float(fct.max()),
            "slowdown_p50": float(numpy.percentile(slowdown, 50)),
            "slowdown_p99": float(numpy.percentile(slowdown, 99))}


def _measured(plan: Plan, outcome: Outcome) -> dict[str, Any]:
    """The blocks links, queues and loss."""
    if outcome.recording is None or outcome.between is None:
        return {"links": None, "queues": None, "loss": None}
    series = [part.between(outcome.started_s, outcome.ended_s) for part in outcome.recording.series]
    links = links_block(series, plan.graph, plan.wire.frame_bytes)
    queues = queues_block(series, plan.wire.frame_bytes)
    if outcome.packets:
        queues = exact_queues(queues, outcome.packets)
    counters = outcome.between.queues
    for row in queues["by_port"]:
        row["dropped_packets"] = counters[row["port"]].dropped_packets
    tiers = {link.index: link.tier for link in plan.graph.links}
    for name, tier in links["by_tier"].items():
        ports = [port for port in outcome.ports if tiers[port.link] == name]
        tier["links"] = len(ports) // 2
        tier["sent_bytes"] = sum(counters[port.name].sent_bytes for port in ports)
        tier["payload_bytes_expected"] = plan.tier_bytes.get(name, 0.0) * plan.iterations
    links["connections_by_top_switch"] = connections_by_top_switch(plan, outcome)
    return {"links": links, "queues": queues, "loss": loss_block(outcome.between, outcome.ports)}


def connections_by_top_switch(plan: Plan, outcome: Outcome) -> dict[str, int]:
    """How many connections cross each switch of the highest tier."""
    top = max((switch.tier for switch in plan.graph.switches), default=0)
    if not all(outcome.paths.values()):  # packets of a flow take several paths
        return {}
    names = [switch.name for switch in plan.graph.switches if switch.tier == top]
    return {name: sum(name in path for path in outcome.paths.values()) for name in names}


def _projected(plan: Plan, outcome: Outcome) -> dict[str, Any] | None:
    """The result in the target's units under --dilation K: rates times K, times divided by K.

    Bytes, packets and shares stay. Not scaled: the kernel's 200 ms least retransmission timeout, its
    delayed acknowledgements, CPU time per packet.
    """
    k, w = plan.experiment.dilation, _workload(plan, outcome)
    if k == 1:
        return None
    completion = w["completion_s"]
    return {"dilation": k, "rate_bps": plan.wire.rate_bps * k,
            "completion_s": completion / k if completion else None, "ideal_s": plan.ideal.ideal_s / k,
            "algbw_bps": w["algbw_bps"] * k if w["algbw_bps"] else None,
            "busbw_bps": w["busbw_bps"] * k if w["busbw_bps"] else None,
            "not_scaled": ["minimum retransmission timeout (200 ms)", "delayed acknowledgements (40 ms)",
                           "CPU time per packet"]}


def message_rows(listed: Sequence[Flow]) -> list[tuple[Any, ...]]:
    """Rows of flows.csv in the order of FLOW_COLUMNS."""
    return [tuple(getattr(flow, name) for name in FLOW_COLUMNS) for flow in listed]
