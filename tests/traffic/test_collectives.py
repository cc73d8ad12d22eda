"""Each collective, executed on real bytes, leaves on every rank what its name promises."""
from __future__ import annotations

import math
import random

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.errors import BadInput
from traffic.check import check_schedule
from traffic.collectives import chain, halving_doubling, hierarchical, pairwise, ring, tree
from traffic.collectives.parameter_server import parameter_server
from traffic.dag import dag
from traffic.interpret import interpret
from traffic.program import split
from traffic.schedule import Kind, Schedule

RANKS = range(1, 34)
ALL_REDUCES = [ring.all_reduce, ring.bidirectional_all_reduce, halving_doubling.all_reduce, tree.all_reduce]


def random_bytes(schedule: Schedule, seed: int = 0) -> numpy.ndarray:
    shape = (len(schedule.ranks), schedule.buffer_bytes)
    return numpy.random.default_rng(seed).integers(0, 256, shape, dtype=numpy.uint8)


def sent_by(schedule: Schedule) -> list[int]:
    return [sum(op.size_bytes for op in ops if op.kind is Kind.SEND) for ops in schedule.ranks]


def execute(schedule: Schedule, data: numpy.ndarray) -> numpy.ndarray:
    """The result of the most unkind execution: random order, and what is sent read at the last moment."""
    return interpret(schedule, data, random.Random(len(schedule.ranks)), late=True)


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("all_reduce", ALL_REDUCES)
def test_all_reduce_gives_the_sum_to_every_rank(all_reduce, ranks):
    schedule = all_reduce(ranks, 331)
    data = random_bytes(schedule)
    assert (execute(schedule, data) == data.sum(axis=0, dtype=numpy.uint8)).all()


@pytest.mark.parametrize("ranks", RANKS)
def test_ring_reduce_scatter_gives_chunk_i_to_rank_i(ranks):
    schedule = ring.reduce_scatter(ranks, 331)
    data = random_bytes(schedule)
    result, total = execute(schedule, data), data.sum(axis=0, dtype=numpy.uint8)
    for rank, (low, high) in enumerate(split(0, 331, ranks)):
        assert (result[rank, low:high] == total[low:high]).all()


@pytest.mark.parametrize("ranks", RANKS)
def test_ring_all_gather_gives_every_chunk_to_every_rank(ranks):
    schedule = ring.all_gather(ranks, 331)
    data = random_bytes(schedule)
    want = numpy.concatenate([data[r, low:high] for r, (low, high) in enumerate(split(0, 331, ranks))])
    assert (execute(schedule, data) == want).all()


@given(ranks=st.integers(1, 12), size_bytes=st.integers(1, 200), slices=st.integers(1, 4),
       channels=st.integers(1, 3), which=st.sampled_from(ALL_REDUCES), seed=st.integers(0, 99))
@settings(max_examples=60, deadline=None)
def test_slices_channels_and_odd_sizes_change_nothing(ranks, size_bytes, slices, channels, which, seed):
    schedule = which(ranks, size_bytes, slices, channels)
    data = random_bytes(schedule, seed)
    for order, late in ((None, False), (random.Random(seed), False), (random.Random(seed), True)):
        result = interpret(schedule, data, order, late)
        assert (result == data.sum(axis=0, dtype=numpy.uint8)).all()
    assert all(op.size_bytes for ops in schedule.ranks for op in ops)  # no message of zero bytes


@given(ranks=st.integers(1, 20), chunk_bytes=st.integers(1, 50), slices=st.integers(1, 4),
       channels=st.integers(1, 3))
@settings(max_examples=40, deadline=None)
def test_ring_sends_exactly_the_bound(ranks, chunk_bytes, slices, channels):
    size_bytes = ranks * chunk_bytes
    schedule = ring.all_reduce(ranks, size_bytes, slices, channels)
    assert sent_by(schedule) == [2 * (ranks - 1) * chunk_bytes] * ranks
    assert ring.all_reduce(ranks, size_bytes + 1).bytes_sent == 2 * (ranks - 1) * (size_bytes + 1)


@pytest.mark.parametrize("ranks", [2, 4, 8, 16, 32])
def test_halving_doubling_of_a_power_of_two_sends_the_bound_in_2_log_n_steps(ranks):
    schedule = halving_doubling.all_reduce(ranks, 64 * ranks)
    assert sent_by(schedule) == [2 * (ranks - 1) * 64] * ranks
    steps = {op.step for ops in schedule.ranks for op in ops}
    assert len(steps) == 2 * (ranks.bit_length() - 1)


