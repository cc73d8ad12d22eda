"""The fluid model against the published and computed values for a k=4 fat-tree (16 hosts)."""
from __future__ import annotations

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.errors import BadInput
from tests.traffic.conftest import star
from traffic import patterns
from traffic.collectives import halving_doubling, pairwise, ring, tree
from traffic.fluid import expected_share, max_min, messages_by_step
from traffic.paths import Paths
from traffic.placement import place
from traffic.schedule import Schedule, Workload


def pattern(pairs, connections=1):
    schedule, placement = patterns.flows("pattern", pairs, [160_000] * len(pairs), connections)
    return Workload("pattern", schedule, placement)


def job(schedule, kind):
    return Workload(schedule.name, schedule, place(kind, len(schedule.ranks), star(16).hosts, 0))


@pytest.fixture(scope="module")
def paths(k4):
    return Paths(k4)


@pytest.mark.parametrize("distance, tree, ecmp, sd", [
    (1, 1.0, 1.0, 0.01), (2, 0.50, 0.75, 0.09), (4, 0.25, 0.62, 0.07), (8, 0.25, 0.62, 0.07)])
def test_strides(paths, distance, tree, ecmp, sd):
    workload = pattern(patterns.stride(16, distance))
    assert expected_share(workload, paths, "single", ()).throughput.mean == pytest.approx(tree)
    drawn = expected_share(workload, paths, "ecmp", range(200)).throughput
    assert drawn.mean == pytest.approx(ecmp, abs=sd / 4)  # the mean of 200 draws is known that well
    assert drawn.sd == pytest.approx(sd, abs=0.015)
    assert drawn.p5 <= drawn.mean <= drawn.p95


def test_random_bijections(paths):
    workloads = [pattern(patterns.random_bijection(16, seed)) for seed in range(60)]
    tree = numpy.mean([expected_share(w, paths, "single", ()).throughput.mean for w in workloads])
    ecmp = numpy.mean([expected_share(w, paths, "ecmp", range(5)).throughput.mean for w in workloads])
    assert tree == pytest.approx(0.36, abs=0.03) and ecmp == pytest.approx(0.60, abs=0.03)


@pytest.mark.parametrize("edge_p, pod_p, tree, ecmp", [(.2, .3, .59, .73), (.5, .3, .78, .89)])
def test_staggered(paths, edge_p, pod_p, tree, ecmp):
    """The published patterns of these probabilities give .59 and .73, .78 and .89; drawn ones the same."""
    racks = [host.rack for host in paths.graph.hosts]
    pods = [paths.graph.switch[rack].pod for rack in racks]
    workloads = [pattern(patterns.staggered(racks, pods, edge_p, pod_p, seed)) for seed in range(60)]
    alone = numpy.mean([expected_share(w, paths, "single", ()).throughput.mean for w in workloads])
    hashed = numpy.mean([expected_share(w, paths, "ecmp", range(5)).throughput.mean for w in workloads])
    assert alone == pytest.approx(tree, abs=0.04) and hashed == pytest.approx(ecmp, abs=0.03)


@pytest.mark.parametrize("connections, share", [(2, 0.75), (4, 0.88), (8, 0.96), (16, 0.997)])
def test_more_flows_per_pair_spread_better(paths, connections, share):
    workload = pattern(patterns.stride(16, 8), connections)
    drawn = expected_share(workload, paths, "ecmp", range(40)).throughput
    assert drawn.mean == pytest.approx(share, abs=0.02)


def test_slowest_flow_of_stride_8(paths):
    slowest = expected_share(pattern(patterns.stride(16, 8)), paths, "ecmp", range(300)).efficiency
    assert slowest.mean == pytest.approx(0.39, abs=0.03) and slowest.sd == pytest.approx(0.09, abs=0.02)


