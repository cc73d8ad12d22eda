"""From a placement to tables: a rule for each pair of hosts at the sender's switch, which counts and steers.

Prefix rules cannot tell who sends to whom. So every switch with hosts gets a rule for each (local host,
host elsewhere): its byte count, read once a period, is that cell of the traffic matrix. Unplaced, the rule
does what the prefix rule below it does, so nothing changes by its being there; placed, it outputs to the
first link of the pair's path, and switches on the way that might send it elsewhere get a rule of the same
match. All paths are shortest ones, so whatever mixture of old and new rules a packet meets, each hop leads nearer.
"""
from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import replace

from controllers.scheduling.paths import Path
from controllers.scheduling.place import Pair, Placement
from controllers.tables import Action, FlowRule, Match, Output, SwitchTables
from topologies.graph import Graph

PAIR_PRIORITY = 200  # above all prefixes (routing.PRIORITY)
PAIR_SOURCES = ("10.0.0.0", "255.0.0.0")  # covers the match of every pair rule and of no prefix rule


def pair_match(graph: Graph, pair: Pair) -> Match:
    """The match of a pair's rules: both addresses whole."""
    source, destination = (graph.host[name].ip for name in pair)
    return Match(ipv4_dst=f"{destination}/32", ipv4_src=f"{source}/32")


def steered(graph: Graph, tables: Mapping[int, SwitchTables], placed: Placement) -> dict[int, SwitchTables]:
    """`tables` (dpid -> what routing planned) with the rules of all pairs above them.

    Hosts of one rack get none: there is no choice between them.
    """
    outputs: dict[str, dict[Pair, int]] = {switch.name: {} for switch in graph.switches}
    for pair, path in placed.items():
        for switch, port in _ports(graph, path):
            outputs[switch][pair] = port
    made = {}
    for switch in graph.switches:
        base = tables[switch.dpid]
        towards = Lookup(base)
        rules = []
        for pair in _pairs(graph, switch.name, outputs[switch.name]):
            port = outputs[switch.name].get(pair)
            usual = towards.actions(graph.host[pair[1]].ip)
            if port is None:
                rules.append(FlowRule(PAIR_PRIORITY, pair_match(graph, pair), usual))
            elif _starts_at(graph, pair, switch.name) or usual != (Output(port),):
                rules.append(FlowRule(PAIR_PRIORITY, pair_match(graph, pair), (Output(port),)))
        made[switch.dpid] = replace(base, flows=(*base.flows, *rules))
    return made


def _starts_at(graph: Graph, pair: Pair, switch: str) -> bool:
    return graph.host[pair[0]].rack == switch


def _pairs(graph: Graph, switch: str, placed: Mapping[Pair, int]) -> list[Pair]:
    """The pairs that have a rule at `switch`: all that start there, and those placed over it."""
    local = [host.name for host in graph.hosts if host.rack == switch]
    starting = [(source, host.name) for source in local for host in graph.hosts if host.rack != switch]
    return list(dict.fromkeys([*starting, *placed]))


def _ports(graph: Graph, path: Path) -> list[tuple[str, int]]:
    """(switch, port) of each link of a path."""
    ends, links = [], {link.index: link for link in graph.links}
    for directed in path:
        link = links[directed // 2]
        ends.append((link.b, link.b_port) if directed % 2 else (link.a, link.a_port))
    return ends


class Lookup:
    """The prefix rules of one switch, by longest prefix."""

    def __init__(self, tables: SwitchTables):
        self._rules: dict[int, dict[int, FlowRule]] = {}
        for rule in tables.flows:
            if rule.match.ipv4_dst is not None and rule.match.ipv4_src is None:
                network = ipaddress.IPv4Network(rule.match.ipv4_dst)
                bits = int(network.network_address) >> (32 - network.prefixlen)
                self._rules.setdefault(network.prefixlen, {})[bits] = rule

    def actions(self, ip: str) -> tuple[Action, ...]:
        """What is done with packets for `ip`; empty where they are dropped."""
        address = int(ipaddress.IPv4Address(ip))
        for length in sorted(self._rules, reverse=True):
            rule = self._rules[length].get(address >> (32 - length))
            if rule is not None:
                return rule.actions
        return ()
