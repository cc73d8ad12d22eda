"""The gate of a class of a port: what pauses and resumes it, the primitive of priority flow control
(IEEE 802.1Qbb).

The class's leaf is a TBF that is never in the way; a pause gives it a rate of a byte a second and a
bucket of one frame. One packet may still leave (the bucket is full after a change), as on a real link
the packet that is being sent. HTB does not look at a class again on its own when its gate opens: a
class that holds packets needs one more frame to start, KICK, of ethertype 0x88b5, which switches drop
as 'kick' and hosts do not know.
"""
from __future__ import annotations

import socket
import struct

from emulator.asic.layout import KICK_ETHERTYPE
from emulator.asic.shaper import OPEN_BURST_BYTES, OPEN_BYTES_PER_S, gate
from emulator.errors import EmulatorError
from emulator.fabric import rtnl
from emulator.fabric.link import CLASS, LEAF
from emulator.netlink import Message, Netlink, NetlinkError

KICK = b"\x02\0\0\0\0\x03" + b"\x02\0\0\0\0\x03" + struct.pack("!H", KICK_ETHERTYPE) + bytes(46)


class Gate:
    """Shuts and opens gates of ports of the namespace in which it was made, in some 15 us each."""

    def __init__(self) -> None:
        self._netlink = Netlink()

    def pause(self, ifindex: int, traffic_class: int, limit_bytes: int, frame_bytes: int) -> None:
        """Hold the class's packets; it goes on queueing up to limit_bytes. frame_bytes: the largest."""
        self._change(ifindex, traffic_class, gate(1, frame_bytes, limit_bytes))

    def resume(self, ifindex: int, traffic_class: int, limit_bytes: int) -> None:
        """Let the class send again, from its next frame on."""
        self._change(ifindex, traffic_class, gate(OPEN_BYTES_PER_S, OPEN_BURST_BYTES, limit_bytes))

    def _change(self, ifindex: int, traffic_class: int, options: bytes) -> None:
        head = rtnl.TC.pack(socket.AF_UNSPEC, ifindex, LEAF + (traffic_class << 16), CLASS + traffic_class, 0)
        try:
            self._netlink.batch([Message(rtnl.NEW_QDISC, head + options)])
        except NetlinkError as error:
            raise EmulatorError(f"Class {traffic_class} of interface {ifindex} has no gate "
                                f"({error.strerror}); ports must be shaped as pausable.") from error

    def close(self) -> None:
        """Let go of the socket; what is paused stays paused."""
        self._netlink.__exit__()
