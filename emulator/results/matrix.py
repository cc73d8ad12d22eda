"""The traffic matrix: bytes from rank to rank, as planned and as they arrived, over all iterations."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy

from emulator.outcome import Outcome
from emulator.plan import Plan
from traffic.load import traffic_matrix

MATRIX_COLUMNS = ("job", "src_rank", "dst_rank", "src", "dst", "planned_bytes", "measured_bytes")


@dataclass(frozen=True)
class Matrix:
    """planned, measured: int64, shape (ranks, ranks), row sends to column; `labels` name the ranks."""

    planned: numpy.ndarray
    measured: numpy.ndarray
    labels: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]


def matrix(plan: Plan, outcome: Outcome) -> Matrix:
    """Over all jobs that run; the background is not in it. Measured is what was read and acknowledged."""
    w, hosts = plan.workload, plan.graph.hosts
    ranks = len(w.placement)
    planned, measured = (numpy.zeros((ranks, ranks), dtype=numpy.int64) for _ in range(2))
    owner = [(job.name if w.jobs else "", rank) for job in w.parts for rank in range(job.ranks)]
    for _, job in plan.running:
        own = slice(job.first_rank, job.first_rank + job.ranks)
        planned[own, own] = traffic_matrix(job.workload.schedule) * job.rounds
    for message in outcome.engine.messages if outcome.engine else ():
        measured[message.src, message.dst] += message.size_bytes
    pairs = zip(*(found.tolist() for found in numpy.nonzero(planned + measured)))
    names = [hosts[index].name for index in w.placement]
    rows = tuple((*owner[a], owner[b][1], names[a], names[b], int(planned[a, b]), int(measured[a, b]))
                 for a, b in pairs)
    return Matrix(planned, measured, tuple(f"{name} {rank}".strip() for name, rank in owner), rows)
