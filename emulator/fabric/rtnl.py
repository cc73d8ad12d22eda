"""The route-netlink messages a fabric is made of: links, addresses, routes, neighbours, qdiscs.

Each function returns a `Message` for `Netlink.batch`. Layouts: include/uapi/linux/{if_link,rtnetlink,
if_addr,neighbour,veth}.h.
"""
from __future__ import annotations

import socket
import struct

from emulator.netlink import (CREATE, EXCLUSIVE, REPLACE, Message, Netlink, attribute, attributes, nest, text,
                              u32)

NEW_LINK, GET_LINK, NEW_ADDRESS, NEW_ROUTE, NEW_NEIGHBOUR = 16, 18, 20, 24, 28
NEW_QDISC, GET_QDISC, NEW_CLASS, GET_CLASS = 36, 38, 40, 42

LINK = struct.Struct("=BxHiII")  # ifinfomsg
TC = struct.Struct("=BxxxiIII")  # tcmsg: family, ifindex, handle, parent, info

IFF_UP, IFF_LOWER_UP = 0x1, 0x10000
_IFLA_ADDRESS, IFLA_IFNAME, IFLA_MTU, _IFLA_TXQLEN, _IFLA_LINKINFO = 1, 3, 4, 13, 18
_IFLA_NET_NS_FD, IFLA_TX_QUEUES, IFLA_RX_QUEUES, IFLA_GSO_MAX_SEGS = 28, 31, 32, 40
_INFO_KIND, _INFO_DATA, _VETH_INFO_PEER = 1, 2, 1
_UNSPEC, _INET = socket.AF_UNSPEC, socket.AF_INET
_NOPREFIXROUTE = 0x200
_PERMANENT = 0x80
_ONLINK, _TABLE_MAIN, _STATIC, _UNIVERSE, _UNICAST = 4, 254, 4, 0, 1
_METRICS, _QUICKACK, _CC_ALGO = 8, 15, 16


def _end(name: str, mtu: int, mac: bytes | None, netns_fd: int | None) -> bytes:
    """One end of a veth pair, with a single queue, so that a dequeue event is one packet."""
    # txqlen 1: a qdisc that sizes itself by the link's default queue must not become a hidden buffer
    # one segment: TCP builds 64 KB packets whatever the offloads (net/core/sock.c, sk_setup_caps), and the
    # kernel cuts them up only behind the queue
    parts = [text(IFLA_IFNAME, name), u32(IFLA_MTU, mtu), u32(_IFLA_TXQLEN, 1),
             u32(IFLA_TX_QUEUES, 1), u32(IFLA_RX_QUEUES, 1), u32(IFLA_GSO_MAX_SEGS, 1)]
    if mac is not None:
        parts.append(attribute(_IFLA_ADDRESS, mac))
    if netns_fd is not None:
        parts.append(u32(_IFLA_NET_NS_FD, netns_fd))
    return b"".join(parts)


def veth(name: str, ifindex: int, peer: str, peer_ifindex: int, mtu: int, peer_mac: bytes | None = None,
         peer_netns_fd: int | None = None) -> Message:
    """A veth pair; the peer in the namespace behind `peer_netns_fd` if given. Both ends are still down:
    neither can go up before it knows the other.
    """
    head, peer_head = LINK.pack(_UNSPEC, 0, ifindex, 0, 0), LINK.pack(_UNSPEC, 0, peer_ifindex, 0, 0)
    info = nest(_IFLA_LINKINFO, text(_INFO_KIND, "veth"), nest(
        _INFO_DATA, attribute(_VETH_INFO_PEER, peer_head + _end(peer, mtu, peer_mac, peer_netns_fd))))
    return Message(NEW_LINK, head + _end(name, mtu, None, None) + info, CREATE | EXCLUSIVE)


def link_state(ifindex: int, up: bool) -> Message:
    """Bring a link up or take it down."""
    return Message(NEW_LINK, LINK.pack(_UNSPEC, 0, ifindex, IFF_UP if up else 0, IFF_UP))


