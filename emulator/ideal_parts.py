"""The parts of an iteration on a perfect fabric: what the simulation of a schedule says of its spans."""
from __future__ import annotations

from emulator.breakdown import Breakdown, breakdowns
from traffic.dag import message_ends
from traffic.records import Iteration, Span
from traffic.schedule import PACE, Kind, Op, Schedule
from traffic.simulate import Simulated


def ideal_breakdown(schedule: Schedule, simulated: Simulated) -> Breakdown | None:
    """As `breakdowns` gives it of a run; None for a schedule that computes nothing."""
    if not any(_computes(op) for ops in schedule.ranks for op in ops):
        return None
    whole = Iteration(0, True, 0.0, simulated.completion_s)
    (parts,) = breakdowns(spans(schedule, simulated), [whole], len(schedule.ranks))
    return parts


def spans(schedule: Schedule, simulated: Simulated) -> list[Span]:
    """What each rank does when, in seconds from the iteration's start; as the engine records it: a send from
    its issue to its acknowledgement, a recv from its posting or the send's issue, whichever is later."""
    made = []
    begin_s = [[max((ends[dep] for dep in op.deps), default=0.0) for op in ops]
               for ops, ends in zip(schedule.ranks, simulated.end_s)]
    for rank, ops in enumerate(schedule.ranks):
        for other, index, into in ((other, index, number) for number, op in enumerate(ops)
                                   for other, index in op.triggers):
            begin_s[rank][into] = max(begin_s[rank][into], simulated.end_s[other][index])
    sends, recvs = message_ends(schedule)
    issued_s = {(key[1], recv): begin_s[key[0]][send] for key, listed in sends.items()
                for send, recv in zip(listed, recvs[key])}
    for rank, ops in enumerate(schedule.ranks):
        for number, op in enumerate(ops):
            start_s, end_s = begin_s[rank][number], simulated.end_s[rank][number]
            if op.kind is Kind.RECV:
                start_s = max(start_s, issued_s[rank, number])
            if op.kind in (Kind.SEND, Kind.RECV) or _computes(op):
                made.append(Span(0, rank, op.kind.value, op.phase, op.step, min(start_s, end_s), end_s,
                                 op.traffic_class))
    return made


def _computes(op: Op) -> bool:
    """Whether it takes time of its rank; to wait for a moment does not, in a run neither."""
    return bool(op.duration_s) and op.phase != PACE
