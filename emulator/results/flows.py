"""Flows: one delivered message a row, with its ideal time, and what all of them say together.

FCT = last byte acknowledged - start; slowdown = FCT / FCT alone on the path (the connection's least round
trip, and the time of the bytes beyond the shaper's burst at the slowest link).
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy

from emulator.outcome import Outcome
from emulator.plan import Plan
from traffic.paths import Paths
from traffic.records import ConnectionKey, Message


@dataclass(frozen=True)
class Flow:
    """One delivered message. start_s counts from the replay's start; path is 'h1 e0_0 … h16'. Ranks are
    those of its job.

    Of a real program it is all that one end of a connection sent, from its first sight to its last byte sent,
    and has no ideal time. src_port, dst_port: TCP ports of its connection, which decide the path under ECMP.
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
    ideal_s: float | None
    slowdown: float | None
    retransmits: int
    path: str
    traffic_class: str
    job: str


FLOW_COLUMNS = tuple(Flow.__dataclass_fields__)


def flows(plan: Plan, outcome: Outcome) -> list[Flow]:
    """Every message of the jobs, in order of start."""
    return _listed(plan, outcome, outcome.engine.messages) if outcome.engine else []


def background_flows(plan: Plan, outcome: Outcome) -> list[Flow]:
    """Every flow of the background that ended, in order of start."""
    return _listed(plan, outcome, outcome.engine.background) if outcome.engine else []


def _listed(plan: Plan, outcome: Outcome, messages: Sequence[Message]) -> list[Flow]:
    links = {link.index: link for link in plan.graph.links}
    nodes = {key: " ".join(outcome.nodes(path)) for key, path in outcome.paths.items()}
    shortest = Paths(plan.graph)
    without_delay = replace(plan.wire, delay_s=0.0)  # the least round trip has the delays in it
    ideal: dict[tuple[ConnectionKey, int], float] = {}
    hosts = [plan.graph.hosts[index].name for index in plan.workload.endpoints]
    # what a rank belongs to: (first rank, warming iterations, name); the background's ends stand behind all
    owner = [(job.first_rank, job.workload.warmup, job.name if plan.workload.jobs else "")
             for job in plan.workload.parts for _ in range(job.ranks)]
    owner += [(len(owner), 0, "background")] * (len(hosts) - len(owner))
    connection = {c.key: c for c in outcome.engine.connections}
    listed = []
    for message in sorted(messages, key=lambda m: m.start_s):
        key = ConnectionKey(message.src, message.dst, message.channel, message.traffic_class)
        path = outcome.paths.get(key, ())
        if (key, message.size_bytes) not in ideal:
            crossed = ([links[outcome.port[name].link] for name in path]
                       or shortest.first_links(hosts[key.src], hosts[key.dst]))
            ideal[key, message.size_bytes] = (without_delay.ideal_fct_s(crossed, message.size_bytes)
                                              + connection[key].info.min_rtt_s)
        alone = ideal[key, message.size_bytes] if plan.program is None else None
        fct, (first, warmup, job) = message.acked_s - message.start_s, owner[key.src]
        listed.append(Flow(
            message.iteration, message.iteration >= warmup, hosts[key.src], hosts[key.dst],
            key.src - first, key.dst - first, key.channel, connection[key].src_port, connection[key].dst_port,
            message.phase, message.step, message.size_bytes,
            message.start_s - outcome.started_s, fct, alone, fct / alone if alone else None,
            message.retransmits, nodes.get(key, ""), message.traffic_class, job))
    return listed


def statistics(listed: Sequence[Flow]) -> dict[str, Any]:
    """Of the measured flows; slowdowns are null where a flow has no ideal time, as those of real programs."""
    measured = [flow for flow in listed if flow.measured]
    fct = [flow.fct_s for flow in measured]
    slowdown = [flow.slowdown for flow in measured if flow.slowdown is not None]
    slowdown = slowdown if len(slowdown) == len(measured) else []
    return {"count": len(measured), "fct_mean_s": float(numpy.mean(fct)) if fct else None,
            "fct_p50_s": _percentile(fct, 50), "fct_p99_s": _percentile(fct, 99),
            "fct_max_s": max(fct, default=None),
            "slowdown_p50": _percentile(slowdown, 50), "slowdown_p99": _percentile(slowdown, 99)}


def _percentile(values: Sequence[float], percent: float) -> float | None:
    return float(numpy.percentile(values, percent)) if values else None


def message_rows(listed: Sequence[Flow]) -> list[tuple[Any, ...]]:
    """Rows of flows.csv in the order of FLOW_COLUMNS."""
    return [tuple(getattr(flow, name) for name in FLOW_COLUMNS) for flow in listed]
