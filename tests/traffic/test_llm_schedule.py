"""The schedule of a training iteration: it runs, sends what the formulas say, sums what it should."""
from __future__ import annotations

import random
from collections import Counter

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.traffic.test_llm_model import job
from traffic.check import check_schedule
from traffic.compression import parse_scheme
from traffic.interpret import interpret
from traffic.llm import volumes
from traffic.llm.cut import Cut, messages
from traffic.llm.gradients import lay_out
from traffic.llm.layout import ORDERS, Layout
from traffic.llm.model import Model
from traffic.llm.order import passes, source
from traffic.llm.scale import Scale
from traffic.llm.write import write_iteration
from traffic.paths import Paths
from traffic.pipeline import BACKWARD, FORWARD
from traffic.schedule import Kind, Schedule
from traffic.simulate import simulate
from traffic.wire import Wire

TINY = Model(4 * 12 * 16**2 + 2 * 64 * 16, 4, 16, 4, 4, 8, 64)
EXPERTS = Model(4 * (4 + 4 * 8) * 16**2 + 2 * 64 * 16, 4, 16, 4, 4, 8, 64, experts=4, topk=2)
EXACT = Scale(1.0, 1.0)


def sent(schedule: Schedule) -> Counter[str]:
    bytes_of: Counter[str] = Counter()
    for ops in schedule.ranks:
        for op in ops:
            if op.kind is Kind.SEND:
                bytes_of[op.traffic_class] += op.size_bytes
    return bytes_of


def written(order: str = ORDERS[0], blocks: int = 1, buckets: int = 1, scale: Scale = EXACT, racks=(),
            **changed):
    made = job(**{"model": TINY, "tp": 1, "dp": 1, "pp": 1, "microbatches": 4, "accumulation": 4, **changed})
    layout = Layout(1 if made.nvlink else made.tp, made.dp, made.pp, made.ep, order)
    return made, layout, write_iteration(made, layout, Cut(blocks, buckets), scale, racks)


shapes = st.fixed_dictionaries({
    "tp": st.sampled_from((1, 2, 4)), "dp": st.sampled_from((1, 2, 4)), "pp": st.sampled_from((1, 2, 4)),
    "zero": st.integers(0, 3), "overlap": st.booleans(), "accumulation": st.sampled_from((1, 2, 4)),
    "recompute": st.booleans(), "nvlink": st.booleans(), "order": st.sampled_from(ORDERS)})


