"""Iteration breakdown: compute, communication that no compute hides, and the network's share.

Exposed communication of a rank = |union(communication) minus union(compute)|; an iteration's figures are
the means over ranks, its time is barrier to barrier. Network share = exposed / iteration.
"""
from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from traffic.records import Iteration, Span

Interval = tuple[float, float]


@dataclass(frozen=True)
class IterationTime:
    """One measured iteration; seconds, and network_share from 0 to 1."""

    time_s: float
    compute_s: float
    exposed_comm_s: float
    network_share: float


def union(intervals: Iterable[Interval]) -> list[Interval]:
    """Disjoint, sorted intervals that cover the same time."""
    merged: list[Interval] = []
    for start, end in sorted(intervals):
        if end <= start:
            continue
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged


def length(intervals: Iterable[Interval]) -> float:
    """Total length in seconds of disjoint intervals."""
    return sum(end - start for start, end in intervals)


def exposed(communication: Iterable[Interval], compute: Iterable[Interval]) -> float:
    """Seconds of communication during which the rank computed nothing."""
    comm, busy = union(communication), union(compute)
    return length(union([*comm, *busy])) - length(busy)


def iteration_times(spans: Iterable[Span], iterations: Sequence[Iteration],
                    ranks: int) -> list[IterationTime]:
    """The breakdown of each measured iteration."""
    compute: dict[tuple[int, int], list[Interval]] = defaultdict(list)
    communication: dict[tuple[int, int], list[Interval]] = defaultdict(list)
    for span in spans:
        kind = compute if span.kind == "compute" else communication
        kind[span.iteration, span.rank].append((span.start_s, span.end_s))
    times = []
    for iteration in iterations:
        if not iteration.measured:
            continue
        end, total = iteration.end_s, iteration.end_s - iteration.start_s
        hidden = [exposed(((s, min(e, end)) for s, e in communication[iteration.index, rank]),
                          compute[iteration.index, rank]) for rank in range(ranks)]
        busy = [length(union(compute[iteration.index, rank])) for rank in range(ranks)]
        mean = sum(hidden) / ranks
        times.append(IterationTime(total, sum(busy) / ranks, mean, mean / total if total > 0 else 0.0))
    return times
