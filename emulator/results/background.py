"""The block `background`: what became of the flows beside the jobs, by size.

The bins are those of the literature on short and long flows (Alizadeh et al., pFabric, SIGCOMM 2013,
5.1), divided by the byte scale: up to 100 kB, up to 10 MB, above.
"""
from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
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
    return {"name": back.name, "hosts": len(back.hosts), "load": back.load, "traffic_class": back.traffic_class,
            "begun": len(ended) + len(engine.background_open), "ended": len(ended),
            "unfinished": len(engine.background_open), "ended_bytes": ended_bytes,
            "offered_load": (ended_bytes + open_bytes) / room_bytes, "carried_load": ended_bytes / room_bytes,
            "by_size": list(_bins(ended, plan.experiment.byte_scale))}


def _bins(ended: Sequence[Flow], byte_scale: float) -> Iterator[dict[str, Any]]:
    above = 0.0
    for end in BIN_ENDS_BYTES:
        end /= byte_scale
        flows = [flow for flow in ended if above < flow.bytes <= end]
        fct, slowdown = ([getattr(flow, name) for flow in flows] for name in ("fct_s", "slowdown"))
        yield {"above_bytes": above, "up_to_bytes": None if math.isinf(end) else end, "flows": len(flows),
               "bytes": sum(flow.bytes for flow in flows), "fct_mean_s": float(numpy.mean(fct)) if fct else None,
               "fct_p50_s": _percentile(fct, 50), "fct_p99_s": _percentile(fct, 99),
               "slowdown_p50": _percentile(slowdown, 50), "slowdown_p99": _percentile(slowdown, 99)}
        above = end


def _percentile(values: Sequence[float], q: float) -> float | None:
    return float(numpy.percentile(values, q)) if values else None