def test_a_slice_is_passed_on_before_its_chunk_has_arrived():
    schedule = ring.all_reduce(4, 4000, slices=5)
    for ops in schedule.ranks:
        for op in ops:
            if op.kind is Kind.SEND and op.step > 0:
                assert len(op.deps) == 1 and ops[op.deps[0]].size_bytes == op.size_bytes == 200


def test_one_rank_is_an_empty_schedule():
    for all_reduce in ALL_REDUCES:
        schedule = all_reduce(1, 10)
        assert schedule.ranks == ((),)
        check_schedule(schedule, 1)


@pytest.mark.parametrize("arguments", [(0, 10), (4, 0), (4, -5), (4, 10, 0), (4, 10, 1, 0)])
@pytest.mark.parametrize("all_reduce", ALL_REDUCES)
def test_counts_below_one_are_refused(all_reduce, arguments):
    with pytest.raises(BadInput, match="must be at least 1"):
        all_reduce(*arguments)


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("which", [halving_doubling.reduce_scatter, halving_doubling.all_gather])
def test_halving_doubling_halves(which, ranks):
    schedule = which(ranks, 331)
    data = random_bytes(schedule)
    result, chunks = execute(schedule, data), split(0, 331, ranks)
    if which is halving_doubling.reduce_scatter:
        for rank, (low, high) in enumerate(chunks):
            assert (result[rank, low:high] == data[:, low:high].sum(axis=0, dtype=numpy.uint8)).all()
    else:
        want = numpy.concatenate([data[r, low:high] for r, (low, high) in enumerate(chunks)])
        assert (result == want).all()


@pytest.mark.parametrize("ranks", RANKS)
def test_broadcast_and_reduce(ranks):
    schedule = chain.broadcast(ranks, 331, slices=3, channels=2)
    data = random_bytes(schedule)
    assert (execute(schedule, data) == data[0]).all()
    schedule = chain.reduce(ranks, 331, slices=3, channels=2)
    assert (execute(schedule, data)[0] == data.sum(axis=0, dtype=numpy.uint8)).all()


@pytest.mark.parametrize("ranks", RANKS)
def test_all_to_all_transposes_the_blocks(ranks):
    schedule = pairwise.all_to_all(ranks, 331, slices=2)
    data, blocks = random_bytes(schedule), split(0, 331, ranks)
    result = execute(schedule, data)
    for rank, (low, high) in enumerate(blocks):
        for source in range(ranks):
            if source != rank:
                place = pairwise.received_at(ranks, 331, source)
                assert (result[rank, place:place + high - low] == data[source, low:high]).all()
    assert schedule.bytes_sent == (ranks - 1) * 331


@pytest.mark.parametrize("ranks", RANKS)
def test_send_recv(ranks):
    schedule = pairwise.send_recv(ranks, 40, slices=3)
    data = random_bytes(schedule)
    result = execute(schedule, data)
    if ranks > 1:
        assert all((result[(r + 1) % ranks, 40:] == data[r, :40]).all() for r in range(ranks))
    assert (result[:, :40] == data[:, :40]).all()


@pytest.mark.parametrize("ranks", RANKS)
def test_no_rank_leaves_a_barrier_before_all_have_entered(ranks):
    schedule = pairwise.barrier(ranks)
    check_schedule(schedule, ranks)
    graph = dag(schedule)
    heard: list[set[int]] = [set() for _ in graph.ops]  # by node: the ranks whose start it comes after
    for node in graph.order():
        heard[node].add(graph.rank[node])
        for follower in graph.followers[node]:
            heard[follower] |= heard[node]
    for rank, ops in enumerate(schedule.ranks):
        nodes = range(graph.first[rank], graph.first[rank] + len(ops))
        assert set().union({rank}, *(heard[node] for node in nodes)) == set(range(ranks))


