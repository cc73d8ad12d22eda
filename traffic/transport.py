"""What the engine drives to move bytes between hosts, whatever kind it is. Linux TCP is in `tcp.py`."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from traffic.records import ConnectionKey, TcpInfo


@dataclass(frozen=True)
class Endpoint:
    """Where a rank's sockets are made: its host's address and namespace (None: this one)."""

    ip: str
    netns: str | None


class Event(NamedTuple):
    """What poll reports of connection number `connection`.

    'readable', 'writable', or 'acked' with the stream offset of the last acknowledged byte that was
    asked for and the time (CLOCK_MONOTONIC, seconds) at which its acknowledgement came in.
    """

    kind: str
    connection: int
    offset: int = 0
    time_s: float = 0.0


class Transport(Protocol):
    """Reliable one-way byte streams between ranks, numbered in the order of `open`'s keys."""

    def open(self, keys: Sequence[ConnectionKey], deadline_s: float) -> None: ...

    def write(self, connection: int, data: memoryview) -> int:
        """Offer data; returns how many bytes were taken. The last one's acknowledgement is reported."""

    def want_write(self, connection: int, wanted: bool) -> None: ...

    def read(self, connection: int, into: memoryview) -> int: ...

    def poll(self, timeout_s: float) -> list[Event]: ...

    def info(self, connection: int) -> TcpInfo: ...

    def ports(self, connection: int) -> tuple[int, int]: ...

    def congestion_control(self, connection: int) -> str: ...

    def close(self) -> None: ...
