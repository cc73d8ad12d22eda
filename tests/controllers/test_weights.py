"""Weighted ECMP: shares follow capacity, on unequal links and where something is missing further on."""
from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings, strategies as st

from controllers.nexthops import equal_cost
from controllers.routing import plan_tables
from controllers.tables import ToGroup
from controllers.walk import Forwarding
from controllers.weights import BUCKETS_LAST, EXACT, by_capacity, weighted, whole_weights
from emulator.asic.hashing import Flow, group_seed, hashed_member
from tests.controllers.random_graphs import graphs
from topologies.catalog import resolve_topology

UNEQUAL = "leaf-spine:leaves=2,spines=4,hosts=4,slow=1,slow_factor=0.25"


@given(st.lists(st.floats(0.05, 20), min_size=1, max_size=12))
def test_weights_are_small_whole_numbers_near_the_shares(shares):
    weights = whole_weights(shares)
    assert len(weights) == len(shares) and 0 < sum(weights) <= BUCKETS_LAST
    parts = [share / sum(shares) for share in shares]
    overload = max(weight / sum(weights) / part for weight, part in zip(weights, parts, strict=True)) - 1
    assert overload <= 1 / BUCKETS_LAST / min(parts) + EXACT  # rounding up to one bucket more


def test_one_uplink_at_a_quarter_gets_one_flow_in_thirteen_from_either_side():
    graph = resolve_topology(UNEQUAL)
    hops = weighted(graph, equal_cost(graph))
    for leaf, other in (("l1", "l2"), ("l2", "l1")):
        assert [weight for _, weight in hops[leaf][other]] == [1, 4, 4, 4]
    tables = plan_tables(graph, "wcmp", seed=1)
    spread = Forwarding(graph, tables).spread("h1", "h5")
    shares = {graph.links[index].b: share for (index, node), share in spread.items() if node == "l1"}
    assert shares == pytest.approx({"s1": 1 / 13, "s2": 4 / 13, "s3": 4 / 13, "s4": 4 / 13})


def test_a_dead_link_at_a_core_weighs_in_the_other_pods():
    """c1 has lost pod 1: edges elsewhere send half as much over aggregation 0 towards it as over 1, and a
    little more over 0 to each other, since pod 1 sends nothing over c1.
    """
    graph = resolve_topology("fat-tree:k=4")
    links = tuple(link for link in graph.links if (link.a, link.b) != ("a1_0", "c1"))
    cut = replace(graph, links=links)
    hops = weighted(cut, equal_cost(cut))
    assert [weight for _, weight in hops["e0_0"]["e1_0"]] == [1, 2]
    assert [weight for _, weight in hops["e0_0"]["e2_0"]] == [5, 4]


@settings(max_examples=40, deadline=None)
@given(graphs())
def test_any_graph_gets_weights_for_its_shortest_paths(graph):
    hops = equal_cost(graph)
    for switch, racks in weighted(graph, hops).items():
        for rack, members in racks.items():
            assert {port for port, _ in members} == set(hops[switch][rack])
            assert all(weight > 0 for _, weight in members) and sum(w for _, w in members) <= BUCKETS_LAST


@pytest.mark.parametrize("text", ["fat-tree:k=4", "star:hosts=4", "leaf-spine:leaves=2,spines=2,hosts=2"])
def test_alike_links_give_plain_ecmp(text):
    graph = resolve_topology(text)
    assert plan_tables(graph, "wcmp", 1) == plan_tables(graph, "ecmp", 1)
    assert any(isinstance(action, ToGroup) for tables in plan_tables(graph, "wcmp", 1).values()
               for rule in tables.flows for action in rule.actions) == (not text.startswith("star"))


def test_a_switch_divides_many_flows_by_its_weights():
    """4:4:4:1 within a point, over 20000 flows, by the hash that the bpf switch computes."""
    rng, weights, counts = random.Random(1), (1, 4, 4, 4), [0, 0, 0, 0]
    for _ in range(20_000):
        flow = Flow(rng.getrandbits(32), rng.getrandbits(32), 6, rng.getrandbits(16), rng.getrandbits(16))
        counts[hashed_member(flow, group_seed(7, 0), weights)] += 1
    for count, weight in zip(counts, weights, strict=True):
        assert count / 20_000 == pytest.approx(weight / 13, abs=0.01)


def test_a_switch_that_adapts_looks_at_capacity_not_at_who_else_sends():
    """c1 has lost pod 1: what leads to pod 1 weighs as much as is left; elsewhere nothing is missing."""
    graph = resolve_topology("fat-tree:k=4")
    links = tuple(link for link in graph.links if (link.a, link.b) != ("a1_0", "c1"))
    cut = replace(graph, links=links)
    hops = by_capacity(cut, equal_cost(cut))
    assert [weight for _, weight in hops["e0_0"]["e1_0"]] == [1, 2]
    for switch, rack in (("e0_0", "e2_0"), ("a0_0", "e2_0"), ("e3_1", "e0_1")):
        assert [weight for _, weight in hops[switch][rack]] == [1, 1], (switch, rack)
    unequal = resolve_topology(UNEQUAL)
    weights = by_capacity(unequal, equal_cost(unequal))
    for leaf, other in (("l1", "l2"), ("l2", "l1")):
        assert [weight for _, weight in weights[leaf][other]] == [1, 4, 4, 4]


@settings(max_examples=40, deadline=None)
@given(graphs())
def test_where_a_switch_adapts_no_next_hop_is_left_out_for_its_rivals(graph):
    hops = equal_cost(graph)
    for switch, racks in by_capacity(graph, hops).items():
        for rack, members in racks.items():
            assert {port for port, _ in members} == set(hops[switch][rack])
