"""How flows divide: evenly over cores whatever the seed, polarised without one, and what probes see."""
from __future__ import annotations

from collections import Counter
from dataclasses import replace
from math import sqrt

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.controllers.random_graphs import graphs

from controllers.probes import plan_probes
from controllers.routing import ROUTINGS, plan_tables
from controllers.tables import Bucket, FlowRule, Group, Match, Output, Selection, SwitchTables, ToGroup
from controllers.walk import Forwarding, Packet, hashed
from topologies.catalog import resolve_topology


def cores_of_stride_8(graph, tables, ports) -> Counter:
    forwarding = Forwarding(graph, tables)
    counts: Counter = Counter()
    for i in range(16):
        src, dst = graph.hosts[i], graph.hosts[(i + 8) % 16]
        for l4_src in ports:
            walk = forwarding.walk(Packet(src.ip, dst.ip, l4_src, 5001), src.name)
            assert walk.delivered
            counts[walk.nodes[3]] += 1
    return counts


def test_flows_are_even_over_cores_over_seeds():
    graph = resolve_topology("fat-tree:k=4")
    counts: Counter = Counter()
    for seed in range(10):
        counts += cores_of_stride_8(graph, plan_tables(graph, "ecmp", seed), range(40000, 40020))
    expected = sum(counts.values()) / 4
    chi_square = sum((count - expected) ** 2 / expected for count in counts.values())
    assert len(counts) == 4
    assert chi_square < 16.3, f"{counts} is uneven (p < 0.001 with 3 degrees of freedom)"


def test_equal_hash_parameters_polarise():
    """With one parameter for all, an aggregation switch repeats the edge's choice: 2 of 4 cores idle."""
    graph = resolve_topology("fat-tree:k=4")
    alike = {dpid: replace(table, groups=tuple(replace(group, selection=replace(group.selection, param=1))
                                               for group in table.groups))
             for dpid, table in plan_tables(graph, "ecmp", 1).items()}
    assert cores_of_stride_8(graph, alike, range(40000, 40020)).keys() == {"c1", "c4"}


@settings(max_examples=50, deadline=None)
@given(graphs(), st.sampled_from(sorted(ROUTINGS)))
def test_shares_are_conserved_at_every_switch(graph, routing):
    forwarding = Forwarding(graph, plan_tables(graph, routing, 1))
    src, dst = graph.hosts[0], graph.hosts[-1]
    shares = forwarding.spread(src.name, dst.name)
    for switch in graph.switches:
        links = [link for _, link in graph.neighbours[switch.name].values()]
        sent = sum(shares.get((link.index, switch.name), 0.0) for link in links)
        got = sum(share for (index, sender), share in shares.items()
                  if sender != switch.name and graph.links[index] in links)
        assert sent == pytest.approx(got)
    last, = graph.neighbours[dst.name].values()
    assert shares[last[1].index, dst.rack] == pytest.approx(1.0)


def test_walks_follow_the_shares():
    graph = resolve_topology("leaf-spine:leaves=2,spines=3,hosts=2")
    forwarding = Forwarding(graph, plan_tables(graph, "ecmp", 2))
    shares = forwarding.spread("h1", "h3")
    n = 3000
    ends = graph.host["h1"].ip, graph.host["h3"].ip
    seen = Counter(direction for l4_src in range(n)
                   for direction in forwarding.walk(Packet(*ends, l4_src, 5001), "h1").directions)
    assert seen.keys() == shares.keys()
    for direction, share in shares.items():
        assert abs(seen[direction] / n - share) <= 4 * sqrt(share * (1 - share) / n)


@given(st.lists(st.integers(1, 9), min_size=1, max_size=8), st.integers(0, 2**32 - 1))
def test_weights_are_kept(weights, param):
    group = Group(1, tuple(Bucket(i + 1, weight) for i, weight in enumerate(weights)), Selection(param=param))
    n = 600
    chosen = Counter(hashed(group, Packet("10.0.0.2", "10.0.0.3", port, 5001)) for port in range(n))
    for i, weight in enumerate(weights):
        share = weight / sum(weights)
        assert abs(chosen[i] / n - share) <= 6 * sqrt(share * (1 - share) / n)


@pytest.mark.parametrize("routing", ROUTINGS)
@pytest.mark.parametrize("text", ["fat-tree:k=4", "fat-tree:k=6", "star:hosts=7", "clos3:hosts=1",
                                  "leaf-spine:leaves=4,spines=3,hosts=2"])
def test_probes_touch_every_used_link_in_both_directions(text, routing):
    graph = resolve_topology(text)
    for seed in range(3):
        tables = plan_tables(graph, routing, seed)
        plan = plan_probes(graph, tables, miss=1e-6)
        forwarding = Forwarding(graph, tables)
        seen = set()
        for src, dst in plan.pairs:
            for port in range(30000, 30000 + plan.ports):
                packet = Packet(graph.host[src].ip, graph.host[dst].ip, port, 7)
                seen.update(forwarding.walk(packet, src).directions)
        assert seen == plan.expected
        assert {src for src, _ in plan.pairs} == {dst for _, dst in plan.pairs} == graph.host.keys()
        assert not plan.idle or routing == "single"
        assert len(plan.expected) + len(plan.idle) == 2 * len(graph.links)


@settings(max_examples=30, deadline=None)
@given(graphs(), st.sampled_from(sorted(ROUTINGS)))
def test_idle_directions_are_those_no_pair_uses(graph, routing):
    tables = plan_tables(graph, routing, 1)
    plan = plan_probes(graph, tables)
    forwarding = Forwarding(graph, tables)
    used = {direction for a in graph.hosts for b in graph.hosts if a != b
            for direction in forwarding.spread(a.name, b.name)}
    assert plan.expected == used
    assert plan.idle.isdisjoint(used)


def test_tables_that_circle_are_found():
    graph = resolve_topology("leaf-spine:leaves=2,spines=1,hosts=1")
    up = {name: SwitchTables(graph.switch[name].dpid, (FlowRule(1, Match(), (Output(port),)),), ())
          for name, port in (("l1", 2), ("l2", 2), ("s1", 1))}
    forwarding = Forwarding(graph, {table.dpid: table for table in up.values()})
    with pytest.raises(ValueError, match="circle"):
        forwarding.spread("h1", "h2")
    walk = forwarding.walk(Packet("10.0.1.2", "10.0.2.2", 1, 1), "h1")
    assert not walk.delivered and "still travelling" in walk.ended


def test_a_last_hop_that_leaves_the_gateways_mac_is_not_delivered():
    graph = resolve_topology("star:hosts=2")
    group = Group(1, (Bucket(2),), Selection())
    tables = {1: SwitchTables(1, (FlowRule(1, Match("10.0.0.3/32"), (ToGroup(1),)),), (group,))}
    walk = Forwarding(graph, tables).walk(Packet("10.0.0.2", "10.0.0.3", 1, 1), "h1")
    assert "its MAC is" in walk.ended
