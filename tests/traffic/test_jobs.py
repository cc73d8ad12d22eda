"""Patterns, pipelines and training iterations."""
from __future__ import annotations

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.errors import BadInput
from traffic import patterns
from traffic.check import check_schedule
from traffic.interpret import interpret
from traffic.pipeline import BACKWARD, FORWARD, order_1f1b, pipeline
from traffic.schedule import Kind
from traffic.training import rank_of, training


@given(hosts=st.integers(2, 40), distance=st.integers(1, 100))
def test_stride_is_a_permutation_without_fixed_points(hosts, distance):
    if distance % hosts:
        pairs = patterns.stride(hosts, distance)
        assert sorted(b for _, b in pairs) == list(range(hosts))
        assert all((b - a) % hosts == distance % hosts != 0 for a, b in pairs)
    else:
        with pytest.raises(BadInput, match="send to itself"):
            patterns.stride(hosts, distance)


@given(hosts=st.integers(2, 40), seed=st.integers(0, 1000))
def test_random_bijection(hosts, seed):
    pairs = patterns.random_bijection(hosts, seed)
    assert [a for a, _ in pairs] == list(range(hosts)) == sorted(b for _, b in pairs)
    assert all(a != b for a, b in pairs)
    assert pairs == patterns.random_bijection(hosts, seed)


def test_random_bijections_differ_between_seeds():
    assert len({tuple(patterns.random_bijection(16, seed)) for seed in range(50)}) == 50


@given(racks=st.lists(st.integers(0, 4), min_size=2, max_size=30), edge_p=st.floats(0, 0.6),
       pod_p=st.floats(0, 0.4), seed=st.integers(0, 1000))
def test_staggered_is_a_permutation_whatever_the_racks(racks, edge_p, pod_p, seed):
    pairs = patterns.staggered(racks, [rack // 2 for rack in racks], edge_p, pod_p, seed)
    assert [a for a, _ in pairs] == list(range(len(racks))) == sorted(b for _, b in pairs)
    assert all(a != b for a, b in pairs)
    assert pairs == patterns.staggered(racks, [rack // 2 for rack in racks], edge_p, pod_p, seed)


def test_staggered_keeps_its_probabilities():
    """Of 16 hosts, two a rack and four a pod: .2 to the same rack; of the .3 to the pod few find nobody left."""
    racks, pods = [x // 2 for x in range(16)], [x // 4 for x in range(16)]
    drawn = [pair for seed in range(300) for pair in patterns.staggered(racks, pods, 0.2, 0.3, seed)]
    rack = sum(racks[a] == racks[b] for a, b in drawn) / len(drawn)
    pod = sum(pods[a] == pods[b] for a, b in drawn) / len(drawn) - rack
    assert rack == pytest.approx(0.2, abs=0.02) and pod == pytest.approx(0.3, abs=0.04)
    for wrong in ((0.8, 0.3), (-0.1, 0.3)):
        with pytest.raises(BadInput):
            patterns.staggered(racks, pods, *wrong, 0)


def test_incast_and_pair():
    assert patterns.incast(16, 3) == [(0, 15), (1, 15), (2, 15)]
    assert patterns.pair(16, 0, 2) == [(0, 2)]
    for wrong in (lambda: patterns.incast(16, 16), lambda: patterns.incast(16, 0),
                  lambda: patterns.pair(4, 0, 4), lambda: patterns.pair(4, 2, 2),
                  lambda: patterns.random_bijection(1, 0)):
        with pytest.raises(BadInput):
            wrong()


def test_flows_carry_their_bytes_over_their_connections_from_their_start():
    schedule, placement = patterns.flows("pattern", [(2, 9), (2, 9), (9, 2)], [100, 7, 50], 3,
                                         [0.0, 1.5, 0.0])
    assert placement == (2, 9)
    check_schedule(schedule, 2)
    sends = [op for op in schedule.ranks[0] if op.kind is Kind.SEND]
    assert [op.size_bytes for op in sends] == [33, 33, 34, 2, 2, 3]
    assert [op.channel for op in sends] == [0, 1, 2, 3, 4, 5]  # no two flows share a connection
    wait = schedule.ranks[0][sends[3].deps[0]]
    assert wait.kind is Kind.COMPUTE and wait.duration_s == 1.5 and not sends[0].deps
    assert schedule.bytes_sent == 157


@given(stages=st.integers(1, 8), microbatches=st.integers(1, 12))
def test_1f1b_order(stages, microbatches):
    for stage in range(stages):
        order = order_1f1b(stage, stages, microbatches)
        for kind in (FORWARD, BACKWARD):
            assert [m for k, m in order if k == kind] == list(range(microbatches))
        in_flight = 0  # activations held: the point of 1F1B is that they stay below the depth left
        for kind, _ in order:
            in_flight += 1 if kind == FORWARD else -1
            assert 0 <= in_flight <= stages - stage


@given(stages=st.integers(1, 6), microbatches=st.integers(1, 8))
def test_pipeline_runs_and_sends_each_boundary_twice(stages, microbatches):
    schedule = pipeline(stages, microbatches, 100, 0.1, 0.2)
    check_schedule(schedule, stages)
    assert schedule.bytes_sent == 2 * (stages - 1) * microbatches * 100
    for ops in schedule.ranks:
        assert sum(op.duration_s for op in ops) == pytest.approx(microbatches * 0.3)


@pytest.mark.parametrize("stages, replicas", [(1, 1), (4, 4), (3, 5), (1, 4), (4, 1)])
def test_training_sums_gradients_over_the_replicas_of_each_stage(stages, replicas):
    schedule = training(stages, replicas, 4, 50, 200, 0.1, 0.2, slices=2)
    check_schedule(schedule, stages * replicas)
    data = numpy.random.default_rng(0).integers(0, 256, (stages * replicas, 200), dtype=numpy.uint8)
    result = interpret(schedule, data)
    for stage in range(stages):
        group = [rank_of(stage, replica, replicas) for replica in range(replicas)]
        assert (result[group] == data[group].sum(axis=0, dtype=numpy.uint8)).all()
    assert schedule.bytes_sent == replicas * 2 * (stages - 1) * 4 * 50 + stages * 2 * (replicas - 1) * 200


def test_gradients_wait_for_the_last_backward_pass():
    for ops in training(2, 2, 3, 50, 200, 0.1, 0.2).ranks:
        last = max(i for i, op in enumerate(ops) if op.kind is Kind.COMPUTE)
        first_gradients = [op for op in ops if op.phase == "all-reduce" and op.step == 0]
        assert all(last in op.deps for op in first_gradients if op.kind in (Kind.SEND, Kind.REDUCE))


@pytest.mark.parametrize("arguments", [(0, 1, 1, 0, 0), (1, 0, 1, 0, 0), (1, 1, 0, 0, 0), (1, 1, 1, -1, 0)])
def test_pipeline_arguments(arguments):
    with pytest.raises(BadInput):
        pipeline(*arguments)


def test_training_arguments():
    with pytest.raises(BadInput, match="replicas=0"):
        training(2, 0, 1, 1, 1, 0.1, 0.1)
