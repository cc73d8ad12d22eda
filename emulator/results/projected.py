"""The block `projected`: the result in the target's units, and what stands between it and the target.

Under --dilation K and --byte-scale S the target's rates are K times the emulated ones, and its bytes S times. What
models say is stretched by K / S throughout, so that their times are divided by that. Anything else has its times
multiplied by K whatever became of its bytes: what it is said to take is what 1/S of the bytes would take.
"""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from emulator.outcome import Outcome
from emulator.plan import Plan
from emulator.results.breakdown import projected_job
from emulator.results.workload import workload
from traffic.target import Target

KERNEL = ("minimum retransmission timeout (200 ms)", "delayed acknowledgements (40 ms)", "CPU time per packet")


def projected(plan: Plan, outcome: Outcome) -> dict[str, Any] | None:
    """None at the target's own rate, and with its own times. time_scale: emulated seconds a second of the target."""
    k, s, w = plan.experiment.dilation, plan.experiment.byte_scale, workload(plan, outcome)
    if plan.workload.target:
        return projected_job(plan, outcome, plan.workload.target, w["completion_s"])
    models = {job.name: job.workload.target for _, job in plan.running if job.workload.target}
    if k == 1 and (s == 1 or not models):
        return None
    scale, completion = k / s if len(models) == len(plan.running) else k, w["completion_s"]
    return {"dilation": k, "byte_scale": s, "time_scale": scale,
            "rate_bps": plan.wire.rate_bps * k, "delay_s": plan.wire.delay_s / scale,
            "completion_s": completion / scale if completion else None,
            "ideal_s": plan.ideal.ideal_s / scale if plan.ideal else None,
            "algbw_bps": w["algbw_bps"] * k if w["algbw_bps"] else None,
            "busbw_bps": w["busbw_bps"] * k if w["busbw_bps"] else None,
            "not_scaled": _not_scaled(k, s, models, len(plan.running))}


def _not_scaled(k: float, s: float, models: Mapping[str, Target], jobs: int) -> list[str]:
    """Sentences, each once; of `models` by job's name, and of `jobs` in all."""
    if len(models) == jobs:
        return list(dict.fromkeys(sentence for target in models.values() for sentence in target.lost))
    said = list(KERNEL)
    if s != 1:
        said.append(f"message sizes: completion is that of 1/{s:g} of the bytes")
    if s != 1 and models:
        said.append(f"times of {', '.join(models)}: a model's were multiplied by {k / s:g}, the others' by {k:g}")
    return said
