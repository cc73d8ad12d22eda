"""A schedule as one graph: every operation of every rank a node, every 'must finish first' an edge.

Checking, interpreting and simulating all walk this graph. Its edges are the dependencies, the
triggers, and from each send to the receive that it matches (sends are buffered: a send never waits
for its receive to be posted, as over TCP with an engine that always reads).
"""
from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from traffic.schedule import Kind, Op, Schedule


Ends = dict[tuple[int, int, int, int], list[int]]
"""(source, destination, tag, channel) -> indices into the list of the rank at this end"""


@dataclass(frozen=True)
class Dag:
    """Nodes are numbered rank by rank: operation i of rank r is node first[r] + i."""

    ops: list[Op]
    rank: list[int]
    first: list[int]
    match: dict[int, int]
    """send node -> its receive node"""
    followers: list[list[int]]
    """nodes that wait for this one"""
    waits: list[int]
    """how many edges lead into each node"""

    def order(self) -> list[int]:
        """All nodes that can ever run, each after what it waits for; all nodes unless there is a cycle."""
        waits = self.waits.copy()
        done = [node for node, count in enumerate(waits) if not count]
        for node in done:  # grows while it is walked
            for follower in self.followers[node]:
                waits[follower] -= 1
                if not waits[follower]:
                    done.append(follower)
        return done


def dag(schedule: Schedule, ends: tuple[Ends, Ends] | None = None) -> Dag:
    """The graph of a schedule whose indices are in range and whose messages match (see `check`).

    `ends` is `message_ends(schedule)` where the caller has it already.
    """
    ops: list[Op] = []
    rank: list[int] = []
    first: list[int] = []
    for r, rank_ops in enumerate(schedule.ranks):
        first.append(len(ops))
        ops.extend(rank_ops)
        rank.extend([r] * len(rank_ops))
    followers: list[list[int]] = [[] for _ in ops]
    waits = [0] * len(ops)
    for node, op in enumerate(ops):
        for dep in op.deps:
            followers[first[rank[node]] + dep].append(node)
        for other, index in op.triggers:
            followers[first[other] + index].append(node)
        waits[node] = len(op.deps) + len(op.triggers)
    match: dict[int, int] = {}
    sends, recvs = ends or message_ends(schedule)
    for key, indices in sends.items():
        source, destination = key[:2]
        for send, recv in zip(indices, recvs[key], strict=True):
            send_node, recv_node = first[source] + send, first[destination] + recv
            match[send_node] = recv_node
            followers[send_node].append(recv_node)
            waits[recv_node] += 1
    return Dag(ops, rank, first, match, followers, waits)


def message_ends(schedule: Schedule) -> tuple[Ends, Ends]:
    """Sends and receives by (source, destination, tag, channel), as indices into the rank's list.

    The k-th send of a key matches the k-th receive of the same key.
    """
    sends: Ends = defaultdict(list)
    recvs: Ends = defaultdict(list)
    for r, ops in enumerate(schedule.ranks):
        for index, op in enumerate(ops):
            if op.kind is Kind.SEND:
                sends[r, op.peer, op.tag, op.channel].append(index)
            elif op.kind is Kind.RECV:
                recvs[op.peer, r, op.tag, op.channel].append(index)
    return sends, recvs
