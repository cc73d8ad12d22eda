"""Whose bytes a fifo holds, where its thresholds lie, and how pauses are counted: pure."""
from __future__ import annotations

import time
from collections import deque
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.asic.layout import INGRESS_PORTS, MAX_CLASSES, QUEUE
from emulator.asic.pauser import Watcher
from emulator.asic.pauserprocess import LOOP, PAUSES, Pauser
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


class Gates:
    """As much of a chip as a watcher of one class looks at: a switch whose port 1 feeds its port 2."""

    classes = 8

    def __init__(self):
        self.queues, self._crossings = np.zeros(3 * 8, QUEUE), np.zeros(3 * 8 * INGRESS_PORTS, "<u8")
        self.maps = {"crossings": SimpleNamespace(array=lambda _: self._crossings)}
        self.shut: list[int] = []

    def held(self, depth_bytes):
        """Port 2's queue of class 3 now holds this much, all of it from port 1."""
        self._crossings.reshape(-1, INGRESS_PORTS)[2 * 8 + 3, 1] += depth_bytes
        self.queues["depth_bytes"][2 * 8 + 3] = depth_bytes

    def pause(self, ifindex, number):
        self.shut.append(ifindex)

    def resume(self, ifindex, number):
        self.shut.remove(ifindex)
        return True


def test_a_pause_counts_while_it_stands_and_once_when_it_has_ended(tmp_path):
    links = [{"switch": 0, "number": number, "ifindex": number,
              "peer": {"netns": None, "ifindex": 10 + number}} for number in (1, 2)]
    file = tmp_path / "pauses"
    file.write_bytes(bytes(LOOP.itemsize + 2 * MAX_CLASSES * PAUSES.itemsize))
    statistics = np.memmap(file, PAUSES, "r+", LOOP.itemsize, (2 * MAX_CLASSES,)).reshape(-1, MAX_CLASSES)
    chip = Gates()
    limits = {"3": [{"xoff_bytes": 5000, "xon_bytes": 1000}]}
    watcher = Watcher(chip, 3, {"links": links, "thresholds": limits}, statistics)
    pauser = Pauser(None, tmp_path / "log", [SimpleNamespace(name="up1"), SimpleNamespace(name="up2")], file)
    start = pauser.read()
    chip.held(9000)
    watcher.look()
    assert chip.shut == [11]
    time.sleep(0.03)
    standing, = pauser.record(start).ports
    assert (standing.port, standing.traffic_class, standing.pauses) == ("up1", 3, 1)
    assert 0.03 <= standing.paused_s == standing.longest_s
    half_way = pauser.read()
    time.sleep(0.03)
    since, = pauser.record(half_way).ports
    assert since.pauses == 0 and 0.03 <= since.paused_s < since.longest_s, "it began before this record"
    chip.held(0)
    watcher.look()
    assert chip.shut == []
    ended, = pauser.record(start).ports
    time.sleep(0.01)
    assert pauser.record(start).ports == (ended,), "it has ended, and grows no more"
    assert ended.pauses == 1 and 0.06 <= ended.paused_s == ended.longest_s and ended.kicks == 1
    assert pauser.record(pauser.read()).ports == ()
