"""The hash spreads evenly, by weight, and independently from switch to switch."""
import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.asic.grouprecord import EQUAL, record, unit_s_per_bit
from emulator.asic.hashing import Flow, flow_hash, group_seed, hashed_member, weighted_slots
from emulator.asic.pipeline import PipelineBucket, PipelineGroup


def flows(count: int) -> list[Flow]:
    """Connections of 16 hosts with ephemeral ports, as a fabric sees them: far from random bits."""
    draw = random.Random(1)
    return [Flow(0x0A000001 + draw.randrange(16), 0x0A000001 + draw.randrange(16), 6,
                 32768 + draw.randrange(28232), 5001) for _ in range(count)]


def chi_square(counts, expected) -> float:
    return sum((counts.get(key, 0) - share) ** 2 / share for key, share in expected.items())


def test_equal_members_get_equal_shares():
    shares = Counter(hashed_member(flow, group_seed(7, 0), (1,) * 4) for flow in flows(8000))
    assert chi_square(shares, {i: 2000 for i in range(4)}) < 16.3  # 0.1 % point at 3 degrees of freedom


def test_seeds_that_differ_in_one_bit_choose_independently():
    for second in (2, 3, 0x80000001):
        pairs = Counter((hashed_member(flow, group_seed(1, 0), (1, 1, 1, 1)),
                         hashed_member(flow, group_seed(second, 0), (1, 1, 1, 1))) for flow in flows(8000))
        expected = {(i, j): 500 for i in range(4) for j in range(4)}
        assert chi_square(pairs, expected) < 37.7  # 0.1 % point at 15 degrees of freedom


def test_a_group_without_a_seed_takes_its_switchs():
    assert group_seed(0, 5) == group_seed(5, 9) != group_seed(0, 6)


def test_consecutive_source_ports_spread():
    chosen = Counter(hashed_member(Flow(1, 2, 6, port, 80), group_seed(3, 0), (1, 1)) for port in range(2000))
    assert 900 < chosen[0] < 1100


@given(st.lists(st.integers(0, 100), min_size=1, max_size=64))
def test_slots_follow_weights(weights):
    slots = weighted_slots(tuple(weights))
    if not any(weights):
        assert slots == ()
        return
    assert 0 < len(slots) <= 256
    shares = Counter(slots)
    for i, weight in enumerate(weights):
        ideal = weight / sum(weights) * len(slots)
        assert (shares[i] > 0) == (weight > 0)
        # a member with less than one slot gets one, which the richest pay for
        slack = 1 + sum(1 for other in weights if 0 < other / sum(weights) * len(slots) < 1)
        assert abs(shares[i] - ideal) <= slack


@given(st.lists(st.integers(1, 8), min_size=1, max_size=8))
def test_round_robin_is_even_in_every_window(weights):
    slots = weighted_slots(tuple(weights)) * 2
    for member, weight in enumerate(weights):
        share = weight / sum(weights)
        for length in (len(weights), 3 * len(weights)):
            seen = slots[5:5 + length].count(member)
            assert abs(seen - share * length) < len(weights)


@given(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1), st.integers(0, 2**64 - 1))
def test_hash_is_64_bits_and_direction_matters(source, destination, seed):
    forth = flow_hash(Flow(source, destination, 6, 1, 2), seed)
    assert 0 <= forth < 2**64
    if source != destination:
        assert forth != flow_hash(Flow(destination, source, 6, 1, 2), seed)


@pytest.mark.parametrize("group, sentence", [
    (PipelineGroup(1, (), mode="sprey"), 'no mode "sprey" \\(did you mean "spray"'),
    (PipelineGroup(1, (), mode="flowlet"), "needs a gap above 0 s"),
    (PipelineGroup(1, (PipelineBucket(1),) * 65), "65 buckets"),
    (PipelineGroup(1, (PipelineBucket(3),)), "no port 3"),
    (PipelineGroup(1, (PipelineBucket(3),), mode="least-queue"), "no port 3"),
    (PipelineGroup(1, (PipelineBucket(1, weight=-1),)), "outside 0 to 65535"),
    (PipelineGroup(1, (PipelineBucket(1, queue=9),)), "no queue 9"),
])
def test_a_group_that_the_switch_cannot_do_is_refused(group, sentence):
    with pytest.raises(ValueError, match=sentence):
        record(group, 1, range(len(group.buckets)), {1: 10, 2: 11}, {1: 1e6, 2: 1e6})


@given(st.lists(st.tuples(st.sampled_from([1e6, 2.5e6, 1e7]), st.integers(1, 16)), min_size=1, max_size=8))
def test_paths_are_as_fast_as_weights_and_ports_allow(members):
    unit = unit_s_per_bit(members)
    paths_bps = [weight / unit for _, weight in members] if unit else [rate for rate, _ in members]
    assert all(path <= rate * (1 + EQUAL) for path, (rate, _) in zip(paths_bps, members, strict=True))
    assert any(path >= rate * (1 - EQUAL) for path, (rate, _) in zip(paths_bps, members, strict=True))
    for path, (_, weight) in zip(paths_bps, members, strict=True):
        assert path / paths_bps[0] == pytest.approx(weight / members[0][1], rel=2 * EQUAL)


def test_a_group_knows_the_pace_of_its_paths_where_ports_do_not_tell_it():
    rates, buckets = {1: 8e6, 2: 8e6}, (PipelineBucket(1, 1), PipelineBucket(2, 4))
    group = PipelineGroup(1, buckets, mode="least-queue")
    told = record(group, 1, range(2), {1: 10, 2: 11}, rates)
    assert int(told["unit_ns_per_byte_q16"]) == 4000 << 16, "8 Mb/s for a weight of 4 are 2 Mb/s for 1"
    assert record(group, 1, range(2), {1: 10, 2: 11}, {1: 2e6, 2: 8e6})["unit_ns_per_byte_q16"] == 0
    assert record(PipelineGroup(1, buckets), 1, range(2), {1: 10, 2: 11}, rates)["unit_ns_per_byte_q16"] == 0
