"""Several jobs as one schedule, for formats that know no jobs: one iteration of each, at its start."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from emulator.errors import BadInput
from emulator.plan import Plan
from traffic.schedule import PACE, Job, Kind, Op, Schedule

WhatEnds = tuple[tuple[int, int], ...]
"""(rank, index) of the operations with which a job ends"""


def as_one(plan: Plan) -> tuple[Schedule, tuple[int, ...]]:
    """(schedule, placement) of one iteration of each job that runs; without --only the ranks are the plan's.

    A job that starts later waits for its moment; one that comes after another waits for all that ends that
    one. Raises BadInput for a program and for background traffic, which no schedule holds.
    """
    workload = plan.workload
    if plan.program:
        raise BadInput("What the program of --run sends is known when it has run; export a --workload, or the fabric "
                       "alone (--topo).")
    if workload.background:
        raise BadInput("--background lasts until the jobs have ended, which no .cm and no GOAL schedule can say; "
                       "leave it out.")
    if not workload.jobs:
        return workload.schedule, workload.placement
    ranks: list[tuple[Op, ...]] = []
    ends: dict[int, WhatEnds] = {}
    for number, job in plan.running:
        ranks_of_job, ends[number] = _placed(job, len(ranks), ends)
        ranks += ranks_of_job
    return Schedule(workload.name, tuple(ranks)), tuple(
        host for _, job in plan.running for host in job.workload.placement)


def notes(plan: Plan) -> tuple[str, ...]:
    """What the run has and the schedule of `as_one` has not."""
    said = []
    if any(job.rounds > 1 for _, job in plan.running):
        rounds = ", ".join(f"{job.rounds} of {job.name}" for _, job in plan.running) if plan.workload.jobs else \
            str(plan.iterations)
        each = " of each job" if plan.workload.jobs else ""
        said.append(f"one iteration{each} is written; the run makes {rounds}, those to warm up included.")
    if plan.events:
        said.append(f"{len(plan.events)} events (--event) are left out.")
    return tuple(said)


def _placed(job: Job, first: int, ends: Mapping[int, WhatEnds]) -> tuple[list[tuple[Op, ...]], WhatEnds]:
    """(the operations of its ranks, which are first, first + 1, …; those that end it).

    `ends` are those of the jobs before; one that --only leaves out keeps nobody waiting, as in a run.
    """
    before = ends.get(job.after, ()) if job.after is not None else ()
    gate = [Op(Kind.COMPUTE, duration_s=job.start_s, phase=PACE, triggers=before)] if before or job.start_s else []
    own = job.workload.schedule.ranks
    ranks = [(*gate, *(_behind(op, first, len(gate)) for op in ops)) for ops in own]
    awaited = {(rank, dep) for rank, ops in enumerate(own) for op in ops for dep in op.deps}
    awaited |= {end for ops in own for op in ops for end in op.triggers}
    return ranks, tuple((first + rank, len(gate) + index) for rank, ops in enumerate(own)
                        for index in range(len(ops)) if (rank, index) not in awaited)


def _behind(op: Op, first: int, gate: int) -> Op:
    """The operation with ranks counted from `first` and `gate` operations before it in its rank's list, for which
    it waits if it waits for nothing else; but for a receive, whose message has waited for them."""
    free = not op.deps and not op.triggers and op.kind is not Kind.RECV
    return replace(op, deps=tuple(range(gate)) if free else tuple(dep + gate for dep in op.deps),
                   peer=op.peer + first if op.peer >= 0 else op.peer,
                   triggers=tuple((rank + first, index + gate) for rank, index in op.triggers))
