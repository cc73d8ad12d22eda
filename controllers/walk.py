"""Walking packets through tables without a network: where a packet goes, and where flows go on average.

The tables are what the switches are told, so what holds here holds for any switch that does as told;
only the hash is a stand-in. A `Choose` of one's own puts a real switch's hash in its place.
"""
from __future__ import annotations

import hashlib
import ipaddress
from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import accumulate

from controllers.tables import UDP as UDP
from controllers.tables import (GATEWAY_MAC, TCP, Action, FlowRule, Group, Match, Output, SetEthDst,
                                SwitchTables, ToGroup)
from topologies.graph import Graph

HOPS_LAST = 64  # no path is longer; the IPv4 default TTL, though switches do not count it down here

# (index of a link, name of the node that sends on it): one direction of a link
Direction = tuple[int, str]


@dataclass(frozen=True)
class Packet:
    """The fields that tables and hashes look at; addresses as text, ports as numbers."""

    ipv4_src: str
    ipv4_dst: str
    l4_src: int
    l4_dst: int
    ip_proto: int = TCP
    eth_dst: str = GATEWAY_MAC
    ip_dscp: int = 0


@dataclass(frozen=True)
class Walk:
    """Where one packet went. `ended` is 'delivered', or why it was not."""

    nodes: tuple[str, ...]
    directions: tuple[Direction, ...]
    ended: str

    @property
    def delivered(self) -> bool:
        return self.ended == "delivered"


# The index of the bucket that a group chooses for a packet.
Choose = Callable[[Group, Packet], int]


def hashed(group: Group, packet: Packet) -> int:
    """A well mixed hash of the group's fields and its parameter, over buckets in proportion to weight."""
    fields = (str(getattr(packet, name)) for name in group.selection.fields)
    key = "/".join([str(group.selection.param), *fields])
    point = int.from_bytes(hashlib.blake2b(key.encode(), digest_size=8).digest(), "big")
    ends = list(accumulate(bucket.weight for bucket in group.buckets))
    return bisect_right(ends, point % ends[-1])


