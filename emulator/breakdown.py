"""Where the time of an iteration goes: computing by phase, exposed communication by traffic class, waiting.

Means over ranks. A class's exposed communication is the time in which a rank communicates for it and
computes nothing; two classes at once count in both, so that the classes may add up to more than the
exposed communication of all. Idle: a rank neither computes nor communicates, it waits for others.

Bubble: of the time until the last backward pass has ended, the share in which a rank does none of what
its passes are made of: computing, and the communication within a pass. 1F1B with transfers that take no
time gives (p-1) / (m+p-1) (Narayanan et al., SC'21, section 2.2).
"""
from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from emulator.steptime import Interval, exposed, length, union
from traffic.pipeline import BACKWARD, FORWARD
from traffic.records import Iteration, Span

WITHIN_A_PASS = ("tensor", "expert", "parameters")
"""Traffic classes for which a pass stands still."""
AFTER_THE_PIPELINE = "optimizer"
UNNAMED = "other"


@dataclass(frozen=True)
class Breakdown:
    """One measured iteration; seconds. `bubble` is None where nothing went backward."""

    compute_s: dict[str, float]
    exposed_s: dict[str, float]
    idle_s: float
    bubble: float | None


def breakdowns(spans: Iterable[Span], iterations: Sequence[Iteration], ranks: int) -> list[Breakdown]:
    """The breakdown of each measured iteration, in their order."""
    of: dict[int, list[Span]] = defaultdict(list)
    for span in spans:
        of[span.iteration].append(span)
    return [_breakdown(of[each.index], each, ranks) for each in iterations if each.measured]


def _breakdown(spans: Sequence[Span], iteration: Iteration, ranks: int) -> Breakdown:
    compute: dict[str, list[list[Interval]]] = defaultdict(lambda: [[] for _ in range(ranks)])
    moved: dict[str, list[list[Interval]]] = defaultdict(lambda: [[] for _ in range(ranks)])
    for span in spans:
        kind, name = (compute, span.phase) if span.kind == "compute" else (moved, span.traffic_class)
        kind[name or UNNAMED][span.rank].append((span.start_s, min(span.end_s, iteration.end_s)))
    busy = [union(interval for lists in compute.values() for interval in lists[rank])
            for rank in range(ranks)]
    waited = 0.0
    for rank in range(ranks):
        all_of_it = [interval for lists in moved.values() for interval in lists[rank]]
        waited += iteration.end_s - iteration.start_s - length(union([*busy[rank], *all_of_it]))
    return Breakdown(
        {name: sum(length(union(each)) for each in lists) / ranks for name, lists in sorted(compute.items())},
        {name: sum(exposed(lists[rank], busy[rank]) for rank in range(ranks)) / ranks
         for name, lists in sorted(moved.items())},
        waited / ranks, _bubble(compute, moved, iteration, ranks))


def _bubble(compute: dict[str, list[list[Interval]]], moved: dict[str, list[list[Interval]]],
            iteration: Iteration, ranks: int) -> float | None:
    ends = [end for name in (FORWARD, BACKWARD) for each in compute.get(name, ()) for _, end in each]
    if BACKWARD not in compute or not ends or max(ends) <= iteration.start_s:
        return None
    end = max(ends)
    inside = [lists for name, lists in compute.items() if name != AFTER_THE_PIPELINE]
    inside += [lists for name, lists in moved.items() if name in WITHIN_A_PASS]
    worked = sum(length(union((start, min(stop, end)) for lists in inside for start, stop in lists[rank]))
                 for rank in range(ranks))
    return max(0.0, 1 - worked / ranks / (end - iteration.start_s))  # sums of many floats
