"""The block `jobs`: a row for each job, also where there is only one.

completion_s is the mean of its measured iterations, barrier to barrier over its own ranks; ideal_s what
an iteration would take with nobody else on a perfect fabric; slowdown = completion_s / ideal_s. simulated_s
is the same by simulation of the very schedule, slices included, where ideal_s has a closed form.
"""
from __future__ import annotations

from typing import Any

from emulator.outcome import Outcome
from emulator.plan import Plan
from traffic.formulas import algbw_bps, busbw_bps
from traffic.fluid import EXPECTED_SEEDS, ROUTINGS, expected_share
from traffic.paths import Paths
from traffic.records import Iteration
from traffic.schedule import Job


def jobs(plan: Plan, outcome: Outcome) -> list[dict[str, Any]]:
    """Rows in the order of the jobs; of one that did not run, or not to its end, times are null.
    A real program is none."""
    if plan.program:
        return []
    return [_row(plan, outcome, number, job) for number, job in enumerate(plan.workload.parts)]


def iterations_of(outcome: Outcome, number: int) -> list[Iteration]:
    """The iterations of a job that came to their end."""
    return [i for i in outcome.engine.iterations if i.job == number] if outcome.engine else []


def makespan_s(plan: Plan, outcome: Outcome) -> float | None:
    """From the start of the replay to the end of the last job; None unless all that should run have ended."""
    ends = []
    for number, job in plan.running:
        done = iterations_of(outcome, number)
        if len(done) < job.rounds:
            return None
        ends.append(done[-1].end_s)
    return max(ends) - outcome.started_s


def _row(plan: Plan, outcome: Outcome, number: int, job: Job) -> dict[str, Any]:
    w, done, ideal = job.workload, iterations_of(outcome, number), plan.alone[number]
    times = [i.end_s - i.start_s for i in done if i.measured]
    completion = sum(times) / len(times) if len(done) == job.rounds else None
    bandwidths: tuple[float | None, float | None] = (None, None)
    if w.collective and completion:
        bandwidths = (algbw_bps(w.collective.size_bytes, completion),
                      busbw_bps(w.collective.name, job.ranks, w.collective.size_bytes, completion))
    engine, runs = outcome.engine, plan.only is None or number in plan.only
    return {
        "name": job.name, "workload": w.name, "algorithm": w.schedule.name, "ranks": job.ranks,
        "hosts": [plan.graph.hosts[index].name for index in w.placement], "runs": runs,
        "start_s": done[0].start_s - outcome.started_s if done else None,
        "end_s": done[-1].end_s - outcome.started_s if len(done) == job.rounds else None,
        "iterations": w.iterations, "warmup": w.warmup, "completion_s": completion, "iteration_s": times,
        "ideal_s": ideal.ideal_s, "simulated_s": ideal.simulated.delivered_s,
        "efficiency": ideal.ideal_s / completion if completion else None,
        "slowdown": completion / ideal.ideal_s if completion and ideal.ideal_s else None,
        "expected_efficiency": _expected(plan, job),
        "collective": w.collective and w.collective.name,
        "size_bytes": w.collective and w.collective.size_bytes,
        "algbw_bps": bandwidths[0], "busbw_bps": bandwidths[1],
        "bytes_sent": w.schedule.bytes_sent * job.rounds if runs else 0,
        "wrong_values": engine.wrong_by_job[number] if engine and engine.verified else None}


def _expected(plan: Plan, job: Job) -> float | None:
    """The mean efficiency that the fluid model gives the job alone; None for routings beyond it."""
    if plan.expected is not None and not plan.workload.jobs:
        return plan.expected.efficiency.mean
    if plan.experiment.routing not in ROUTINGS or not job.workload.schedule.bytes_sent:
        return None
    return expected_share(job.workload, Paths(plan.graph), plan.experiment.routing,
                          range(EXPECTED_SEEDS)).efficiency.mean
