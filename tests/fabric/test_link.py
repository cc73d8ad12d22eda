"""Shapes of links: HTB's arithmetic, and what is refused."""
from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.errors import BadInput
from emulator.fabric import link
from emulator.fabric.spec import ETHERNET_BYTES

RATES = st.floats(link.MIN_RATE_BPS, link.MAX_RATE_BPS)
MTUS = st.integers(link.MIN_MTU, 9000)


@given(RATES, MTUS, st.integers(1, 1000))
def test_a_shape_keeps_rate_burst_and_queue(rate_bps, mtu, packets):
    frame = mtu + ETHERNET_BYTES
    made = link.shape(rate_bps, mtu, packets * frame)
    assert made.rate_bps == pytest.approx(rate_bps, rel=1e-3)
    assert made.limit_bytes == packets * frame
    assert made.quantum_bytes == frame
    tick_bytes = made.rate_bps / 8 * 64e-9
    lateness_bytes = rate_bps / 8 * link.LATENESS_S
    assert made.burst_bytes >= 2 * frame - 1, "HTB would not reach the rate"
    assert made.burst_bytes <= max(2 * frame, lateness_bytes) * 1.001 + tick_bytes + 1


@given(RATES, MTUS)
def test_what_the_kernel_is_told_reads_back(rate_bps, mtu):
    made = link.shape(rate_bps, mtu, 100_000)
    assert link.read_kind(link.htb_class(made), 0) == "htb"
    assert link.read_class(link.htb_class(made), 0, made.limit_bytes) == (made, made)
    assert link.read_limit(link.leaf(made), 0) == made.limit_bytes
    assert link.read_root(link.htb_root(), 0) == (1, 0)


@pytest.mark.parametrize("rate_bps, mtu, buffer_bytes, words", [
    (0, 1500, 15000, "cannot be shaped"), (1e3, 1500, 15000, "cannot be shaped"),
    (400e9, 1500, 15000, "400 Gb/s"), (float("nan"), 1500, 15000, "cannot be shaped"),
    (1e6, 1500, 1513, "cannot hold one packet"), (1e6, 1500, 0, "1514B"),
    (1e6, 60, 15000, "MTU of 60"), (1e6, 70000, 1e6, "MTU of 70000"), (1e6, 1500, 5e9, "5 GB")])
def test_what_cannot_be_shaped_is_refused(rate_bps, mtu, buffer_bytes, words):
    with pytest.raises(BadInput, match=words):
        link.shape(rate_bps, mtu, buffer_bytes)
