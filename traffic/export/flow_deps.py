"""What each message of a schedule waits for, said in messages only.

Formats such as htsim's know flows and what starts them, no computing. Between two messages of a rank
may stand computes, reduces and joins; here they are followed back to the messages before them.
"""
from __future__ import annotations

from dataclasses import dataclass

from traffic.dag import Dag
from traffic.schedule import Kind

End = tuple[int, str]
"""(send node, 'send' or 'recv'): that its last byte was acknowledged, or that it has arrived"""


@dataclass(frozen=True)
class Waits:
    """`ends` must be over before a message is sent. `after_s` is the longest time that computes on
    the way take; with no ends it is when the message starts.
    """

    ends: frozenset[End]
    after_s: float


def waits_of_sends(graph: Dag) -> dict[int, Waits]:
    """send node -> what it waits for, for a graph without cycles. Ends that others imply are left out."""
    send_of = {recv: send for send, recv in graph.match.items()}
    ends: list[frozenset[End]] = [frozenset()] * len(graph.ops)
    after_s = [0.0] * len(graph.ops)
    found: dict[int, Waits] = {}
    for node in graph.order():
        op, base = graph.ops[node], graph.first[graph.rank[node]]
        before = [base + dep for dep in op.deps] + [graph.first[r] + i for r, i in op.triggers]
        gathered = frozenset().union(*(ends[each] for each in before))
        waited_s = max((after_s[each] for each in before), default=0.0)
        if op.kind is Kind.SEND:
            found[node] = Waits(_implied_left_out(gathered, found), waited_s)
            ends[node] = frozenset({(node, "send")})
        elif op.kind is Kind.RECV:
            ends[node] = _implied_left_out(gathered | {(send_of[node], "recv")}, found)
            after_s[node] = waited_s if gathered else 0.0
        else:
            # several messages before a join: only the last of each chain is carried on
            ends[node] = _implied_left_out(gathered, found) if len(before) > 1 else gathered
            after_s[node] = waited_s + op.duration_s
    return found


def _implied_left_out(ends: frozenset[End], found: dict[int, Waits]) -> frozenset[End]:
    """Without those that another one of them waited for already."""
    implied = {(send, "recv") for send, end in ends if end == "send"}
    for send, _ in ends:
        implied |= found[send].ends
    return ends - implied if len(ends) > 1 else ends
