"""A training job's iteration in parts, and the same in the seconds of the real cluster."""
from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import asdict
from typing import Any

from emulator.breakdown import UNNAMED, Breakdown, breakdowns
from emulator.ideal_parts import ideal_breakdown
from emulator.outcome import Outcome
from emulator.plan import Plan
from traffic.target import Target


def broken_down(plan: Plan, outcome: Outcome) -> list[dict[str, Any]]:
    """Of each measured iteration that computes: `compute_s` by phase, `exposed_s` and `bytes_sent` (payload
    of all ranks) by traffic class, `idle_s`, `bubble` and `ideal_bubble` (null where no pipeline is known).
    """
    if plan.workload.jobs or plan.program:  # their iterations are apart
        return []
    target, sent = plan.workload.target, _bytes_sent(outcome)
    return [{**asdict(each), "bytes_sent": dict(sorted(sent[index].items())),
             "ideal_bubble": target.ideal_bubble if target else None}
            for index, each in zip(_measured(outcome), _parts(plan, outcome)) if each.compute_s]


def ideally_broken_down(plan: Plan) -> dict[str, Any] | None:
    """The same of an iteration on a perfect fabric; null for a workload that computes nothing."""
    if plan.workload.jobs or plan.program:
        return None
    parts = ideal_breakdown(plan.workload.schedule, plan.ideal.simulated)
    return parts and asdict(parts)


def _measured(outcome: Outcome) -> list[int]:
    return [each.index for each in outcome.engine.iterations if each.measured] if outcome.engine else []


def _bytes_sent(outcome: Outcome) -> dict[int, Counter[str]]:
    """Payload by iteration and traffic class."""
    sent: dict[int, Counter[str]] = defaultdict(Counter)
    for message in outcome.engine.messages if outcome.engine else ():
        sent[message.iteration][message.traffic_class or UNNAMED] += message.size_bytes
    return sent


def projected_job(plan: Plan, outcome: Outcome, target: Target, completion_s: float | None) -> dict[str, Any]:
    """The mean iteration divided by K / S, and what it says of the real cluster: tokens a second and
    model FLOPs utilisation, of a run and of the ideal one."""
    parts = _parts(plan, outcome)
    scale = target.time_scale
    real_s, ideal_s = completion_s and completion_s / scale, plan.ideal.ideal_s / scale
    return {
        "dilation": target.dilation, "byte_scale": target.byte_scale, "time_scale": scale,
        "rate_bps": target.rate_bps, "completion_s": real_s, "ideal_s": ideal_s,
        "compute_s": {name: value / scale for name, value in _mean(parts, "compute_s").items()},
        "exposed_s": {name: value / scale for name, value in _mean(parts, "exposed_s").items()},
        "idle_s": sum(each.idle_s for each in parts) / len(parts) / scale if parts else None,
        "tokens_per_s": target.tokens / real_s if real_s else None,
        "mfu": target.mfu(completion_s) if completion_s else None,
        "ideal_mfu": target.mfu(plan.ideal.ideal_s),
        "not_scaled": list(target.lost)}


def _parts(plan: Plan, outcome: Outcome) -> list[Breakdown]:
    engine = outcome.engine
    return breakdowns(engine.spans, engine.iterations, len(plan.workload.schedule.ranks)) if engine else []


def _mean(parts: list[Breakdown], field: str) -> dict[str, float]:
    names = {name for each in parts for name in getattr(each, field)}
    return {name: sum(getattr(each, field).get(name, 0.0) for each in parts) / len(parts)
            for name in sorted(names)}
