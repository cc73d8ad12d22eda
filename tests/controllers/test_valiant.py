"""Valiant on dragonflies: whatever the hashes choose, packets arrive within two global and three local links."""
from __future__ import annotations

from collections import Counter
from itertools import permutations

import pytest

from controllers.network import Network, between_switches
from controllers.routing import check_routing, plan_tables
from controllers.tables import Output, ToGroup
from controllers.valiant import group_minimal, is_dragonfly
from controllers.walk import Forwarding, Packet
from emulator.errors import BadInput
from topologies.catalog import resolve_topology

SHIPPED = ("dragonfly:p=2,a=2,h=1,g=3", "dragonfly:p=1,a=4,h=2,g=9", "dragonfly:p=1,a=3,h=2,g=4",
           "dragonfly:p=2,a=1,h=3,g=4")


def every_way(graph, forwarding, src, dst):
    """All walks that any choice of group members can lead to, as lists of nodes; at most 8 switches long."""
    packet = Packet(graph.host[src].ip, graph.host[dst].ip, 1, 2)
    unfinished, found = [[graph.host[src].rack]], []
    while unfinished:
        way = unfinished.pop()
        assert len(way) <= 8, f"{src} to {dst} circles: {way}"
        rule = forwarding.rule(way[-1], packet.ipv4_dst, packet)
        ports = []
        for action in rule.actions:
            if isinstance(action, Output):
                ports = [action.port]
            elif isinstance(action, ToGroup):
                ports = [bucket.port for bucket in forwarding.group(way[-1], action.group).buckets]
        assert ports, f"{way[-1]} drops packets from {src} to {dst}"
        for port in ports:
            other = graph.neighbours[way[-1]][port][0]
            if other in graph.host:
                assert other == dst, f"{src} to {dst} arrives at {other}: {way}"
                found.append(way)
            else:
                unfinished.append([*way, other])
    return found


@pytest.mark.parametrize("text", SHIPPED)
def test_no_choice_of_hashes_leads_in_a_circle(text):
    graph = resolve_topology(text)
    forwarding = Forwarding(graph, plan_tables(graph, "valiant", 1))
    hosts = [host.name for host in graph.hosts][:12]
    for src, dst in permutations(hosts, 2):
        for way in every_way(graph, forwarding, src, dst):
            pods = [graph.switch[name].pod for name in way]
            crossed = sum(a != b for a, b in zip(pods, pods[1:]))
            assert len(set(way)) == len(way) and crossed <= 2 and len(way) - 1 - crossed <= 3
            if pods[0] == pods[-1]:
                assert crossed == 0, "within a group there is nothing to spread"


@pytest.mark.parametrize("text", SHIPPED)
def test_a_drained_link_carries_nothing_and_nobody_circles(text):
    """Nor does what is spread over all groups go over it: local links and global ones, single and parallel."""
    graph = resolve_topology(text)
    links = [link for link in graph.links if between_switches(graph, link)]
    for link in {(link.tier, link.a): link for link in links[:12]}.values():
        network = Network(graph, "valiant", 1).with_drained(f"{link.a}-{link.b}", True)
        forwarding = Forwarding(graph, network.tables())
        for number, (a, b) in enumerate(permutations(graph.hosts[:12], 2)):
            walk = forwarding.walk(Packet(a.ip, b.ip, 1000 + number, 5001), a.name)
            assert walk.delivered, f"{link.a}-{link.b} drained: {walk}"
            assert network.drained.isdisjoint(index for index, _ in walk.directions), walk


def test_every_group_carries_its_share():
    """Between two of nine groups, minimal ways use one global link; Valiant all eight that leave the group."""
    graph = resolve_topology("dragonfly:p=1,a=4,h=2,g=9")
    near, far = graph.hosts[0].name, graph.hosts[-1].name
    leaving = {}
    for routing in ("valiant", "ecmp"):
        spread = Forwarding(graph, plan_tables(graph, routing, 1)).spread(near, far)
        leaving[routing] = Counter()
        for (index, node), share in spread.items():
            link = graph.links[index]
            other = link.b if link.a == node else link.a
            pods = [graph.switch[name].pod for name in (node, other) if name in graph.switch]
            if len(pods) == 2 and pods[0] == 0 != pods[1]:
                leaving[routing][pods[1]] += share
    assert leaving["valiant"] == pytest.approx(dict.fromkeys(range(1, 9), 1 / 8))
    assert set(leaving["ecmp"]) < set(leaving["valiant"])


def test_other_fabrics_are_refused_and_minimal_ways_are_minimal():
    for text in ("fat-tree:k=4", "star:hosts=4", "leaf-spine:leaves=2,spines=2,hosts=2"):
        graph = resolve_topology(text)
        assert not is_dragonfly(graph)
        with pytest.raises(BadInput, match="valiant is for a dragonfly"):
            check_routing("valiant", graph)
    graph = resolve_topology(SHIPPED[1])
    check_routing("valiant", graph)
    hops = group_minimal(graph)
    for switch in graph.switches:
        for rack, ports in hops[switch.name].items():
            assert bool(ports) == (rack != switch.name)
