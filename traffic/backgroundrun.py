"""The background of a replay: flows that start at their times, whatever became of the ones before.

Open loop, as users send who know nothing of the load. A flow takes a connection of its pair that is
idle; where all are busy, the one with the least to do. Connections stay open between flows, as between
the servers of a data centre.
"""
from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from traffic.inflight import InFlight
from traffic.records import ConnectionKey, Message
from traffic.schedule import Background

if TYPE_CHECKING:
    from traffic.engine import Engine

CONNECTIONS_PER_PAIR = 4


def background_keys(background: Background | None, first_rank: int) -> list[ConnectionKey]:
    """A connection for each flow of a pair, up to a few; ranks are numbered from `first_rank` on."""
    flows = Counter((flow.source, flow.destination) for flow in background.flows) if background else {}
    return [ConnectionKey(first_rank + source, first_rank + destination, channel, background.traffic_class)
            for (source, destination), count in sorted(flows.items())
            for channel in range(min(count, CONNECTIONS_PER_PAIR))]


class BackgroundRun:
    """Its flows so far. `messages` are those that ended."""

    def __init__(self, engine: Engine, background: Background) -> None:
        self.engine, self.background = engine, background
        self.received = 0
        self.messages: list[Message] = []
        self._under_way: dict[int, InFlight] = {}
        self._busy: dict[int, int] = defaultdict(int)  # connection -> bytes sent on it and not yet delivered
        self._of: dict[tuple[int, int], list[int]] = defaultdict(list)
        first = len(engine.workload.placement)
        for key in background_keys(background, first):
            self._of[key.src - first, key.dst - first].append(engine.index[key])

    @property
    def open(self) -> tuple[int, ...]:
        """Numbers of the flows that have begun and not ended."""
        return tuple(sorted(self._under_way))

    def arm(self, now: float) -> None:
        """Time zero of the flows' starts."""
        self._zero_s = now
        self._next(0)

    def _next(self, number: int) -> None:
        if number < len(self.background.flows):
            self.engine.timer(self._zero_s + self.background.flows[number].start_s, self, number)

    def due(self, number: int, now: float) -> None:
        """A flow's start has come."""
        flow = self.background.flows[number]
        connection = min(self._of[flow.source, flow.destination], key=self._busy.__getitem__)
        message = InFlight(self, number, number, connection, flow.size_bytes, now)
        self._busy[connection] += flow.size_bytes
        self._under_way[number] = message
        self.engine.send(message)
        self._next(number + 1)

    def arrived(self, message: InFlight) -> list[int]:
        return []

    def start(self, operations: list[int], now: float) -> None:
        """Nothing waits for a background flow."""

    def took(self, messages: list[InFlight], now: float) -> None:
        """Nothing waits for a background flow."""

    def delivered(self, message: InFlight, now: float) -> None:
        del self._under_way[message.send_op]
        self._busy[message.connection] -= message.size
        key = self.engine.keys[message.connection]
        self.messages.append(Message(
            0, key.src, key.dst, key.channel, message.send_op, message.size, message.start, message.received,
            message.acked, message.retrans, "background", 0, key.traffic_class))
