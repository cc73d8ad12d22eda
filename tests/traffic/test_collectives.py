"""Each collective, executed on real bytes, leaves on every rank what its name promises."""
from __future__ import annotations

import random

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.errors import BadInput
from traffic.check import check_schedule
from traffic.collectives import halving_doubling, ring
from traffic.interpret import interpret
from traffic.program import split
from traffic.schedule import Kind, Schedule

RANKS = range(1, 34)
ALL_REDUCES = [ring.all_reduce, halving_doubling.all_reduce]


def random_bytes(schedule: Schedule, seed: int = 0) -> numpy.ndarray:
    shape = (len(schedule.ranks), schedule.buffer_bytes)
    return numpy.random.default_rng(seed).integers(0, 256, shape, dtype=numpy.uint8)


def sent_by(schedule: Schedule) -> list[int]:
    return [sum(op.size_bytes for op in ops if op.kind is Kind.SEND) for ops in schedule.ranks]


def same_in_any_order(schedule: Schedule, data: numpy.ndarray) -> numpy.ndarray:
    """The result, once it is shown not to hang on the order of execution or on when a send is read."""
    result = interpret(schedule, data)
    assert (interpret(schedule, data, random.Random(1), late=True) == result).all()
    return result


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("all_reduce", ALL_REDUCES)
def test_all_reduce_gives_the_sum_to_every_rank(all_reduce, ranks):
    schedule = all_reduce(ranks, 331, slices=2)
    data = random_bytes(schedule)
    assert (same_in_any_order(schedule, data) == data.sum(axis=0, dtype=numpy.uint8)).all()


@pytest.mark.parametrize("ranks", RANKS)
def test_ring_reduce_scatter_gives_chunk_i_to_rank_i(ranks):
    schedule = ring.reduce_scatter(ranks, 331)
    data = random_bytes(schedule)
    result, total = same_in_any_order(schedule, data), data.sum(axis=0, dtype=numpy.uint8)
    for rank, (low, high) in enumerate(split(0, 331, ranks)):
        assert (result[rank, low:high] == total[low:high]).all()


@pytest.mark.parametrize("ranks", RANKS)
def test_ring_all_gather_gives_every_chunk_to_every_rank(ranks):
    schedule = ring.all_gather(ranks, 331)
    data = random_bytes(schedule)
    want = numpy.concatenate([data[r, low:high] for r, (low, high) in enumerate(split(0, 331, ranks))])
    assert (same_in_any_order(schedule, data) == want).all()


@given(ranks=st.integers(1, 12), size_bytes=st.integers(1, 200), slices=st.integers(1, 4),
       channels=st.integers(1, 3), which=st.sampled_from(ALL_REDUCES), seed=st.integers(0, 99))
@settings(max_examples=60, deadline=None)
def test_slices_channels_and_odd_sizes_change_nothing(ranks, size_bytes, slices, channels, which, seed):
    schedule = which(ranks, size_bytes, slices, channels)
    data = random_bytes(schedule, seed)
    result = interpret(schedule, data, random.Random(seed))
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
