"""The ideal completion of any schedule: a LogGP-like event simulation of an uncontended fabric.

(Alexandrov et al., LogGP, SPAA 1995.) A host sends one message at a time and receives one at a
time, each at the goodput of its link; between them lies the base one-way delay of the pair; the
fabric in between never makes anybody wait. Computes take their duration, reduces none. What this
leaves out, the links shared inside the fabric, is the bound of `load.busiest`.
"""
from __future__ import annotations

import heapq
import math
from collections import deque
from dataclasses import dataclass

from traffic.dag import dag
from traffic.load import pairs
from traffic.paths import Paths
from traffic.schedule import Kind, Schedule
from traffic.wire import Wire


@dataclass(frozen=True)
class Simulated:
    """When each operation ends, as [rank][index] in seconds, and when the last one does.

    A send ends when its last byte is acknowledged, a receive when its last byte is there. delivered_s: when
    all is there and computed, which is where a run's iteration ends.
    """

    end_s: tuple[tuple[float, ...], ...]
    completion_s: float
    delivered_s: float


def simulate(schedule: Schedule, placement: tuple[int, ...], paths: Paths, wire: Wire) -> Simulated:
    """Run a checked schedule on the fabric of `paths` with nobody else on it.

    The messages of one connection leave in the order in which they become ready; a host serves its
    connections in turn, as sockets share a link.
    """
    graph = dag(schedule)
    costs = _Costs(schedule, placement, paths, wire)
    waits, end_s = graph.waits.copy(), [0.0] * len(graph.ops)
    queues = [_Turns() for _ in placement]
    recv_free_s = [-math.inf] * len(placement)
    events: list[tuple[float, int, int, int, float]] = []  # (time, order of creation, what, node, value)
    made = 0

    def later(time_s: float, what: int, node: int, value: float = 0.0) -> None:
        nonlocal made
        made += 1
        heapq.heappush(events, (time_s, made, what, node, value))

    def cost(node: int) -> _Cost:
        op = graph.ops[node]
        return costs.of(graph.rank[node], op.peer, op.size_bytes)

    def leave(node: int, now_s: float) -> None:
        its, turns = cost(node), queues[graph.rank[node]]
        # a link that was idle is ahead by its burst
        turns.free_s = max(turns.free_s, now_s - wire.burst_s) + its.send_s
        left_s = max(now_s, turns.free_s)
        later(now_s + its.alpha_s, _ARRIVES, node, max(now_s + its.alone_s, left_s + its.alpha_s))
        if turns.waiting:
            later(turns.free_s, _FREE, node)

    def start(ready: list[int], now_s: float) -> None:
        """Start these nodes, and all that end at once and what they release."""
        for node in ready:  # grows while it is walked
            op = graph.ops[node]
            if op.kind is Kind.SEND:
                turns = queues[graph.rank[node]]
                if turns.waiting:
                    turns.put((op.peer, op.channel), node)
                elif now_s < turns.free_s:
                    turns.put((op.peer, op.channel), node)
                    later(turns.free_s, _FREE, node)
                else:
                    leave(node, now_s)
            elif op.duration_s:
                later(now_s + op.duration_s, _ENDS, node)
            else:
                end_s[node] = now_s
                ready.extend(release(graph.followers[node]))

    def release(followers: list[int], unless: int = -1) -> list[int]:
        """Count one wait off each; those that wait for nothing more."""
        free = []
        for follower in followers:
            if follower != unless:
                waits[follower] -= 1
                if not waits[follower]:
                    free.append(follower)
        return free

    start([node for node, count in enumerate(waits) if not count], 0.0)
    while events:
        now_s, _, what, node, value = heapq.heappop(events)
        if what == _FREE:  # the link of this node's host, and somebody waits for it
            leave(queues[graph.rank[node]].take(), now_s)
        elif what == _ARRIVES:  # the first byte meets the receiver's link; value: when it would end alone
            peer = graph.ops[node].peer
            recv_free_s[peer] = max(now_s - wire.burst_s, recv_free_s[peer]) + cost(node).recv_s
            later(max(recv_free_s[peer], value), _DELIVERED, node)
        elif what == _DELIVERED:
            start(release([graph.match[node]]), now_s)
            later(now_s + cost(node).ack_s, _ENDS, node)
        else:
            end_s[node] = now_s
            start(release(graph.followers[node], unless=graph.match.get(node, -1)), now_s)
    bounds = [*graph.first, len(graph.ops)]
    by_rank = tuple(tuple(end_s[low:high]) for low, high in zip(bounds, bounds[1:]))
    delivered = (end_s[node] for node, op in enumerate(graph.ops) if op.kind is not Kind.SEND)
    return Simulated(by_rank, max(end_s, default=0.0), max(delivered, default=0.0))


_FREE, _ARRIVES, _DELIVERED, _ENDS = range(4)


class _Turns:
    """One host's sending link: when it is free, and a queue for each connection, served in turn."""

    def __init__(self) -> None:
        self.free_s = -math.inf
        self.waiting: dict[tuple[int, int], deque[int]] = {}  # in the order of their turns

    def put(self, connection: tuple[int, int], node: int) -> None:
        self.waiting.setdefault(connection, deque()).append(node)

    def take(self) -> int:
        """The next message of the connection whose turn it is; it goes to the end of the turns."""
        connection = next(iter(self.waiting))
        queue = self.waiting.pop(connection)
        node = queue.popleft()
        if queue:
            self.waiting[connection] = queue
        return node


@dataclass(frozen=True)
class _Cost:
    """Of one message: time on the sender's and receiver's link, delay of its first byte at the
    receiver's link, time from leaving to the last byte alone on the path, the acknowledgement's way."""

    send_s: float
    recv_s: float
    alpha_s: float
    alone_s: float
    ack_s: float


class _Costs:
    """The cost of messages by (source, destination, size)."""

    def __init__(self, schedule: Schedule, placement: tuple[int, ...], paths: Paths, wire: Wire) -> None:
        self._hosts = [paths.graph.hosts[host].name for host in placement]
        self._paths, self._wire = paths, wire
        self._found: dict[tuple[int, int, int], _Cost] = {}
        sent, received = [0] * len(placement), [0] * len(placement)
        for (source, destination, _), size_bytes in pairs(schedule).items():
            sent[source] += size_bytes
            received[destination] += size_bytes
        # acknowledgements of what comes the other way stretch data by up to this factor
        full = wire.beta_s(shared=True) / wire.beta_s() - 1
        self._send_stretch = [1 + full * min(1, r / s) if s else 1.0 for s, r in zip(sent, received)]
        self._recv_stretch = [1 + full * min(1, s / r) if r else 1.0 for s, r in zip(sent, received)]

    def of(self, source: int, destination: int, size_bytes: int) -> _Cost:
        key = (source, destination, size_bytes)
        if key not in self._found:
            self._found[key] = self._cost(*key)
        return self._found[key]

    def _cost(self, source: int, destination: int, size_bytes: int) -> _Cost:
        wire = self._wire
        path = self._paths.first_links(self._hosts[source], self._hosts[destination])
        bits = 8 * wire.frames_bytes(size_bytes)
        send_s = bits / wire.link_rate_bps(path[0]) * self._send_stretch[source]
        recv_s = bits / wire.link_rate_bps(path[-1]) * self._recv_stretch[destination]
        alpha_s = wire.alpha_s(path, wire.first_frame_bytes(size_bytes))
        alone_s = max(wire.one_way_s(path, size_bytes), alpha_s + send_s - wire.burst_s)
        return _Cost(send_s, recv_s, alpha_s, alone_s, wire.ack_s(path))
