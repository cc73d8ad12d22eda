"""Whose bytes a fifo holds, and where its thresholds lie: pure."""
from __future__ import annotations

from collections import deque

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.asic.pausing import HEADROOM_S, Holdings, thresholds
from emulator.errors import BadInput

PORTS, FRAME = 4, 1514
steps = st.lists(st.tuples(st.integers(0, PORTS - 1), st.integers(60, FRAME), st.integers(0, 2)), max_size=200)


@given(steps, st.integers(1, 7))
def test_holdings_are_those_of_a_fifo(moves, look_every):
    """A fifo in which packets of several ports come and go, looked at now and then."""
    fifo: deque[tuple[int, int]] = deque()
    arrived = np.zeros(PORTS, np.int64)
    holdings = Holdings(arrived.copy())
    since_look = 0
    for number, (port, size_bytes, leave) in enumerate(moves):
        fifo.append((port, size_bytes))
        arrived[port] += size_bytes
        since_look += size_bytes
        for _ in range(min(leave, len(fifo))):
            fifo.popleft()
        if number % look_every:
            continue
        true = np.zeros(PORTS)
        for owner, size in fifo:
            true[owner] += size
        found = holdings.held(arrived.copy(), sum(size for _, size in fifo))
        assert found.sum() == pytest.approx(true.sum())
        assert (found >= -1e-6).all()
        # what came between two looks is taken as mixed: that much may be another port's
        assert np.abs(found - true).max() <= look_every * FRAME
        if look_every == 1:
            assert found == pytest.approx(true)


@given(st.integers(1, 40), st.floats(1e6, 1e9), st.integers(1, 64))
def test_all_ports_together_stay_within_the_queue(limit_frames, rate_bps, ports):
    limit = limit_frames * 20 * FRAME
    try:
        found = thresholds("a", "s1", limit, ports, rate_bps, FRAME)
    except BadInput as refusal:
        assert "larger buffer share" in str(refusal)
        return
    late_bytes = rate_bps * HEADROOM_S / 8 + FRAME  # what one link sends until it is paused, and one frame more
    assert max(1, ports - 1) * (found.xoff_bytes + late_bytes) <= limit
    assert 0 < found.xon_bytes < found.xoff_bytes
