"""The counters of all interfaces of one namespace (RTM_GETLINK with IFLA_STATS64), before and after a run."""
from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, fields

from emulator.telemetry import netlink
from emulator.telemetry.netlink import DumpBuffer, DumpSocket, attributes, messages

IFINFOMSG = struct.Struct("=BxHiII")  # family, type, ifindex, flags, change
IFLA_STATS64 = 23


@dataclass(frozen=True)
class LinkCounters:
    """Since the interface was made; a fabric's veth counts a buffer not yet segmented as one packet.

    The order is that of struct rtnl_link_stats64 (include/uapi/linux/if_link.h).
    """

    rx_packets: int = 0
    tx_packets: int = 0
    rx_bytes: int = 0
    tx_bytes: int = 0
    rx_errors: int = 0
    tx_errors: int = 0
    rx_dropped: int = 0
    tx_dropped: int = 0

    def __sub__(self, earlier: LinkCounters) -> LinkCounters:
        return LinkCounters(*(getattr(self, field.name) - getattr(earlier, field.name)
                              for field in fields(self)))


_STATS64 = struct.Struct(f"={len(fields(LinkCounters))}Q")


def read_links(netns: str | None = None) -> dict[int, LinkCounters]:
    """ifindex -> counters of every interface in /run/netns/NETNS (None: this namespace)."""
    link_socket = DumpSocket(netlink.RTM_GETLINK, IFINFOMSG.pack(0, 0, 0, 0, 0), netns)
    try:
        buffer = DumpBuffer()
        end = link_socket.dump(buffer)
        return dict(_parse(buffer.memory, end))
    finally:
        link_socket.close()


def _parse(memory: memoryview, length: int) -> Iterator[tuple[int, LinkCounters]]:
    for offset, end in messages(memory, 0, length, netlink.RTM_NEWLINK):
        start = offset + netlink.NLMSG_HEADER.size
        _, _, ifindex, _, _ = IFINFOMSG.unpack_from(memory, start)
        for name, at, _ in attributes(memory, start + IFINFOMSG.size, end):
            if name == IFLA_STATS64:
                yield ifindex, LinkCounters(*_STATS64.unpack_from(memory, at))
