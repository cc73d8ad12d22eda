"""How many acknowledgements a Linux receiver sends for what a connection carries.

Every second full segment and what ends a message (RFC 1122, 4.2.3.2; RFC 5681, 4.2), except that a
connection whose receive window still grows has each segment acknowledged by itself (tcp_grow_window sets
`quick`, net/ipv4/tcp_input.c). The window grows by two segments a segment from half of the receive buffer
to the share of it that is data and not the kernel's bookkeeping (scaling_ratio, kernels from 6.6 on;
before, half is all there ever is). Measured at MTU 1500: 96, 101, 99, 100, 40, 42, … acknowledgements for
each 100 segments.
"""
from __future__ import annotations

from dataclasses import dataclass

from traffic.tcp import BUFFER_BYTES
from traffic.wire import ACK_EVERY

SKB_BYTES = 840
"""What the kernel counts for a segment beyond its data: of the buffer, 162/256 are window at 1448 bytes."""
SCALING_SINCE = (6, 6)


def growing_bytes(payload_bytes: int, kernel: tuple[int, int]) -> float:
    """How much data a connection carries until its receive window has stopped growing; 557 kB at MTU 1500.

    payload_bytes: of a full frame. kernel: (major, minor).
    """
    if kernel < SCALING_SINCE:
        return 0.0
    usable = payload_bytes / (payload_bytes + SKB_BYTES) - 0.5
    return max(0.0, usable) * BUFFER_BYTES  # doubled by the kernel, halved by two segments a segment


def kernel_version(release: str) -> tuple[int, int]:
    """(major, minor) of '6.18.5-firecracker'."""
    major, minor, *_ = release.replace("-", ".").split(".")
    return int(major), int(minor)


@dataclass
class Acks:
    """The acknowledgements of one connection; `growing` frames are still to come one by one.

    `every`: of how many segments one is acknowledged otherwise; 1 where hosts acknowledge all at once.
    """

    growing: float
    every: int = ACK_EVERY
    count: float = 0.0

    def add(self, frames: int, times: int) -> None:
        """A message of so many frames, so many times."""
        singly = min(self.growing, frames * times)
        self.growing -= singly
        self.count += singly + (times - singly / frames) * -(-frames // self.every)
