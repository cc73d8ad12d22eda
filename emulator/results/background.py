"""The block `background`: what became of the flows beside the jobs, by size.

The bins are those of the literature on short and long flows (Alizadeh et al., pFabric, SIGCOMM 2013,
5.1), divided by the byte scale: up to 100 kB, up to 10 MB, above. Here slowdown = FCT / (frames of the flow
at the rate of its slowest link + the connection's least round trip): flows.csv credits a flow alone with the
shaper's burst, which makes next to nothing of a flow of a few packets.
"""
from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy

from emulator.outcome import Outcome
from emulator.plan import Plan
from emulator.results.flows import Flow

BIN_ENDS_BYTES = (100e3, 10e6, math.inf)


def background(plan: Plan, outcome: Outcome, ended: Sequence[Flow]) -> dict[str, Any] | None:
    """None without a background. offered_load, carried_load: payload of the flows that began, and that
    ended, over what the hosts' links carry in the time of the replay."""
    back, engine = plan.workload.background, outcome.engine
    if back is None or engine is None:
        return None
    time_s = max(outcome.ended_s - outcome.started_s, 1e-9)
    open_bytes = sum(back.flows[number].size_bytes for number in engine.background_open)
    ended_bytes = sum(flow.bytes for flow in ended)
    room_bytes = len(back.hosts) * time_s / plan.wire.beta_s()
    return {"name": back.name, "hosts": len(back.hosts), "load": back.load,
            "traffic_class": back.traffic_class,
            "begun": len(ended) + len(engine.background_open), "ended": len(ended),
            "unfinished": len(engine.background_open), "ended_bytes": ended_bytes,
            "offered_load": (ended_bytes + open_bytes) / room_bytes, "carried_load": ended_bytes / room_bytes,
            "by_size": list(_bins(plan, ended))}


def _bins(plan: Plan, ended: Sequence[Flow]) -> Iterator[dict[str, Any]]:
    rate = {ends: plan.wire.link_rate_bps(link) for link in plan.graph.links
            for ends in ((link.a, link.b), (link.b, link.a))}
    above = 0.0
    for end in BIN_ENDS_BYTES:
        end /= plan.experiment.byte_scale
        flows = [flow for flow in ended if above < flow.bytes <= end]
        fct = [flow.fct_s for flow in flows]
        slowdown = [flow.fct_s / _alone_s(plan, flow, rate) for flow in flows]
        yield {"above_bytes": above, "up_to_bytes": None if math.isinf(end) else end, "flows": len(flows),
               "bytes": sum(flow.bytes for flow in flows),
               "fct_mean_s": float(numpy.mean(fct)) if fct else None,
               "fct_p50_s": _percentile(fct, 50), "fct_p99_s": _percentile(fct, 99),
               "slowdown_p50": _percentile(slowdown, 50), "slowdown_p99": _percentile(slowdown, 99)}
        above = end


def _alone_s(plan: Plan, flow: Flow, rate_bps: Mapping[tuple[str, str], float]) -> float:
    """At the rate of the slowest link from the first bit on: without the burst that flow.ideal_s credits."""
    nodes = flow.path.split()
    slowest_bps = min((rate_bps[ends] for ends in zip(nodes, nodes[1:])), default=plan.wire.rate_bps)
    return flow.ideal_s + 8 * min(plan.wire.frames_bytes(flow.bytes), plan.wire.burst_bytes) / slowest_bps


def _percentile(values: Sequence[float], q: float) -> float | None:
    return float(numpy.percentile(values, q)) if values else None
