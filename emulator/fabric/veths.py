"""The links of a fabric as veth pairs: one pair a link, or two that meet in a namespace where they are delayed.

A link without a delay is a veth pair between its ports. One with a delay is two, whose inner ends are in a
namespace of their own; their ifindexes differ in the lowest bit, by which whoever delays there
(`emulator.delay`) knows where a packet goes on.
"""
from __future__ import annotations

from collections.abc import Iterable, Iterator
from os import close

from emulator import netns
from emulator.errors import EmulatorError
from emulator.fabric import rtnl
from emulator.fabric.ethtool import offloads_off
from emulator.netlink import Message, Netlink, NetlinkError
from topologies.graph import Graph, Link, interface

# Our own link numbers, unique over all namespaces: a number that is the same at both ends of a link
# makes the kernel announce its carrier up to a second late (linkwatch_urgent_event, net/core/link_watch.c).
FIRST_IFINDEX = 1001
_FIRST_INNER = 1000  # even: an inner end's number is one less than that of the port it is joined to
DELAY_NETNS = ".delay"
"""The namespace of the inner ends of all links that have a delay."""
LINKS_AT_ONCE = 256  # each link of a host holds a descriptor meanwhile
_DISABLE_IPV6 = "/proc/sys/net/ipv6/conf/{}/disable_ipv6"


def ends(links: Iterable[Link], first: int = 0) -> Iterator[tuple[str, str, int, int, Link, str]]:
    """(interface, node, port number, ifindex, link, peer interface) of both ends of `links`, the
    first of which is link `first` of the fabric.
    """
    for place, link in enumerate(links, first):
        a, b = interface(link.a, link.a_port), interface(link.b, link.b_port)
        ifindex = FIRST_IFINDEX + 2 * place
        yield a, link.a, link.a_port, ifindex, link, b
        yield b, link.b, link.b_port, ifindex + 1, link, a


def inner_end(ifindex: int) -> int:
    """The ifindex of the inner end that is joined to port `ifindex` of a delayed link."""
    return ifindex - FIRST_IFINDEX + _FIRST_INNER


def make_links(graph: Graph, mtu: int, delayed: bool) -> None:
    """All veth pairs in a few batches, the end of a host directly in its namespace."""
    if delayed:
        _make_delayed(graph, mtu)
        return
    with Netlink() as netlink:
        for start in range(0, len(graph.links), LINKS_AT_ONCE):
            messages, fds = [], []
            try:
                for place, link in enumerate(graph.links[start:start + LINKS_AT_ONCE], start):
                    (near, node, _, index, _, far), (_, _, _, far_index, _, _) = ends([link], place)
                    if node not in graph.host:
                        node = link.b
                        near, index, far, far_index = far, far_index, near, index
                    host = graph.host.get(node)
                    if host:
                        fds.append(netns.open_fd(host.name))
                    messages.append(rtnl.veth(far, far_index, near, index, mtu,
                                              rtnl.mac_bytes(host.mac) if host else None,
                                              fds[-1] if host else None))
                send(netlink, messages, "the links")
            finally:
                for fd in fds:
                    close(fd)


def _make_delayed(graph: Graph, mtu: int) -> None:
    """Two veth pairs a link: both ports where they belong, both inner ends up in the namespace between them."""
    netns.create(DELAY_NETNS)
    home = netns.open_own()
    try:
        with netns.entered(DELAY_NETNS), Netlink() as netlink:
            _no_ipv6()
            for start in range(0, len(graph.links), LINKS_AT_ONCE):
                _delayed_batch(netlink, graph, start, mtu, home)
    finally:
        close(home)


def _delayed_batch(netlink: Netlink, graph: Graph, start: int, mtu: int, home: int) -> None:
    messages, states, inner, fds = [], [], [], []
    try:
        for port, node, _, index, _, _ in ends(graph.links[start:start + LINKS_AT_ONCE], start):
            host, number = graph.host.get(node), inner_end(index)
            if host:
                fds.append(netns.open_fd(host.name))
            inner.append(f"w{number}")
            mac, place = (rtnl.mac_bytes(host.mac), fds[-1]) if host else (None, home)
            messages.append(rtnl.veth(inner[-1], number, port, index, mtu, mac, place))
            states.append(rtnl.link_state(number, up=True))
        send(netlink, messages, "the links")
        offloads_off(inner)
        send(netlink, states, "the inner ends of the links")
    finally:
        for fd in fds:
            close(fd)


def _no_ipv6() -> None:
    """No neighbour noise of our own; a kernel without IPv6 has no such file, and nothing to be turned off."""
    for which in ("all", "default"):
        try:
            with open(_DISABLE_IPV6.format(which), "w") as switch:
                switch.write("1")
        except FileNotFoundError:
            return


def send(netlink: Netlink, messages: list[Message], what: str) -> None:
    """Have the kernel carry out `messages`; EmulatorError says which one of `what` it refused."""
    try:
        netlink.batch(messages)
    except NetlinkError as error:
        raise EmulatorError(f"The kernel refused message {error.index} of {len(messages)} for {what}: "
                            f"{error.strerror} (errno {error.errno}).") from error