class Forwarding:
    """All tables of a fabric, ready to be looked up."""

    def __init__(self, graph: Graph, tables: Mapping[int, SwitchTables]):
        self.graph = graph
        self._rules = {switch.name: _by_length(tables[switch.dpid]) for switch in graph.switches}
        self._special = {switch.name: _special(tables[switch.dpid]) for switch in graph.switches}
        self._groups = {switch.name: {group.id: group for group in tables[switch.dpid].groups}
                        for switch in graph.switches}

    def rule(self, switch: str, ipv4_dst: str, packet: Packet | None = None) -> FlowRule | None:
        """The rule of the highest priority that matches (of two alike, the longer prefix); None: a miss.

        Rules that look at more than the destination are tried where the whole `packet` is given.
        """
        address = int(ipaddress.IPv4Address(ipv4_dst))
        best = None
        if packet is not None:
            best = next((rule for rule in self._special[switch] if matches(rule.match, packet)), None)
        for length, rules in self._rules[switch]:
            found = rules.get(address >> (32 - length))
            if found is not None and (best is None or found.priority > best.priority):
                best = found
        return best

    def group(self, switch: str, group: int) -> Group:
        """The group of this number on this switch; KeyError where there is none."""
        return self._groups[switch][group]

    def walk(self, packet: Packet, host: str, choose: Choose = hashed) -> Walk:
        """Send `packet` from `host` and follow it; at most HOPS_LAST links."""
        nodes, directions = [host], []
        port, = self.graph.neighbours[host]
        while len(directions) < HOPS_LAST:
            if port not in self.graph.neighbours[nodes[-1]]:
                return Walk(tuple(nodes), tuple(directions), f"port {port} of {nodes[-1]} has no link")
            other, link = self.graph.neighbours[nodes[-1]][port]
            directions.append((link.index, nodes[-1]))
            nodes.append(other)
            if other in self.graph.host:
                return Walk(tuple(nodes), tuple(directions), self._received(packet, other))
            rule = self.rule(other, packet.ipv4_dst, packet)
            output = None
            for action in rule.actions if rule else ():
                if isinstance(action, SetEthDst):
                    packet = replace(packet, eth_dst=action.mac)
                else:
                    output = self._port(other, action, packet, choose)
            if output is None:
                return Walk(tuple(nodes), tuple(directions), f"dropped by {other}")
            port = output
        return Walk(tuple(nodes), tuple(directions), f"still travelling after {HOPS_LAST} links")

    def spread(self, src: str, dst: str) -> dict[Direction, float]:
        """The share of many flows from host `src` to host `dst` that each direction of a link carries.

        Each group is taken to divide flows exactly by weight. Raises ValueError where packets circle.
        """
        shares: dict[Direction, float] = {}
        packet = Packet(self.graph.host[src].ip, self.graph.host[dst].ip, 0, 0)
        (other, link), = self.graph.neighbours[src].values()
        shares[link.index, src] = 1.0
        arriving = {other: 1.0}
        for _ in range(HOPS_LAST):
            leaving: dict[str, float] = {}
            for node, share in arriving.items():
                for port, part in self._shares(node, packet):
                    other, link = self.graph.neighbours[node][port]
                    direction = (link.index, node)
                    shares[direction] = shares.get(direction, 0.0) + share * part
                    if other in self.graph.switch:
                        leaving[other] = leaving.get(other, 0.0) + share * part
            if not leaving:
                return shares
            arriving = leaving
        raise ValueError(f"packets from {src} to {dst} circle")

    def _shares(self, switch: str, packet: Packet) -> list[tuple[int, float]]:
        rule = self.rule(switch, packet.ipv4_dst, packet)
        for action in rule.actions if rule else ():
            if isinstance(action, Output):
                return [(action.port, 1.0)]
            if isinstance(action, ToGroup):
                buckets = self.group(switch, action.group).buckets
                total = sum(bucket.weight for bucket in buckets)
                return [(bucket.port, bucket.weight / total) for bucket in buckets]
        return []

    def _port(self, switch: str, action: Action, packet: Packet, choose: Choose) -> int:
        if isinstance(action, ToGroup):
            group = self.group(switch, action.group)
            return group.buckets[choose(group, packet)].port
        return action.port

    def _received(self, packet: Packet, name: str) -> str:
        host = self.graph.host[name]
        if packet.ipv4_dst != host.ip:
            return f"misdelivered to {name}"
        if packet.eth_dst != host.mac:
            return f"refused by {name}: its MAC is {host.mac}, not {packet.eth_dst}"
        return "delivered"


def matches(match: Match, packet: Packet) -> bool:
    """Does `packet` have all that `match` asks for?"""
    for name in ("ipv4_dst", "ipv4_src"):
        prefix = getattr(match, name)
        if prefix and ipaddress.IPv4Address(getattr(packet, name)) not in ipaddress.IPv4Network(prefix):
            return False
    return all(getattr(match, name) in (None, getattr(packet, name))
               for name in ("ip_proto", "l4_src", "l4_dst", "ip_dscp"))


def _by_destination(match: Match) -> bool:
    return match == Match(ipv4_dst=match.ipv4_dst)


def _special(tables: SwitchTables) -> list[FlowRule]:
    """The rules that look at more than the destination, highest priority first."""
    return sorted((rule for rule in tables.flows if not _by_destination(rule.match)),
                  key=lambda rule: -rule.priority)


def _by_length(tables: SwitchTables) -> list[tuple[int, dict[int, FlowRule]]]:
    """[(prefix length, {prefix's bits: rule})], longest first; of equal matches the highest priority."""
    rules: dict[int, dict[int, FlowRule]] = {}
    plain = [rule for rule in tables.flows if _by_destination(rule.match)]
    for rule in sorted(plain, key=lambda rule: rule.priority):
        network = ipaddress.IPv4Network(rule.match.ipv4_dst or "0.0.0.0/0")
        bits = int(network.network_address) >> (32 - network.prefixlen)
        rules.setdefault(network.prefixlen, {})[bits] = rule
    return sorted(rules.items(), key=lambda item: -item[0])
