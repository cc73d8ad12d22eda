"""What collectives send between racks, and how many nodes a byte touches at a parameter server."""
from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.errors import BadInput
from emulator.specs import parse_spec
from tests.traffic.conftest import leaf_spine
from traffic.collectives import hierarchical, ring
from traffic.collectives.parameter_server import parameter_server
from traffic.crossrack import blind_ring_bytes, cross_rack_bytes, note, ordered_ring_bytes, ring_edges
from traffic.load import traffic_matrix
from traffic.placement import place
from traffic.schedule import Collective, Kind, Workload
from traffic.setting import Setting
from traffic.specs import resolve_workload
from traffic.sweep import is_sweep, sizes

SIZE = 144_000


@settings(max_examples=30, deadline=None)
@given(racks=st.integers(2, 6), group=st.integers(1, 4))
def test_a_hierarchy_sends_one_gth_of_what_a_blind_ring_does(racks, group):
    """Exactly: 2(n-G)/G buffers against 2(n-G) in the mean; a ring in rack order sends 2(n-1)/G."""
    graph, n, size = leaf_spine(racks, 1, group), racks * group, SIZE * racks * group
    placement = tuple(range(n))
    tree = [[rack * group + member for member in range(group)] for rack in range(racks)]
    own = cross_rack_bytes(hierarchical.all_reduce(tree, size), placement, graph)
    blind, ordered = blind_ring_bytes(placement, size, graph), ordered_ring_bytes(placement, size, graph)
    assert own * group == pytest.approx(blind) == pytest.approx(2 * (n - group) * size)
    assert ordered == 2 * (n - 1) * size // group
    assert own <= ordered <= own * (n - 1) / (n - group) * (1 + 1e-9)  # the order alone saves nearly as much


def test_the_mean_over_random_placements_is_the_formula(k4):
    schedule = ring.all_reduce(16, SIZE)
    sent = [cross_rack_bytes(schedule, place("random", 16, k4.hosts, seed), k4) for seed in range(400)]
    assert sum(sent) / len(sent) == pytest.approx(blind_ring_bytes(tuple(range(16)), SIZE, k4), rel=0.01)


@pytest.mark.parametrize("text, words", [
    ("allreduce:algorithm=hierarchical,bytes=1MB",
     ["(0.500 of it)", "the order of the ranks alone already saves nearly"]),
    ("allreduce:bytes=1MB", ["the order of the ranks already saves as much as a hierarchy"]),
    ("allreduce:bytes=1MB,placement=spread", ["rack order would save 50% of it"])])
def test_the_result_says_what_rack_order_saves(k4, text, words):
    workload = resolve_workload(text, Setting(k4, 5e6, 1500, 1))
    assert len(workload.notes) == 1 and all(word in workload.notes[0] for word in words)


def test_the_result_says_where_the_bytes_of_a_parameter_server_meet(k4):
    setting = Setting(k4, 5e6, 1500, 1)
    assert "one of 1 servers, 10.0% of the 10 nodes" in resolve_workload(
        "parameterserver:bytes=1MB,ranks=10,servers=1", setting).notes[0]
    assert "one of 4 servers, 25.0% of the 16 nodes" in resolve_workload("parameterserver:bytes=1MB", setting).notes[0]


def test_nothing_is_said_where_there_are_no_racks_to_cross(star16, k4):
    schedule = ring.all_reduce(16, SIZE)
    sum_of_all = Collective("all-reduce", SIZE)
    assert note(Workload("", schedule, tuple(range(16)), collective=sum_of_all), star16) == ""
    assert note(Workload("", schedule, tuple(range(16))), k4) == ""


@pytest.mark.parametrize("servers", [1, 2, 3])
def test_every_byte_of_a_parameter_server_with_nine_workers_each_touches_a_tenth_of_the_nodes(servers):
    """S = N/9 servers of N workers: a tenth of the nodes ends every transfer."""
    ranks = 10 * servers
    sent = traffic_matrix(parameter_server(ranks, servers, 90_000))
    at_servers = sent[:servers].sum() + sent[:, :servers].sum()
    assert at_servers == sent.sum() and servers / ranks == 0.1
    assert sent[servers:, servers:].sum() == 0 == sent[:servers, :servers].sum()


def test_sizes_in_turn(k4):
    assert sizes("64kB+1MB", "bytes") == ["64kB", "1MB"]
    assert sizes("64kB..600kB", "bytes") == ["64kB", "128kB", "256kB", "512kB"]
    assert sizes("1KiB..4KiB+3B", "bytes") == ["1KiB", "2KiB", "4KiB", "3B"]
    assert not is_sweep(parse_spec("allreduce:bytes=1MB", ""))
    assert is_sweep(parse_spec("allreduce:bytes=1MB..2MB", ""))
    workload = resolve_workload("allreduce:bytes=64kB..256kB,iterations=2", Setting(k4, 5e6, 1500, 1))
    assert [job.name for job in workload.jobs] == ["64kB", "128kB", "256kB"]
    assert [job.workload.collective.size_bytes for job in workload.jobs] == [64_000, 128_000, 256_000]
    assert [job.after for job in workload.jobs] == [None, 0, 1] and workload.jobs[2].first_rank == 32
    assert workload.placement == tuple(range(16)) * 3 and len(workload.notes) == 1


@pytest.mark.parametrize("text, sentence", [
    ("2MB..1MB", "must go from"), ("0B..1MB", "must go from"), ("1B..1GB+1kB..1GB", "more than 32"),
    ("1kB+1kB", "has 1kB twice"), ("1kB..soon", "is not a number with a unit"),
    ("1kB+", "is not a number with a unit")])
def test_sizes_that_cannot_be(k4, text, sentence):
    with pytest.raises(BadInput, match=sentence):
        resolve_workload(f"allreduce:bytes={text}", Setting(k4, 5e6, 1500, 1))


@pytest.mark.parametrize("ranks, size", [(2, 7), (3, 100), (16, 1000), (5, 4)])
def test_edges_of_a_ring_without_writing_it(ranks, size):
    schedule = ring.all_reduce(ranks, size)
    sent = [sum(op.size_bytes for op in ops if op.kind is Kind.SEND) for ops in schedule.ranks]
    assert ring_edges(ranks, size) == sent
