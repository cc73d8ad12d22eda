"""What the workload took: completion, bandwidths, iterations.

Collective time = barrier to barrier, the largest over ranks; algbw and busbw as nccl-tests defines them.
Of several jobs the completion is from the replay's start to the last one's end.
"""
from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy

from emulator.outcome import Outcome
from emulator.plan import Plan
from emulator.results.breakdown import broken_down, ideally_broken_down
from emulator.results.jobs import makespan_s
from emulator.steptime import iteration_times
from traffic.formulas import algbw_bps, busbw_bps
from traffic.load import pairs
from traffic.records import Iteration


def workload(plan: Plan, outcome: Outcome) -> dict[str, Any]:
    w, engine = plan.workload, outcome.engine
    ideal_s = plan.ideal.ideal_s if plan.ideal else None  # a real program has none
    ranks = len(w.schedule.ranks)
    measured = [i for i in engine.iterations if i.measured] if engine else []
    completion = sum(i.end_s - i.start_s for i in measured) / len(measured) if measured else None
    if w.jobs:  # iterations are each job's own, see the block `jobs`
        completion, measured = makespan_s(plan, outcome), []
    collective, senders = w.collective, _senders(plan, outcome)
    bandwidths = (None, None)
    if collective and completion:
        bandwidths = (algbw_bps(collective.size_bytes, completion),
                      busbw_bps(collective.name, ranks, collective.size_bytes, completion))
    goodput = _goodput_bps(plan, outcome)
    wire_bps = senders * plan.wire.rate_bps
    return {
        "name": w.name, "ranks": ranks, "completion_s": completion, "ideal_s": ideal_s,
        "efficiency": ideal_s / completion if completion and ideal_s is not None else None,
        "algbw_bps": bandwidths[0], "busbw_bps": bandwidths[1],
        "goodput_bps": goodput, "host_links_bps": wire_bps,
        "host_links_share": goodput / wire_bps if goodput is not None and wire_bps else None,
        "iterations": _iterations(plan, outcome, measured),
        "breakdown": broken_down(plan, outcome), "ideal_breakdown": ideally_broken_down(plan),
        "bytes_sent": engine.bytes_expected if plan.program and engine else
        sum(job.workload.schedule.bytes_sent * job.rounds for _, job in plan.running),
        "bytes_received": engine.bytes_received if engine else 0,
        "verified": bool(engine and engine.verified),
        "checksum_errors": engine.checksum_errors if engine else 0,
        "wrong_values": engine.wrong_values if engine else 0,
        "stuck": list(engine.stuck) if engine else []}


def _iterations(plan: Plan, outcome: Outcome, measured: list[Iteration]) -> list[dict[str, Any]]:
    """Each measured iteration; when a real program computes, only itself knows."""
    engine = outcome.engine
    if engine is None:
        return []
    times = [asdict(t) for t in iteration_times(engine.spans, measured, len(plan.workload.schedule.ranks))]
    unknown = dict.fromkeys(("compute_s", "exposed_comm_s", "network_share")) if plan.program else {}
    return [{**time, **unknown} for time in times]


def _senders(plan: Plan, outcome: Outcome) -> int:
    """How many host links can be busy at once: no more senders than receivers, nor the reverse."""
    used = pairs(plan.workload.schedule)
    if plan.program and outcome.engine:
        used = [connection.key for connection in outcome.engine.connections]
    return min(len({key[0] for key in used}), len({key[1] for key in used})) if used else 0


def _goodput_bps(plan: Plan, outcome: Outcome) -> float | None:
    """Payload received by all hosts a second, from the replay's first measured start until the first
    message of that iteration is done or, where messages depend on one another, until its end.

    None for several jobs, and for an iteration that took no time. While all flows of a pattern run, this is the sum of their rates: what long flows
    reach.
    """
    engine = outcome.engine
    measured = [i for i in engine.iterations if i.measured] if engine else []
    if not measured or len(engine.received) < 2 or plan.workload.jobs:
        return None
    first = measured[0]
    ordered = any(op.deps or op.triggers for ops in plan.workload.schedule.ranks for op in ops)
    independent = plan.program is None and not ordered
    of_it = [m for m in engine.messages if m.iteration == first.index]
    end = min(m.received_s for m in of_it) if independent and of_it else first.end_s
    if end <= first.start_s:
        return None
    times, received = (numpy.array(column) for column in zip(*engine.received))
    got = numpy.interp((first.start_s, end), times, received)
    return float(8 * (got[1] - got[0]) / (end - first.start_s))