def address(ifindex: int, ip: str, prefix: int) -> Message:
    """An IPv4 address without the route to its prefix that the kernel would add."""
    packed = socket.inet_aton(ip)
    body = struct.pack("=BBBBI", _INET, prefix, 0, _UNIVERSE, ifindex)
    return Message(NEW_ADDRESS, body + attribute(2, packed) + attribute(1, packed) + u32(8, _NOPREFIXROUTE),
                   CREATE | EXCLUSIVE)


def route(ifindex: int, prefix: str, length: int, gateway: str, source: str,
          quickack: bool = False) -> Message:
    """A route through a gateway that counts as a neighbour on the link whatever the addresses say.

    quickack: TCP acknowledges every segment at once (RTAX_QUICKACK).
    """
    body = _route_body(ifindex, prefix, length, gateway, source)
    metrics = nest(_METRICS, u32(_QUICKACK, 1)) if quickack else b""
    return Message(NEW_ROUTE, body + metrics, CREATE | EXCLUSIVE)


def congestion_route(ifindex: int, prefix: str, length: int, gateway: str, source: str, algorithm: str,
                     quickack: bool = False) -> Message:
    """The same in place of the one that is there, with a congestion control (RTAX_CC_ALGO)."""
    body = _route_body(ifindex, prefix, length, gateway, source)
    metrics = (u32(_QUICKACK, 1) if quickack else b"") + text(_CC_ALGO, algorithm)
    return Message(NEW_ROUTE, body + nest(_METRICS, metrics), CREATE | REPLACE)


def _route_body(ifindex: int, prefix: str, length: int, gateway: str, source: str) -> bytes:
    body = struct.pack("=BBBBBBBBI", _INET, length, 0, 0, _TABLE_MAIN, _STATIC, _UNIVERSE, _UNICAST, _ONLINK)
    return body + (attribute(1, socket.inet_aton(prefix)) + u32(4, ifindex) +
                   attribute(5, socket.inet_aton(gateway)) + attribute(7, socket.inet_aton(source)))


def neighbour(ifindex: int, ip: str, mac: bytes) -> Message:
    """A permanent neighbour: nobody asks by ARP for it."""
    body = struct.pack("=BxHiHBB", _INET, 0, ifindex, _PERMANENT, 0, _UNICAST)
    return Message(NEW_NEIGHBOUR, body + attribute(1, socket.inet_aton(ip)) + attribute(2, mac),
                   CREATE | EXCLUSIVE)


def qdisc(ifindex: int, handle: int, parent: int, options: bytes) -> Message:
    """A qdisc; `options` are its attributes."""
    return Message(NEW_QDISC, TC.pack(_UNSPEC, ifindex, handle, parent, 0) + options, CREATE | EXCLUSIVE)


def traffic_class(ifindex: int, handle: int, parent: int, options: bytes) -> Message:
    """A class of a classful qdisc."""
    return Message(NEW_CLASS, TC.pack(_UNSPEC, ifindex, handle, parent, 0) + options, CREATE | EXCLUSIVE)


def changed_class(ifindex: int, handle: int, parent: int, options: bytes) -> Message:
    """Other attributes for a class that exists."""
    return Message(NEW_CLASS, TC.pack(_UNSPEC, ifindex, handle, parent, 0) + options)


def mac_bytes(mac: str) -> bytes:
    """The six bytes of '02:00:00:00:00:01'."""
    return bytes(int(part, 16) for part in mac.split(":"))


def links(netlink: Netlink) -> dict[str, tuple[int, int, dict[int, bytes]]]:
    """name -> (ifindex, flags, attributes) of every link of the socket's namespace."""
    table = {}
    for body in netlink.dump(GET_LINK, LINK.pack(_UNSPEC, 0, 0, 0, 0)):
        _, _, ifindex, flags, _ = LINK.unpack_from(body)
        found = attributes(body, LINK.size)
        table[found[IFLA_IFNAME].rstrip(b"\0").decode()] = (ifindex, flags, found)
    return table
