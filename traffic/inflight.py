"""A message under way, from its send to its acknowledgement."""
from __future__ import annotations

from typing import Protocol


class Sender(Protocol):
    """Whose message it is: a job or the background. `received`: payload bytes read so far."""

    received: int

    def arrived(self, message: InFlight) -> list[int]:
        """The last byte was read; returns the operations that may start now."""

    def start(self, operations: list[int], now: float) -> None: ...

    def took(self, messages: list[InFlight], now: float) -> None:
        """The transport has taken these whole."""

    def delivered(self, message: InFlight, now: float) -> None:
        """Read and acknowledged, in whichever order: it is history."""

    def due(self, number: int, now: float) -> None:
        """A timer that it had set has run out."""


class InFlight:
    """`start`, `received`, `acked`: CLOCK_MONOTONIC seconds, zero before it happened; sizes in bytes.

    `data` is what to send where that matters, `sink` where to put it, `crc` its checksum.
    """

    __slots__ = ("sender", "send_op", "recv_op", "connection", "size", "start", "taken", "end_offset", "got",
                 "received", "acked", "retrans", "data", "sink", "crc")

    def __init__(self, sender: Sender, send_op: int, recv_op: int, connection: int, size: int,
                 start: float) -> None:
        self.sender, self.send_op, self.recv_op, self.connection = sender, send_op, recv_op, connection
        self.size, self.start = size, start
        self.taken = self.got = 0
        self.end_offset = -1
        self.received = self.acked = 0.0
        self.retrans = 0
        self.data: memoryview | None = None
        self.sink: memoryview | None = None
        self.crc = 0
