"""Encoders: sizes, round trips, and error feedback that does what its papers say."""
from __future__ import annotations

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from emulator.errors import BadInput
from traffic.compression import Feedback, Scheme, parse_scheme
from traffic.convergence import excess_loss, problem

FLOATS = arrays.arrays(float, st.integers(1, 2000), elements=st.floats(-1e6, 1e6, width=32))
LOSSY = st.sampled_from([Scheme("topk", 0.01), Scheme("topk", 0.5), Scheme("topk", 1.0), Scheme("int8"),
                         Scheme("1bit")])


@settings(max_examples=40, deadline=None)
@given(values=FLOATS, scheme=LOSSY)
def test_bytes_are_as_many_as_planned_and_decode_to_as_many_values(values, scheme):
    data = scheme.encode(values)
    assert len(data) == scheme.encoded_bytes(len(values))
    assert scheme.decode(data, len(values)).shape == values.shape
    with pytest.raises(BadInput, match="are not the encoding"):
        scheme.decode(data + b"x", len(values))


@settings(max_examples=40, deadline=None)
@given(values=FLOATS)
def test_int8_is_within_half_a_step_of_its_blocks_largest(values):
    back = Scheme("int8").decode(Scheme("int8").encode(values), len(values))
    for low in range(0, len(values), 256):
        block = slice(low, low + 256)
        largest = abs(values[block]).max()
        assert abs(back[block] - values[block]).max() <= largest / 254 * 1.001 + 1e-30


@settings(max_examples=40, deadline=None)
@given(values=FLOATS)
def test_topk_keeps_the_largest_and_one_bit_the_signs_and_the_mean(values):
    scheme = Scheme("topk", 0.1)
    back = scheme.decode(scheme.encode(values), len(values))
    largest = numpy.sort(abs(values))[::-1]
    lost = abs(values - back)  # nothing larger than the largest value left out, and rounding
    assert lost.max() <= max([*largest[scheme.kept(len(values)):][:1], 0]) + 1e-3 * largest[0] + 1e-30
    assert numpy.count_nonzero(back) <= scheme.kept(len(values))
    signs = Scheme("1bit").decode(Scheme("1bit").encode(values), len(values))
    assert abs(signs) == pytest.approx(abs(values).mean(), rel=1e-5, abs=1e-30)
    if signs.any():  # else the mean is too small for a float of 4 bytes
        assert ((signs > 0) == (values >= 0)).all()


@settings(max_examples=40, deadline=None)
@given(values=FLOATS, scheme=LOSSY)
def test_feedback_loses_nothing(values, scheme):
    """What was decoded so far and what is still owed add up to all that was put in."""
    memory, decoded = Feedback(scheme, len(values)), numpy.zeros(len(values))
    for _ in range(3):
        decoded += scheme.decode(memory.encode(values), len(values))
    assert decoded + memory.owed == pytest.approx(3 * values, rel=1e-6, abs=1e-6 * (1 + abs(values).max()))


def test_real_ratios_of_a_million_values():
    for text, of_bf16 in (("topk:0.01", 0.03), ("int8", 0.508), ("1bit", 0.0625)):
        assert parse_scheme(text).encoded_bytes(10**6) / 2e6 == pytest.approx(of_bf16, rel=1e-3)
    assert parse_scheme("none") is None and str(parse_scheme("topk:0.01")) == "topk:0.01"


@pytest.mark.parametrize("text", ["topk:0.01", "1bit"])
def test_with_feedback_it_converges_without_it_stalls(text):
    task, scheme = problem(), parse_scheme(text)
    half, whole = (excess_loss(task, scheme, True, steps) for steps in (300, 1000))
    assert whole < half / 3 and whole < 0.02
    stalled, later = (excess_loss(task, scheme, False, steps) for steps in (300, 1000))
    assert later > 0.1 and later > stalled / 2 and later > 20 * whole


def test_int8_and_no_compression_converge_without_feedback():
    for scheme in (None, Scheme("int8")):
        assert excess_loss(problem(), scheme, False, 500) < 1e-3
