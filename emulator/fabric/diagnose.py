"""Where do packets stop? The counters of the links tell, whatever kind of switch is between them."""
from __future__ import annotations

import socket
import struct
import time

from emulator import netns
from emulator.fabric import rtnl
from emulator.fabric.build import Fabric
from emulator.fabric.verify import verify_links
from emulator.netlink import Netlink

_IFLA_STATS64 = 23
_PACKETS = 20
_GAP_S = 0.02


def port_counts(fabric: Fabric) -> dict[str, int]:
    """Packets that each interface of the fabric has sent; a host's are what its switch received."""
    with Netlink() as netlink:
        links = rtnl.links(netlink)
    counts = {}
    for port in fabric.switch_ports:
        received, sent = struct.unpack_from("=2Q", links[port.name][2][_IFLA_STATS64])
        counts[port.name] = sent
        counts[port.peer] = received
    return counts


def first_doubt(fabric: Fabric, source: str, destination: str, port: int) -> str:
    """A sentence that names the place where packets from host to host stop being counted.

    A link that is not as planned comes first. Otherwise sends a few UDP packets to `port` and follows the
    counters; call it while nothing else is sent.
    """
    faults = verify_links(fabric)
    if faults:
        return faults[0]
    there = _follow(fabric, source, destination, port)
    if not there.startswith("Packets arrive"):
        return there
    return f"{there} The way back: {_follow(fabric, destination, source, port)}"


def _follow(fabric: Fabric, source: str, destination: str, port: int) -> str:
    graph = fabric.spec.graph
    before = port_counts(fabric)
    with netns.entered(fabric.site[source].netns):
        sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    with sender:
        sender.setblocking(False)
        for _ in range(_PACKETS):
            try:
                sender.sendto(b"where do I stop?", (fabric.site[destination].ip, port))
            except OSError as error:
                return f"Host {source} cannot send at all ({error.strerror})."
            time.sleep(_GAP_S)
    time.sleep(10 * _GAP_S + len(graph.switches) * fabric.spec.delay_s)
    after = port_counts(fabric)
    grown = {name: after[name] - before[name] for name in after}
    at = fabric.port[fabric.site[source].interface]
    for _ in range(len(graph.switches) + 1):
        if grown[at.name] < _PACKETS:
            return (f"Look first at the link from {at.name} to {at.peer}: of {_PACKETS} packets "
                    f"{grown[at.name]} got on it.")
        node = fabric.port[at.peer].node
        if node in graph.host:
            return f"Packets arrive at host {node}."
        outs = [port for port in fabric.switch_ports
                if port.node == node and port.name != at.peer and grown[port.name] >= _PACKETS]
        if not outs:
            return f"Look first at switch {node}: packets reach it by {at.peer} and do not leave it."
        at = max(outs, key=lambda port: grown[port.name])
    return f"Packets from {source} to {destination} go round in a loop through {at.node}."