def test_a_ring_in_rack_order_meets_nobody_and_in_random_order_falls_to_its_slowest_flow(paths):
    linear = expected_share(job(ring.all_reduce(16, 160_000), "linear"), paths, "ecmp", range(50)).efficiency
    assert (linear.mean, linear.sd) == (pytest.approx(1.0), 0.0)
    mixed = expected_share(job(ring.all_reduce(16, 160_000), "random"), paths, "ecmp", range(50))
    assert 0.25 <= mixed.efficiency.mean < 0.6 and mixed.efficiency.mean < mixed.throughput.mean


def test_halving_doubling_with_the_nearest_first_loses_less_than_half(paths):
    share = expected_share(job(halving_doubling.all_reduce(16, 160_000), "linear"), paths, "ecmp", range(50))
    assert 0.55 < share.efficiency.mean < share.throughput.mean < 1


def test_slices_make_the_steps_of_a_phase_overlap(paths):
    """A ring's flows are the same in every step; a tree's levels meet each other once it is sliced."""
    for slices in (1, 4):
        share = expected_share(job(ring.all_reduce(16, 160_000, slices), "random"), paths, "ecmp", range(20))
        assert share == expected_share(job(ring.all_reduce(16, 160_000), "random"), paths, "ecmp", range(20))
    steps = messages_by_step(tree.all_reduce(16, 160_000))
    assert len(steps) == 8 and len(messages_by_step(tree.all_reduce(16, 160_000, 4))) == 1
    assert len(messages_by_step(pairwise.all_to_all(16, 160_000, 4))) == 15
    assert sum(sum(step.values()) for step in steps) == 2 * 15 * 160_000


def test_an_incast_loses_nothing_in_the_fabric(paths):
    share = expected_share(pattern(patterns.incast(16, 15)), paths, "ecmp", range(5))
    assert share.throughput.mean == share.efficiency.mean == pytest.approx(1.0)


def test_the_same_seeds_give_the_same_share(paths):
    workload = pattern(patterns.stride(16, 8))
    first, second = (expected_share(workload, paths, "ecmp", range(5)) for _ in range(2))
    assert first == second != expected_share(workload, paths, "ecmp", range(5, 10))


def test_refusals(paths):
    with pytest.raises(BadInput, match='not "spray"'):
        expected_share(pattern([(0, 1)]), paths, "spray", range(5))
    with pytest.raises(BadInput, match="sends nothing"):
        expected_share(Workload("idle", Schedule("idle", ((),)), (0,)), paths, "ecmp", range(5))


@given(st.data())
@settings(max_examples=100, deadline=None)
def test_max_min_fairness(data):
    """No link over its capacity, and each flow has a full link on which nobody is faster."""
    links = data.draw(st.integers(1, 8))
    capacity = numpy.array(data.draw(st.lists(st.floats(0.1, 10), min_size=links, max_size=links)))
    flows = data.draw(st.lists(st.lists(st.integers(0, links - 1), min_size=1, max_size=4, unique=True),
                               min_size=1, max_size=12))
    table = numpy.array([flow + [-1] * (4 - len(flow)) for flow in flows])
    rate = max_min(table, capacity)
    load = numpy.zeros(links)
    for flow, r in zip(flows, rate):
        load[flow] += r
    assert (load <= capacity * (1 + 1e-6)).all()
    for flow, r in zip(flows, rate):
        assert any(load[link] >= capacity[link] * (1 - 1e-6)
                   and r >= max(rate[i] for i, other in enumerate(flows) if link in other) * (1 - 1e-6)
                   for link in flow)


def test_a_known_max_min_allocation():
    """Three flows on two links: the long one gets half of the small link, the others what is left."""
    rate = max_min(numpy.array([[0, 1], [0, -1], [1, -1]]), numpy.array([1.0, 3.0]))
    assert rate == pytest.approx([0.5, 0.5, 2.5])


def test_slices_of_an_all_to_all_keep_their_steps():
    whole, sliced = (messages_by_step(pairwise.all_to_all(6, 6000, slices)) for slices in (1, 4))
    assert len(whole) == 5 and sliced == whole
    assert len(messages_by_step(tree.all_reduce(6, 6000, slices=8))) == 1