@pytest.mark.parametrize("colocated", [False, True])
@pytest.mark.parametrize("ranks", RANKS[1:])
def test_parameter_server(ranks, colocated):
    for servers in {1, max(1, ranks // 9), max(1, ranks // 2)}:
        schedule = parameter_server(ranks, servers, 61, colocated=colocated)
        data = random_bytes(schedule)
        result = execute(schedule, data)
        workers = range(ranks) if colocated else range(servers, ranks)
        for server, (low, high) in enumerate(split(0, 61, servers)):
            involved = sorted({server, *workers})
            total = data[involved, low:high].sum(axis=0, dtype=numpy.uint8)
            assert (result[involved, low:high] == total).all()


def test_parameter_server_needs_a_worker():
    for servers in (0, 4):
        with pytest.raises(BadInput, match="leave no worker; use 1 to 3"):
            parameter_server(4, servers, 10)
    assert parameter_server(1, 1, 10, colocated=True).ranks == ((),)


def groups_of(ranks: int, size: int) -> list[list[int]]:
    return [list(range(low, min(low + size, ranks))) for low in range(0, ranks, size)]


@pytest.mark.parametrize("ranks", RANKS)
def test_hierarchical_all_reduce_whatever_the_groups(ranks):
    racks = groups_of(ranks, 3)  # the last one may be smaller
    pods = [racks[low:low + 2] for low in range(0, len(racks), 2)]
    mixed = groups_of(ranks, 4)
    random.Random(ranks).shuffle(mixed)
    one, alone = [list(range(ranks))], [[rank] for rank in range(ranks)]
    for tree in (pods, mixed) if ranks % 8 else (racks, pods, mixed, one, alone):
        schedule = hierarchical.all_reduce(tree, 331, slices=2)
        data = random_bytes(schedule)
        assert (execute(schedule, data) == data.sum(axis=0, dtype=numpy.uint8)).all()


def test_hierarchical_sends_one_share_of_a_rack_over_its_border():
    """4 racks of 4: each rack's border carries what 1 of 4 blind rings of the racks would: M each way."""
    schedule = hierarchical.all_reduce(groups_of(16, 4), 1600)
    across = [op.size_bytes for r, ops in enumerate(schedule.ranks) for op in ops
              if op.kind is Kind.SEND and r // 4 != op.peer // 4]
    assert sum(across) == 4 * 2 * 3 * 1600 // 4  # per rack 2(R-1)/R * M, over R racks
    assert sent_by(schedule) == [2 * 3 * 400 + 2 * 3 * 100] * 16


@pytest.mark.parametrize("tree, says", [([[0, 1], 2], "equally deep"), ([[0, 1], []], "equally deep"),
                                        ([[0, 1], [1, 2]], "each of 0 to 3 once"),
                                        ([[0], [2]], "0 to 1 once")])
def test_hierarchical_refusals(tree, says):
    with pytest.raises(BadInput, match=says):
        hierarchical.all_reduce(tree, 100)


def test_inner_ranks_of_one_tree_are_leaves_of_the_other():
    for ranks in range(2, 130):
        inner = []
        for parents in tree.double_tree(ranks):
            assert parents.count(None) == 1
            children = [parents.count(rank) for rank in range(ranks)]
            assert max(children) <= 2
            for rank in range(ranks):  # every way up ends, and soon
                steps = 0
                while parents[rank] is not None:
                    rank, steps = parents[rank], steps + 1
                assert steps <= math.ceil(math.log2(ranks))
            inner.append({rank for rank in range(ranks) if children[rank]})
        assert len(inner[0] & inner[1]) == ranks % 2


@pytest.mark.parametrize("ranks", [2, 3, 6, 16])
def test_an_all_to_all_rank_never_has_more_than_one_block_under_way(ranks):
    """Slice i waits for slice i of the step before: for the one received and for the own one's acknowledgement."""
    schedule = pairwise.all_to_all(ranks, ranks * 40, slices=4)
    for ops in schedule.ranks:
        sends = [index for index, op in enumerate(ops) if op.kind is Kind.SEND]
        for place, index in enumerate(sends):
            waits = [ops[dep] for dep in ops[index].deps]
            assert sends[place - 4] in ops[index].deps if place >= 4 else not waits
            assert sorted((op.kind.value, op.step) for op in waits) == [
                (kind, ops[index].step - 1) for kind in ("recv", "send") if place >= 4]


def test_a_tree_edge_has_at_most_so_many_slices_under_way():
    for ops in tree.all_reduce(16, 16_000, slices=20).ranks:
        edges: dict[tuple[int, int], list[int]] = {}
        for index, op in enumerate(ops):
            if op.kind is Kind.SEND:
                edge = edges.setdefault((op.peer, op.step), [])
                assert len(edge) < tree.AHEAD or edge[-tree.AHEAD] in op.deps
                edge.append(index)
