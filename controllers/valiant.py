"""Valiant routing on a dragonfly: over a random group first (Valiant, 1982; Kim et al., ISCA'08, section 4).

Tables only, nothing is written into packets; where a packet is on its way follows from whose it is:

- At its source's router a packet for another group is hashed over all global links of the group, its own and
  those of its neighbours. At a neighbour, which knows the group by the source address, it is hashed over the
  neighbour's own global links.
- From the group it then reaches it goes the minimal way: to the router with a link to the destination's
group, over it, to the destination's router. Minimal ways lead through no third group, so no packet comes back
to the group that it started in, where it would be spread again: at most two global and three local links, no
circle.
"""
from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from controllers.nexthops import NextHops, equal_cost
from controllers.prefixes import blocks
from controllers.tables import FlowRule, Group, Match, Output, Selection, SwitchTables, ToGroup
from controllers.weights import buckets, whole_weights
from topologies.graph import Graph, Host

FROM_GROUP, FROM_RACK, HOME = 150, 155, 160  # priorities, above the prefixes; home destinations above all


def is_dragonfly(graph: Graph) -> bool:
    """Do the switches form groups, each fully meshed and linked to every other, with addresses of its own?"""
    pods = _pods(graph)
    if len(pods) < 2 or -1 in pods:
        return False
    for pod, members in pods.items():
        if any(set(members) - {name} - _neighbours(graph, name) for name in members):
            return False
        linked = {graph.switch[other].pod for name in members for other in _neighbours(graph, name)}
        if linked | {pod} != pods.keys():
            return False
    return all(_alone(graph, hosts) for hosts in (*_by_pod(graph).values(), *_by_rack(graph).values()))


def group_minimal(graph: Graph) -> NextHops:
    """The minimal ways of a dragonfly: local, global, local, through no third group; on any other graph, such
    as a dragonfly that lacks a link, all shortest paths.
    """
    if not is_dragonfly(graph):
        return equal_cost(graph)
    pods, racks = _pods(graph), list(dict.fromkeys(host.rack for host in graph.hosts))
    hops: dict[str, dict[str, tuple[int, ...]]] = {}
    for switch in graph.switches:
        hops[switch.name] = {}
        for rack in racks:
            there = graph.switch[rack].pod
            if rack == switch.name:
                ports: tuple[int, ...] = ()
            elif there == switch.pod:
                ports = _ports_to(graph, switch.name, [rack])
            else:
                ports = _ports_to(graph, switch.name, pods[there])
                if not ports:
                    exits = [name for name in pods[switch.pod] if _ports_to(graph, name, pods[there])]
                    ports = _ports_to(graph, switch.name, exits)
            hops[switch.name][rack] = ports
    return hops


def spread_over_groups(graph: Graph, tables: Mapping[int, SwitchTables], half: bool = False
                       ) -> dict[int, SwitchTables]:
    """`tables` of minimal ways with the rules that send packets over a random group first; as they are where
    the graph is no dragonfly.

    half: without those of a source's own router. A neighbour that it would send packets to has to have its
    rule already, or still: else it sends them back.
    """
    if not is_dragonfly(graph):
        return dict(tables)
    made = {}
    for switch in graph.switches:
        base = tables[switch.dpid]
        homes = [host for host in graph.hosts if graph.switch[host.rack].pod == switch.pod]
        flows = tuple(replace(rule, priority=HOME) if _is_home(rule, homes) else rule for rule in base.flows)
        selection = next((group.selection for group in base.groups), None) or _selection(tables)
        add = _Adding(base, selection)
        own = _global_ports(graph, switch.name)
        if not half and any(host.rack == switch.name for host in homes):
            everything = dict.fromkeys(own, 1)
            for other in _pods(graph)[switch.pod]:
                if other != switch.name and (count := len(_global_ports(graph, other))):
                    everything[_ports_to(graph, switch.name, [other])[0]] = count
            add.rule(FROM_RACK, _prefix(host for host in homes if host.rack == switch.name), everything)
        if own and homes:
            add.rule(FROM_GROUP, _prefix(homes), dict.fromkeys(own, 1))
        made[switch.dpid] = SwitchTables(switch.dpid, (*flows, *add.flows), (*base.groups, *add.groups))
    return made


class _Adding:
    """Rules and groups to be added to one switch."""

    def __init__(self, base: SwitchTables, selection: Selection):
        self._number = max((group.id for group in base.groups), default=0)
        self._selection = selection
        self.flows: list[FlowRule] = []
        self.groups: list[Group] = []

    def rule(self, priority: int, source: str, weights: Mapping[int, int]) -> None:
        """Packets from `source` are hashed over ports by weight."""
        ports = list(weights)
        if len(ports) == 1:
            action: Output | ToGroup = Output(ports[0])
        else:
            self._number += 1
            whole = whole_weights(list(weights.values()))
            members = list(zip(ports, whole, strict=True))
            self.groups.append(Group(self._number, buckets(members, "hash"), self._selection))
            action = ToGroup(self._number)
        self.flows.append(FlowRule(priority, Match(ipv4_src=source), (action,)))


def _selection(tables: Mapping[int, SwitchTables]) -> Selection:
    return next((group.selection for each in tables.values() for group in each.groups), Selection(param=1))


def _is_home(rule: FlowRule, homes: Sequence[Host]) -> bool:
    """Is the rule for destinations of this group?"""
    if rule.match.ipv4_dst is None:
        return False
    network = ipaddress.IPv4Network(rule.match.ipv4_dst)
    return any(ipaddress.IPv4Address(host.ip) in network for host in homes)


def _prefix(hosts: Iterable[Host]) -> str:
    """The smallest prefix around the addresses of `hosts`."""
    return blocks(list(hosts)).prefix


def _alone(graph: Graph, hosts: Sequence[Host]) -> bool:
    network = ipaddress.IPv4Network(_prefix(hosts))
    return sum(ipaddress.IPv4Address(host.ip) in network for host in graph.hosts) == len(hosts)


def _by_pod(graph: Graph) -> dict[int, list[Host]]:
    found: dict[int, list[Host]] = {}
    for host in graph.hosts:
        found.setdefault(graph.switch[host.rack].pod, []).append(host)
    return found


def _by_rack(graph: Graph) -> dict[str, list[Host]]:
    found: dict[str, list[Host]] = {}
    for host in graph.hosts:
        found.setdefault(host.rack, []).append(host)
    return found


def _pods(graph: Graph) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    for switch in graph.switches:
        found.setdefault(switch.pod, []).append(switch.name)
    return found


def _neighbours(graph: Graph, name: str) -> set[str]:
    return {other for other, _ in graph.neighbours[name].values() if other in graph.switch}


def _ports_to(graph: Graph, name: str, others: Sequence[str]) -> tuple[int, ...]:
    return tuple(port for port, (other, _) in sorted(graph.neighbours[name].items()) if other in others)


def _global_ports(graph: Graph, name: str) -> tuple[int, ...]:
    pod = graph.switch[name].pod
    return tuple(port for port, (other, _) in sorted(graph.neighbours[name].items())
                 if other in graph.switch and graph.switch[other].pod != pod)
