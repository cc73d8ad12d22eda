"""How many acknowledgements a connection is expected to see, against what captures of real runs showed."""
from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traffic.acks import Acks, growing_bytes, kernel_version

GROWING = growing_bytes(1448, (6, 18)) / 1448


def test_a_short_connection_is_acknowledged_segment_by_segment():
    """All-to-all of 1 MB over 16 ranks: a capture on 6.18 had 88 acknowledgements for 88 segments of each."""
    acks = Acks(GROWING)
    acks.add(44, 2)
    assert acks.count == 88


def test_a_tree_edge_and_a_ring_edge_as_counted():
    """Two edges of 696 segments: 1089 acknowledgements. 2640 segments: 1249 and 1325, some of them for
    more than two, which makes 0.5 % of the link's bytes.
    """
    edge, ring = Acks(GROWING), Acks(GROWING)
    edge.add(4, 174)
    ring.add(11, 240)
    assert 2 * edge.count == pytest.approx(1089, rel=0.02)
    assert 3.75e6 + 66 * (2640 + ring.count) == pytest.approx(3.75e6 + 66 * (2640 + 1325), rel=0.006)


def test_the_window_of_older_kernels_does_not_grow():
    assert growing_bytes(1448, kernel_version("6.1.0-18-amd64")) == 0.0
    assert growing_bytes(1448, kernel_version("6.18.5")) == pytest.approx(557_000, rel=0.005)
    assert kernel_version("6.8.0-31-generic") == (6, 8)


@given(st.lists(st.tuples(st.integers(1, 60), st.integers(1, 5)), min_size=1, max_size=20), st.floats(0, 500))
def test_between_one_and_two_segments_an_acknowledgement(messages, growing):
    acks, frames = Acks(growing), 0
    for size, times in messages:
        acks.add(size, times)
        frames += size * times
    assert frames / 2 <= acks.count * (1 + 1e-9) and acks.count <= frames * (1 + 1e-9)
    assert acks.growing >= 0
