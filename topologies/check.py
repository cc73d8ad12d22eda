"""What every Graph must hold before anything is built from it, each breach as one sentence."""
from __future__ import annotations

import ipaddress
import re
from collections import Counter
from collections.abc import Iterable

import networkx

from emulator.errors import BadInput
from topologies.graph import GATEWAY_IP, GATEWAY_MAC, Graph, interface

IFNAME_CHARACTERS = 15  # the kernel's IFNAMSIZ less the closing zero
PORT_LAST = 0xFEFF      # OpenFlow keeps the ports above for itself (OVS: 0xff00 and more)
HOSTS_LAST = 2048
HOST_NETWORK = ipaddress.IPv4Network("10.0.0.0/8")
_STATION = re.compile(r"[0-9a-f][02468ace](:[0-9a-f]{2}){5}")  # even first byte: not a group address


def checked(graph: Graph) -> Graph:
    """`graph` itself, or BadInput: names, ports, addresses and ids valid and unique, all connected."""
    if not 2 <= len(graph.hosts) <= HOSTS_LAST:
        raise BadInput(f"{graph.name} has {len(graph.hosts)} hosts; 2 to {HOSTS_LAST} can be emulated.")
    if not graph.switches:
        raise BadInput(f"{graph.name} has no switch.")
    _names(graph)
    _ports(graph)
    _addresses(graph)
    _wiring(graph)
    return graph


def _twice(values: Iterable) -> object | None:
    return next((value for value, count in Counter(values).items() if count > 1), None)


def _names(graph: Graph) -> None:
    nodes = [node.name for node in (*graph.hosts, *graph.switches)]
    if (name := _twice(nodes)) is not None:
        raise BadInput(f'{graph.name} has two nodes named "{name}".')
    for name in nodes:
        if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_.-]*", name):
            raise BadInput(f'the node name "{name}" cannot become part of an interface name; '
                           f"use letters, digits, _ . - and begin with a letter.")


def _ports(graph: Graph) -> None:
    ends = [end for link in graph.links for end in ((link.a, link.a_port), (link.b, link.b_port))]
    if (end := _twice(ends)) is not None:
        raise BadInput(f"port {end[1]} of {end[0]} has two links.")
    for node, port in ends:
        low = 0 if node in graph.host else 1
        if not isinstance(port, int) or not low <= port <= PORT_LAST:
            raise BadInput(f"{node} has a port {port!r}; ports go from {low} to {PORT_LAST}.")
        if len(name := interface(node, port)) > IFNAME_CHARACTERS:
            raise BadInput(f'the interface name "{name}" has {len(name)} characters, the kernel takes '
                           f'{IFNAME_CHARACTERS}; give node "{node}" a shorter name.')


def _addresses(graph: Graph) -> None:
    for what, values in (("IP address", [host.ip for host in graph.hosts] + [GATEWAY_IP]),
                         ("MAC address", [host.mac for host in graph.hosts] + [GATEWAY_MAC]),
                         ("datapath id", [f"{switch.dpid:016x}" for switch in graph.switches])):
        if (value := _twice(values)) is not None:
            raise BadInput(f"the {what} {value} is used twice in {graph.name} "
                           f"(the gateway is {GATEWAY_IP}, {GATEWAY_MAC}).")
    for host in graph.hosts:
        if ipaddress.IPv4Address(host.ip) not in HOST_NETWORK:
            raise BadInput(f"host {host.name} has the address {host.ip}; hosts live in {HOST_NETWORK}, "
                           f"where they reach each other through one gateway.")
        if not _STATION.fullmatch(host.mac) or host.mac == "00:00:00:00:00:00":
            raise BadInput(f'host {host.name} has the MAC address "{host.mac}", '
                           f"which is not one of a single station.")


def _wiring(graph: Graph) -> None:
    for link in graph.links:
        if link.a == link.b:
            raise BadInput(f"{link.a} has a link to itself.")
    for host in graph.hosts:
        links = graph.neighbours[host.name]
        if len(links) != 1:
            raise BadInput(f"host {host.name} has {len(links)} links; a host has exactly one.")
        other = next(iter(links.values()))[0]
        if other not in graph.switch:
            raise BadInput(f"host {host.name} is linked to host {other}; a host hangs on a switch.")
    parts = list(networkx.connected_components(graph.networkx))
    if len(parts) > 1:
        lone = min(min(parts, key=len))
        raise BadInput(f"{graph.name} falls into {len(parts)} parts that no link joins; {lone} is cut off.")
