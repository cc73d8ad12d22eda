"""A fabric as plain data: hosts, switches, links and their ports. What every other package reads."""
from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import networkx

# A host knows one neighbour, its gateway: every packet leaves it towards this address and the last
# switch rewrites the destination (1024 hosts with 1024 neighbours each cost 18 s and 0.6 GB).
GATEWAY_IP = "10.255.255.254"
GATEWAY_MAC = "02:00:00:00:00:01"


@dataclass(frozen=True)
class Host:
    """An end host. `rack` is the name of the switch it hangs on."""

    name: str
    index: int
    ip: str
    mac: str
    rack: str


@dataclass(frozen=True)
class Switch:
    """A switch. `tier` counts from the hosts: 0 edge or leaf, 1 aggregation or spine, 2 core.

    `pod` is -1 for a switch of no pod.
    """

    name: str
    dpid: int
    tier: int
    role: str
    pod: int


@dataclass(frozen=True)
class Link:
    """A full-duplex link between port `a_port` of node `a` and port `b_port` of node `b`.

    `speed` is its rate as a multiple of the host link's rate. `tier` names its place, such as
    'host-edge' or 'aggregation-core'; `a` is always the lower end.
    """

    index: int
    a: str
    a_port: int
    b: str
    b_port: int
    speed: float
    tier: str


@dataclass(frozen=True)
class Graph:
    """A whole fabric. Hosts are in rank order: host i carries rank i under linear placement.

    `notes` are sentences for the user on what of a topology file the fabric does not have.
    """

    name: str
    hosts: tuple[Host, ...]
    switches: tuple[Switch, ...]
    links: tuple[Link, ...]
    notes: tuple[str, ...] = ()

    @cached_property
    def host(self) -> dict[str, Host]:
        return {host.name: host for host in self.hosts}

    @cached_property
    def switch(self) -> dict[str, Switch]:
        return {switch.name: switch for switch in self.switches}

    @cached_property
    def neighbours(self) -> dict[str, dict[int, tuple[str, Link]]]:
        """node -> {port number: (node at the other end, link)}."""
        table: dict[str, dict[int, tuple[str, Link]]] = {
            node.name: {} for node in (*self.hosts, *self.switches)}
        for link in self.links:
            table[link.a][link.a_port] = (link.b, link)
            table[link.b][link.b_port] = (link.a, link)
        return table

    @cached_property
    def networkx(self) -> networkx.MultiGraph:
        """The same graph for networkx; edge key is the link's index, attribute `link` the Link."""
        graph = networkx.MultiGraph()
        graph.add_nodes_from(host.name for host in self.hosts)
        graph.add_nodes_from(switch.name for switch in self.switches)
        for link in self.links:
            graph.add_edge(link.a, link.b, key=link.index, link=link)
        return graph


def interface(node: str, port: int) -> str:
    """The interface name of a port, as Mininet spells it: 'h1-eth0', 'e0_1-eth3'."""
    return f"{node}-eth{port}"
