"""Equal-cost paths, bytes per link, the wire's arithmetic."""
from __future__ import annotations

from dataclasses import replace

import networkx
import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.errors import BadInput
from topologies.catalog import resolve_topology
from traffic import load, patterns
from traffic.collectives import ring
from traffic.paths import Paths
from traffic.placement import place
from traffic.wire import Wire


def plan(graph, pairs, size_bytes):
    schedule, placement = patterns.flows("pattern", pairs, [size_bytes] * len(pairs))
    return load.link_bytes(schedule, placement, Paths(graph))


@pytest.mark.parametrize("fabric", ["k4", "k8", "star16", "oversubscribed"])
def test_first_paths_are_shortest_and_connected(fabric, request):
    graph = request.getfixturevalue(fabric)
    paths = Paths(graph)
    lengths = dict(networkx.all_pairs_shortest_path_length(graph.networkx))
    for source in graph.hosts[::3]:
        for destination in graph.hosts[::5]:
            if source == destination:
                continue
            node = source.name
            links = paths.first(source.name, destination.name)
            for directed in links:
                link = paths.link[directed // 2]
                start, end = (link.b, link.a) if directed % 2 else (link.a, link.b)
                assert start == node
                node = end
            assert node == destination.name and len(links) == lengths[source.name][destination.name]


def test_number_of_equal_cost_next_hops(k4):
    towards = Paths(k4).towards("h16")
    on_the_way = ("h1", "e0_0", "a0_0", "c0", "a3_0", "e3_1")
    assert [len(towards.hops[node]) for node in on_the_way] == [1, 2, 2, 1, 1, 1]


def test_no_path_through_a_host(k4):
    everywhere = Paths(k4).towards("h16").hops.values()
    assert not any(hop.node in k4.host and hop.node != "h16" for hops in everywhere for hop in hops)


def test_a_fabric_in_two_parts_is_refused(k4):
    broken = replace(k4, links=k4.links[1:])  # h1 is cut off
    with pytest.raises(BadInput, match="no path from h1 to h2"):
        Paths(broken).first("h1", "h2")
    with pytest.raises(BadInput, match="no path from h1 to h2"):
        plan(broken, [(0, 1)], 10)


@given(seed=st.integers(0, 10**6), size_bytes=st.integers(1, 10**9))
@settings(max_examples=20, deadline=None)
def test_bytes_are_conserved_at_every_node(k4, seed, size_bytes):
    pairs = patterns.random_bijection(16, seed)
    loads = plan(k4, pairs, size_bytes)
    net = {node: 0.0 for node in k4.neighbours}
    for link in k4.links:
        for way, (source, destination) in enumerate(((link.a, link.b), (link.b, link.a))):
            net[source] -= loads[link.index, way]
            net[destination] += loads[link.index, way]
    assert all(abs(value) < 1e-6 * size_bytes for value in net.values())  # each host sends what it receives
    host_edge = [loads[link.index] for link in k4.links if link.tier == "host-edge"]
    assert numpy.allclose(host_edge, size_bytes)


def test_tiers_of_strides(k4):
    """Stride 8 crosses the core for all 16 flows, stride 1 for one in four."""
    tiers = load.tier_bytes(plan(k4, patterns.stride(16, 8), 100), k4)
    assert tiers == pytest.approx({"host-edge": 3200, "edge-aggregation": 3200, "aggregation-core": 3200})
    tiers = load.tier_bytes(plan(k4, patterns.stride(16, 1), 100), k4)
    assert tiers == pytest.approx({"host-edge": 3200, "edge-aggregation": 1600, "aggregation-core": 800})


def test_busiest_link(k4, oversubscribed):
    wire = Wire(10e6, 1500)
    worst = load.busiest(plan(k4, patterns.incast(16, 15), 1000), k4, wire)
    assert (worst.source, worst.destination, worst.payload_bytes) == ("e3_1", "h16", 15000)
    assert worst.time_s == pytest.approx(15000 * wire.beta_s())
    worst = load.busiest(plan(oversubscribed, patterns.stride(8, 4), 1000), oversubscribed, wire)
    assert worst.link.tier == "leaf-spine"  # 4 hosts over 2 uplinks at half speed: 4 times as long
    assert worst.time_s == pytest.approx(4 * 1000 * wire.beta_s(shared=True))
    assert load.busiest(numpy.zeros((48, 2)), k4, wire) is None


def test_a_linear_ring_loads_each_uplink_once(k4):
    schedule = ring.all_reduce(16, 16_000)
    loads = load.link_bytes(schedule, place("linear", 16, k4.hosts, 0), Paths(k4))
    assert loads.max() == pytest.approx(2 * 15 * 1000)
    tiers = load.tier_bytes(loads, k4)
    assert tiers["aggregation-core"] == pytest.approx(4 * 2 * 2 * 15 * 1000)  # 4 pods' borders, up and down


def test_128_ranks_on_k8(k8):
    schedule = ring.all_reduce(128, 128_000)
    loads = load.link_bytes(schedule, place("random", 128, k8.hosts, 1), Paths(k8))
    assert load.tier_bytes(loads, k8)["host-edge"] == pytest.approx(2 * schedule.bytes_sent)


def test_traffic_matrix_and_connections():
    schedule = ring.all_reduce(4, 400, channels=2)
    matrix = load.traffic_matrix(schedule)
    assert matrix.sum() == schedule.bytes_sent == sum(load.pairs(schedule).values())
    assert (numpy.nonzero(matrix)[1] == [1, 2, 3, 0]).all() and len(load.pairs(schedule)) == 8


def test_goodput_of_the_contract():
    wire = Wire(10e6, 1500)
    assert wire.goodput_ratio() == pytest.approx(1448 / 1514)
    assert wire.goodput_ratio(shared=True) / wire.goodput_ratio() == pytest.approx(0.9785, abs=3e-4)
    assert Wire(1e6, 9000).goodput_ratio() > 0.99
    with pytest.raises(BadInput, match="MTU of 40"):
        Wire(1e6, 40)


def by_frames(wire, path, size_bytes):
    """The same one-way time, frame by frame through store-and-forward switches."""
    free = [0.0] * len(path)
    left = size_bytes
    while left:
        bits = 8 * (min(left, wire.payload_bytes) + 66)
        left -= min(left, wire.payload_bytes)
        ready = 0.0
        for hop, link in enumerate(path):
            free[hop] = max(free[hop], ready) + bits / wire.link_rate_bps(link)
            ready = free[hop] + wire.delay_s
    return ready


@given(size_bytes=st.integers(1, 60_000), destination=st.integers(1, 7), delay_s=st.sampled_from([0.0, 1e-3]))
@settings(max_examples=60, deadline=None)
def test_one_way_time_against_frame_by_frame(oversubscribed, size_bytes, destination, delay_s):
    wire = Wire(10e6, 1500, delay_s)
    paths = Paths(oversubscribed)
    path = paths.first_links("h1", f"h{destination + 1}")
    exact = by_frames(wire, path, size_bytes)
    # a short last frame may catch up on slower links: at most a frame on each link after the first
    assert exact <= wire.one_way_s(path, size_bytes) + 1e-12
    assert wire.one_way_s(path, size_bytes) - exact <= sum(8 * 1514 / wire.link_rate_bps(p) for p in path[1:])
    if size_bytes % 1448 == 0 or size_bytes < 1448:
        assert wire.one_way_s(path, size_bytes) == pytest.approx(exact)


def test_ideal_fct_of_one_long_flow(k4):
    wire, paths = Wire(5e6, 1500), Paths(k4)
    path = paths.first_links("h1", "h16")
    size_bytes = 10 * 5_000_000 * 1448 // 1514 // 8
    assert wire.ideal_fct_s(path, size_bytes) == pytest.approx(10.0, rel=2e-3)
    assert wire.ack_s(path) == pytest.approx(6 * 8 * 66 / 5e6)


def test_a_slow_uplink_is_given_what_it_can_carry():
    """Two leaves, four spines, one uplink at a quarter: the best split is 4:4:4:1, so 4 hosts share 3.25 links."""
    graph = resolve_topology("leaf-spine:leaves=2,spines=4,hosts=4,slow=1,slow_factor=0.25")
    carried = plan(graph, patterns.stride(8, 4), 1_300_000)
    for link in graph.links:
        if link.tier == "leaf-spine":
            assert carried[link.index] == pytest.approx([400_000 * (0.25 if link.b == "s1" else 1.0) * 4] * 2)
    wire = Wire.shaped(5e6, 1500)
    worst = load.busiest(carried, graph, wire)
    assert worst.link.tier == "leaf-spine" and worst.time_s == pytest.approx(
        8 * 1_300_000 * 4 / 3.25 / (5e6 * 0.9355), rel=0.01)
    assert [link.b for link in Paths(graph).first_links("h1", "h5")] == ["l1", "s2", "s2", "l2"]
    assert [link.a for link in Paths(graph).first_links("h5", "h1")] == ["h5", "l2", "l1", "h1"]
