"""The state and counters of links, from route netlink: asked for one link, or told of changes."""
from __future__ import annotations

import errno
import socket
import struct
from collections.abc import Iterable
from dataclasses import dataclass

from emulator.asic.pipeline import Count
from emulator.fabric import rtnl
from emulator.netlink import Message, Netlink, attributes

_IFLA_STATS64, _IFLA_CARRIER = 23, 33
_STATS = struct.Struct("=8Q")  # struct rtnl_link_stats64: rx/tx packets, bytes, errors, dropped
_GROUP_LINK = 1  # RTMGRP_LINK
_HEADER = struct.Struct("=IHHII")
_BUFFER_BYTES = 1 << 22
_SO_RCVBUFFORCE = 33


@dataclass(frozen=True)
class LinkState:
    """A link as the kernel counts it; up: set up and with a carrier."""

    up: bool
    rx: Count
    tx: Count
    rx_dropped: int
    tx_dropped: int


def is_up(flags: int, found: dict[int, bytes]) -> bool:
    """Is a link with these flags and attributes up and with a carrier?"""
    return bool(flags & rtnl.IFF_UP) and found.get(_IFLA_CARRIER, b"\0")[0] == 1


def link_state(netlink: Netlink, ifindex: int) -> LinkState:
    """The state of link `ifindex` of the socket's namespace; NetlinkError if there is none."""
    body = netlink.ask(Message(rtnl.GET_LINK, rtnl.LINK.pack(socket.AF_UNSPEC, 0, ifindex, 0, 0)))
    _, _, _, flags, _ = rtnl.LINK.unpack_from(body)
    found = attributes(body, rtnl.LINK.size)
    rx_packets, tx_packets, rx_bytes, tx_bytes, _, _, rx_dropped, tx_dropped = _STATS.unpack_from(
        found[_IFLA_STATS64])
    return LinkState(is_up(flags, found), Count(rx_packets, rx_bytes), Count(tx_packets, tx_bytes),
                     rx_dropped, tx_dropped)


class LinkWatch:
    """Tells which of `ifindexes` went up or down; `fd` becomes readable when one may have."""

    def __init__(self, ifindexes: Iterable[int]) -> None:
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
        self._socket.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _BUFFER_BYTES)
        self._socket.bind((0, _GROUP_LINK))
        self._socket.setblocking(False)
        self.fd = self._socket.fileno()
        wanted = set(ifindexes)
        self._up = {ifindex: up for ifindex, up in self._all() if ifindex in wanted}

    @staticmethod
    def _all() -> Iterable[tuple[int, bool]]:
        with Netlink() as netlink:
            return [(ifindex, is_up(flags, found)) for ifindex, flags, found in rtnl.links(netlink).values()]

    def changed(self) -> list[int]:
        """The links that are not as they were at the last call, each once."""
        news: list[tuple[int, bool]] = []
        while True:
            try:
                data = self._socket.recv(1 << 16)
            except BlockingIOError:
                break
            except OSError as error:
                if error.errno != errno.ENOBUFS:
                    raise
                news = list(self._all())  # messages were lost: look at all links
                continue
            news += _links_in(data)
        before = dict(self._up)
        self._up.update((ifindex, up) for ifindex, up in news if ifindex in self._up)
        return [ifindex for ifindex, up in self._up.items() if before[ifindex] != up]

    def close(self) -> None:
        self._socket.close()


def _links_in(data: bytes) -> Iterable[tuple[int, bool]]:
    """(ifindex, up) of each link message in a datagram; a link that is deleted is down."""
    at = 0
    while at + _HEADER.size <= len(data):
        length, kind, _, _, _ = _HEADER.unpack_from(data, at)
        if kind in (rtnl.NEW_LINK, rtnl.NEW_LINK + 1):
            _, _, ifindex, flags, _ = rtnl.LINK.unpack_from(data, at + _HEADER.size)
            found = attributes(data[at + _HEADER.size:at + length], rtnl.LINK.size)
            yield ifindex, kind == rtnl.NEW_LINK and is_up(flags, found)
        at += length + (-length % 4)
