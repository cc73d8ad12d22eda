"""What a record of queues says of classes: shares, waits, pauses; and that the verdict looks at them. Pure."""
from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.classes import DEFAULT_TABLE
from emulator.fidelity import PathDelay, judge
from emulator.results.classes import _served, fair_shares
from emulator.telemetry.packets import PacketRecord, QueueRecord, SentSeries
from emulator.telemetry.pauses import PauseRecord, PortPauses
from tests.sound_run import only, sound

WEIGHTS = [each.weight for each in DEFAULT_TABLE.classes]
STEP_S, PORT_BYTES_PER_S = 0.2, 1_000_000.0


def record(rates: np.ndarray, depth_bytes: float = 5000.0) -> PacketRecord:
    """One port whose class c sends rates[t, c] bytes a second in step t, with the same depth while it does."""
    steps, classes = rates.shape
    moments = 10.0 + STEP_S * np.arange(steps + 1)
    sent = np.concatenate((np.zeros((1, classes)), np.cumsum(rates * STEP_S, axis=0))).astype(np.int64)
    times, queues, depths = [], [], []
    for number in range(classes):
        for moment, rate in zip(moments, [*rates[:, number], 0.0]):
            times.append(moment)
            queues.append(number)
            depths.append(depth_bytes if rate else 0.0)
    order = np.argsort(times, kind="stable")
    rows = tuple(QueueRecord("s1-eth1", number, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, int(sent[-1, number]),
                             60_000) for number in range(classes))
    return PacketRecord(rows, (), np.array(times)[order], np.array(queues)[order], np.array(depths)[order], 0,
                        SentSeries(moments, sent))


@given(st.lists(st.floats(0.001, 1), min_size=8, max_size=8), st.lists(st.booleans(), min_size=8, max_size=8))
def test_fair_shares_add_up_and_follow_the_weights(parts, backlogged):
    share = [part / sum(parts) for part in parts]
    fair = fair_shares(DEFAULT_TABLE, share, backlogged)
    contending = [number for number, busy in enumerate(backlogged) if busy and WEIGHTS[number]]
    if contending:
        assert sum(fair) == pytest.approx(1.0)
    for number in range(8):
        if number not in contending:
            assert fair[number] == share[number]
    per_weight = {round(fair[number] / WEIGHTS[number], 12) for number in contending}
    assert len(per_weight) <= 1


def test_shares_are_of_the_time_in_which_all_send():
    """The heaviest class ends first; what the others then get is not counted."""
    early = [0.0, 8, 4, 4, 4, 2, 2, 1]
    rates = np.array([early] * 10 + [[0.0, 0, 8, 8, 4, 2, 2, 1]] * 10) / 25 * PORT_BYTES_PER_S
    served = _served(record(rates), "s1-eth1", DEFAULT_TABLE)
    assert served.share[0] is None and served.seconds == pytest.approx(8 * STEP_S)
    assert served.share[1:] == pytest.approx([weight / 25 for weight in early[1:]], rel=1e-3)
    assert served.fair_share[1:] == pytest.approx(served.share[1:], rel=1e-3)


def test_no_share_where_classes_never_meet():
    rates = np.zeros((20, 8))
    rates[:8, 1] = rates[12:, 2] = PORT_BYTES_PER_S
    assert _served(record(rates), "s1-eth1", DEFAULT_TABLE) is None


def test_a_wait_is_the_depth_over_the_rate_of_the_time():
    """Half of the time at a tenth of the rate: packets on average wait less than the clock says, and the
    round trips are sampled by the clock."""
    rates = np.zeros((100, 2))
    rates[:50, 0], rates[50:, 0] = 100_000.0, 1_000_000.0
    made = record(rates)
    assert made.mean_wait_s(0, 10.0, 30.0) == pytest.approx((0.05 + 0.005) / 2, rel=0.1)
    assert made.mean_wait_s(1, 10.0, 30.0) == 0.0
    assert made.busy_share(0, 10.0, 30.0) == pytest.approx(1.0) and made.busy_share(1, 10.0, 30.0) == 0.0


def test_a_starved_queue_has_no_mean_wait():
    rates = np.zeros((100, 2))
    rates[:, 0], rates[::20, 0] = 0.0, 100.0
    assert np.isnan(record(rates + 1e-9).mean_wait_s(0, 10.0, 30.0))


def pauses(*rows: PortPauses) -> PauseRecord:
    return PauseRecord(rows, 0.001, 0.0002, 0.003)


def test_a_drop_of_a_lossless_class_fails_the_verdict():
    run = sound()
    port = run.ports[0].name
    held = replace(run, pauses=pauses(PortPauses(port, 1, 7, 0.5, 0.1, 7)))
    check = next(check for check in judge(held).checks if check.name == "lossless")
    assert check.ok and "7 pauses of 1 ports" in check.why and judge(held).verdict == "pass"
    dropped = only(replace(held, lossless_drops=3), "lossless")
    assert dropped.value == 3 and "3 packets" in dropped.why


def test_round_trips_are_judged_by_the_queue_of_their_class():
    run = sound()
    port = next(port for port in run.ports if port.netns is None)
    path = PathDelay("a-b", (port.name,), 0.5, 0.1)
    only(replace(run, paths=(path,)), "littles-law")
    in_class = replace(path, waits_s={port.name: 0.4})
    assert judge(replace(run, paths=(in_class,))).verdict == "pass"


def test_frames_that_only_wake_a_queue_are_no_loss():
    run = sound()
    switch = next(port.node for port in run.ports if port.netns is None)
    assert only(replace(run, kept_frames={switch: 5}), "conservation").value == 5