@settings(max_examples=60, deadline=None)
@given(shape=shapes, experts=st.booleans(), interleave=st.sampled_from((1, 2)), data=st.data())
def test_every_shape_runs_and_sends_what_the_formulas_say(shape, experts, interleave, data):
    if shape["pp"] == 1 or shape["pp"] * interleave > 4:
        interleave = 1
    if experts:
        shape = {**shape, "model": EXPERTS,
                 "ep": data.draw(st.sampled_from([e for e in (1, 2, 4) if e <= shape["dp"]]))}
    blocks = data.draw(st.sampled_from([b for b in (1, 2, 4) if b <= 4 // (shape["pp"] * interleave)]))
    buckets = data.draw(st.integers(1, blocks))
    it, layout, schedule = written(blocks=blocks, buckets=buckets, interleave=interleave, **shape)
    check_schedule(schedule, layout.ranks)
    by_class, n, passes_ = sent(schedule), layout.ranks, it.microbatches
    layers = 4 // it.pp
    tensor = 0 if it.nvlink else passes_ * layers * 2 * (it.tp - 1) / it.tp * sum(
        volumes.tensor_bytes(it, way) for way in (False, True))
    assert by_class["tensor"] == pytest.approx(n * tensor, rel=0.01)
    boundaries = 2 * (it.pp * interleave - 1) * passes_ * volumes.pipeline_bytes(it)
    assert by_class["pipeline"] == boundaries * n // it.pp
    tokens = passes_ * layers * 2 * (it.ep - 1) / it.ep * sum(
        volumes.expert_bytes(it, way) for way in (False, True))
    assert by_class["expert"] == pytest.approx(n * tokens, rel=0.01)
    assert by_class["gradients"] == pytest.approx(n * volumes.gradient_bytes_sent(it), rel=0.02)
    held = ((it.dense_params, it.dp), (it.expert_params, it.dp // it.ep))
    shards = sum(2 * params * (copies - 1) / copies for params, copies in held)
    gathers = {0: 0, 1: 1, 2: 1, 3: 2 * passes_}[it.zero]  # after the update; or before every pass
    assert by_class["parameters"] == pytest.approx(n * shards * gathers, rel=0.02)
    if not experts:
        sends = sum(op.kind is Kind.SEND for ops in schedule.ranks for op in ops)
        assert sends <= messages(it, Cut(blocks, buckets))


@pytest.mark.parametrize("changed",
                         [{"dp": 4, "tp": 2, "overlap": True}, {"dp": 2, "pp": 2, "tp": 2, "overlap": False},
                          {"dp": 4, "accumulation": 1, "overlap": True}, {"dp": 3, "pp": 2, "interleave": 2},
                          {"dp": 4, "racks": "aabb"}, {"dp": 5, "racks": "aaabb"}, {"dp": 3, "racks": "abc"}])
def test_replicas_end_with_the_sum_of_their_gradients(changed):
    it, layout, schedule = written(blocks=1, **changed)
    data = numpy.random.default_rng(0).integers(0, 256, (layout.ranks, schedule.buffer_bytes),
                                                dtype=numpy.uint8)
    result = interpret(schedule, data)
    buckets, end = lay_out(it, Cut(1, 1), EXACT)
    assert end == sum(b.high - b.low for b in buckets) > 0
    right = {}
    for stage in range(it.pp):
        for group in layout.data_groups(stage):
            times = it.microbatches // it.accumulation  # each reduction adds up what the last one left
            total = data[group, :end].sum(axis=0, dtype=numpy.uint8)
            right.update(dict.fromkeys(group, total * numpy.uint8(len(group) ** (times - 1) % 256)))
    for rank, sums in right.items():
        assert (result[rank, :end] == sums).all()


@pytest.mark.parametrize("changed", [
    {"dp": 4, "zero": 3, "blocks": 4},
    {"dp": 4, "zero": 2, "accumulation": 2, "pp": 2, "blocks": 2, "buckets": 2},
    {"dp": 4, "compression": parse_scheme("1bit")},
    {"dp": 4, "compression": parse_scheme("topk:0.1"), "accumulation": 1},
    {"dp": 4, "ep": 2, "model": EXPERTS, "tp": 2},
    {"dp": 2, "tp": 2, "pp": 2, "recompute": True, "blocks": 2}])
def test_data_do_not_depend_on_the_order_of_events(changed):
    _, layout, schedule = written(**changed)
    data = numpy.random.default_rng(1).integers(0, 256, (layout.ranks, schedule.buffer_bytes),
                                                dtype=numpy.uint8)
    first = interpret(schedule, data)
    for seed in range(4):
        assert (interpret(schedule, data, random.Random(seed)) == first).all()


@settings(max_examples=40, deadline=None)
@given(stages=st.integers(2, 6), groups=st.integers(1, 3), interleave=st.integers(1, 3))
def test_interleaved_order_has_every_pass_once_and_never_waits_for_itself(stages, groups, interleave):
    m = stages * groups
    orders = [passes(stage, stages, m, interleave) for stage in range(stages)]
    for order in orders:
        assert sorted(order) == sorted((kind, i, c) for kind in (FORWARD, BACKWARD) for i in range(m)
                                       for c in range(interleave))
        for microbatch in range(m):
            for chunk in range(interleave):
                assert order.index((FORWARD, microbatch, chunk)) < order.index((BACKWARD, microbatch, chunk))
    assert source(0, stages, interleave, FORWARD, 0) is None
    assert source(stages - 1, stages, interleave, BACKWARD, interleave - 1) is None


@pytest.mark.parametrize("pp, m, v", [(2, 8, 1), (4, 8, 1), (4, 8, 2), (4, 16, 1), (2, 4, 2)])
def test_bubble_is_that_of_the_formula_when_transfers_are_small(pp, m, v, star16):
    _, _, schedule = written(model=Model(8 * 12 * 16**2 + 2048, 8, 16, 4, 4, 8, 64), pp=pp, microbatches=m,
                             accumulation=m, interleave=v, forward_s=0.1, backward_s=0.2, optimizer_s=0.0)
    took_s = simulate(schedule, tuple(range(pp)), Paths(star16), Wire.shaped(1e8, 1500)).completion_s
    assert took_s == pytest.approx(m * 0.3 * (1 + (pp - 1) / (v * m)), rel=0.01)


def test_overlap_hides_gradients_behind_the_backward_pass(star16):
    def time_s(**changed: object) -> float:
        *_, schedule = written(dp=4, forward_s=0.1, backward_s=0.2, optimizer_s=0.0, microbatches=1,
                               accumulation=1, blocks=4, **changed)
        return simulate(schedule, tuple(range(4)), Paths(star16), Wire.shaped(2e6, 1500)).completion_s

    plain, overlapped = time_s(buckets=4, overlap=False), time_s(buckets=4, overlap=True)
    one_bucket = time_s(buckets=1, overlap=True)
    assert 0.3 < overlapped < one_bucket <= plain * 1.001
    gradients_s = plain - 0.3
    assert overlapped == pytest.approx(0.3 + max(gradients_s / 4, gradients_s - 0.15), rel=0.1)


@settings(max_examples=40, deadline=None)
@given(tp=st.integers(1, 4), dp=st.integers(1, 6), pp=st.integers(1, 4), order=st.sampled_from(ORDERS),
       data=st.data())
def test_groups_cover_all_ranks_once(tp, dp, pp, order, data):
    ep = data.draw(st.sampled_from([e for e in range(1, dp + 1) if dp % e == 0]))
    layout = Layout(tp, dp, pp, ep, order)
    for groups, size in ((layout.tensor_groups, tp), (layout.data_groups, dp), (layout.expert_groups, ep),
                         (layout.expert_data_groups, dp // ep)):
        listed = [group for stage in range(pp) for group in groups(stage)]
        assert sorted(rank for group in listed for rank in group) == list(range(layout.ranks))
        assert {len(group) for group in listed} == {size}


def test_megatrons_order_puts_tensor_parallel_ranks_side_by_side():
    layout = Layout(2, 4, 2)
    assert layout.tensor_groups(0) == [[0, 1], [2, 3], [4, 5], [6, 7]] and layout.stage(1)[0] == 8
    assert Layout(2, 4, 2, order="tp-pp-dp").rank(0, 1, 0) == 4
