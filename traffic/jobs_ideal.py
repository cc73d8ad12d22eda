"""Ideal times of several jobs: each alone on the fabric, and all of them together."""
from __future__ import annotations

from collections.abc import Sequence

import numpy

from traffic.ideal import Ideal, ideal
from traffic.load import busiest, link_bytes
from traffic.paths import Paths
from traffic.schedule import Workload
from traffic.simulate import Simulated
from traffic.wire import Wire


def alone(workload: Workload, paths: Paths, wire: Wire) -> tuple[Ideal, ...]:
    """Of one iteration of each job, with nobody else on the fabric."""
    return tuple(ideal(job.workload, paths, wire) for job in workload.parts)


def together(workload: Workload, each: Sequence[Ideal], paths: Paths, wire: Wire,
             only: frozenset[int] | None = None) -> Ideal:
    """From the first job's start to the last one's end; of a workload that is one job, of one iteration.

    No sooner than any job could be done alone, nor than the busiest link could carry what all of them
    send. Between these bounds it depends on who waits for whom, so that jobs that contend may not reach it.
    """
    if not workload.jobs:
        return each[0]
    end_s: list[float] = []
    for job, perfect in zip(workload.jobs, each):
        waits_s = 0.0 if job.after is None else end_s[job.after]
        runs = only is None or len(end_s) in only
        end_s.append(waits_s + job.start_s + job.rounds * perfect.ideal_s if runs else 0.0)
    simulated = Simulated((), max(end_s), max(end_s))
    worst = busiest(total_link_bytes(workload, paths, only), paths.graph, wire)
    return Ideal(max(max(end_s), worst.time_s if worst else 0.0), None, simulated, worst)


def total_link_bytes(workload: Workload, paths: Paths, only: frozenset[int] | None = None) -> numpy.ndarray:
    """Payload over each link of all iterations of all jobs, warming ones too; shape as of `link_bytes`."""
    loads = [link_bytes(job.workload.schedule, job.workload.placement, paths) * job.rounds
             for number, job in enumerate(workload.parts) if only is None or number in only]
    return sum(loads[1:], loads[0])
