"""What a message costs on the wire: frames, goodput, the time over one path with nobody else on it.

Rates are what the shaper counts: Ethernet header and IP packet, without preamble, FCS and gap.
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from emulator.errors import BadInput
from emulator.fabric.link import shape
from emulator.fabric.spec import ETHERNET_BYTES
from topologies.graph import Link

HEADER_BYTES = 20 + 20 + 12
"""IPv4 (RFC 791), TCP (RFC 9293) and the timestamp option with its padding (RFC 7323)."""
ACK_BYTES = ETHERNET_BYTES + HEADER_BYTES
ACK_EVERY = 2
"""A receiver acknowledges every second full segment (RFC 1122, 4.2.3.2)."""


@dataclass(frozen=True)
class Wire:
    """How links carry messages: `rate_bps` of a host link, IP `mtu` in bytes, `delay_s` of each link.

    A wire of the textbook stores a frame at every switch before sending it on (`store_and_forward`).
    A shaped one, as `shaped` gives it, does not: see there.
    """

    rate_bps: float
    mtu: int
    delay_s: float = 0.0
    store_and_forward: bool = True
    burst_bytes: int = 0

    @classmethod
    def shaped(cls, rate_bps: float, mtu: int, delay_s: float = 0.0) -> Wire:
        """The wire that a token bucket (HTB, net/sched/sch_htb.c) makes of a port.

        It lets a frame go at the beginning of its time on the wire, not at the end, so that an idle
        path costs no frame time per switch (cut-through), and a port that was idle sends
        `burst_bytes` (its burst and one frame) at once. Measured over 5 userspace switches at
        500 kb/s, where a full frame takes 24 ms: a one-frame message and its acknowledgement 2 ms.
        """
        burst = shape(rate_bps, mtu, mtu + ETHERNET_BYTES).burst_bytes
        return cls(rate_bps, mtu, delay_s, store_and_forward=False, burst_bytes=burst + mtu + ETHERNET_BYTES)

    def __post_init__(self) -> None:
        if self.mtu <= HEADER_BYTES:
            raise BadInput(f"an MTU of {self.mtu} bytes leaves no room for data after {HEADER_BYTES} of "
                           "headers.")

    @property
    def payload_bytes(self) -> int:
        """Bytes of data in a full frame (1448 at MTU 1500)."""
        return self.mtu - HEADER_BYTES

    @property
    def frame_bytes(self) -> int:
        """Bytes of a full frame that a shaper counts (1514 at MTU 1500)."""
        return self.mtu + ETHERNET_BYTES

    @property
    def ack_bytes_per_byte(self) -> float:
        """Bytes of acknowledgements that come back for each byte of data."""
        return ACK_BYTES / ACK_EVERY / self.payload_bytes

    def goodput_ratio(self, shared: bool = False) -> float:
        """Data per byte of link: 0.956 at MTU 1500; times 0.9785 where as much data comes the other
        way, whose acknowledgements share the link (`shared`)."""
        acks = self.ack_bytes_per_byte if shared else 0.0
        return 1 / (self.frame_bytes / self.payload_bytes + acks)

    def beta_s(self, shared: bool = False) -> float:
        """Seconds per byte of data at a host link."""
        return 8 / (self.rate_bps * self.goodput_ratio(shared))

    @property
    def burst_s(self) -> float:
        """What an idle host link sends at once, as time on it."""
        return 8 * self.burst_bytes / self.rate_bps

    def link_rate_bps(self, link: Link) -> float:
        return self.rate_bps * link.speed

    def frames_bytes(self, size_bytes: int) -> int:
        """Bytes on the wire of one message: its data and a header for each frame."""
        frames = math.ceil(size_bytes / self.payload_bytes)
        return size_bytes + frames * (HEADER_BYTES + ETHERNET_BYTES)

    def first_frame_bytes(self, size_bytes: int) -> int:
        """The largest frame of a message: a full one, or less where the message is shorter."""
        return min(size_bytes, self.payload_bytes) + HEADER_BYTES + ETHERNET_BYTES

    def alpha_s(self, path: Sequence[Link], frame_bytes: int | None = None) -> float:
        """Base one-way delay of a path: from the last bit of a frame (default: a full one) leaving
        its source to its last bit arriving. Each link adds its delay, each switch on the way stores
        the frame and sends it again at the rate of its link; the first link's time is in beta.
        """
        if not self.store_and_forward:
            return len(path) * self.delay_s
        bits = 8 * (self.frame_bytes if frame_bytes is None else frame_bytes)
        return len(path) * self.delay_s + sum(bits / self.link_rate_bps(link) for link in path[1:])

    def one_way_s(self, path: Sequence[Link], size_bytes: int) -> float:
        """From the first bit of a message leaving to its last bit arriving, nobody else on the path.

        Every frame passes the slowest link; the first one also passes all others, in turn.
        """
        if not self.store_and_forward:
            beyond_bits = 8 * max(0, self.frames_bytes(size_bytes) - self.burst_bytes)
            return beyond_bits / min(self.link_rate_bps(link) for link in path) + self.alpha_s(path)
        first = self.first_frame_bytes(size_bytes)
        rest_bits = 8 * (self.frames_bytes(size_bytes) - first)
        slowest = min(self.link_rate_bps(link) for link in path)
        return 8 * first / self.link_rate_bps(path[0]) + self.alpha_s(path, first) + rest_bits / slowest

    def ack_s(self, path: Sequence[Link]) -> float:
        """An acknowledgement's way back over `path` (given in the data's direction)."""
        if not self.store_and_forward:
            return self.alpha_s(path)
        return 8 * ACK_BYTES / self.link_rate_bps(path[-1]) + self.alpha_s(tuple(reversed(path)), ACK_BYTES)

    def ideal_fct_s(self, path: Sequence[Link], size_bytes: int) -> float:
        """Flow completion time alone on the path: the last byte arrives and is acknowledged."""
        return self.one_way_s(path, size_bytes) + self.ack_s(path)
