"""What flows of a pattern offer: their bytes, their classes, their moments."""
from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.errors import BadInput
from traffic.ideal import ideal
from traffic.offered import LEAST_PERIOD_S, sized
from traffic.schedule import PACE, Kind
from traffic.setting import Setting
from traffic.specs import resolve_workload


@pytest.fixture(scope="module")
def setting(k4):
    return Setting(k4, rate_bps=10e6, mtu=1500, seed=1, classes=("tensor", "storage"), kinds=("expert",))


def sends(workload):
    return [op for ops in workload.schedule.ranks for op in ops if op.kind is Kind.SEND]


def test_flows_take_classes_in_turn(setting):
    for text, names in (("class=all", ["tensor", "storage", "tensor"]), ("class=expert", ["expert"] * 3),
                        ("class=expert+storage", ["expert", "storage", "expert"]), ("flows=1", [""] * 3)):
        workload = resolve_workload(f"pattern:incast=3,bytes=1MB,{text}", setting)
        assert [op.traffic_class for op in sends(workload)] == names


@given(st.floats(0.02, 0.95), st.sampled_from([1e6, 10e6, 400e6]))
def test_a_paced_flow_offers_its_load_all_along(k4, load, rate_bps):
    setting = Setting(k4, rate_bps, 1500, 1)
    (size_bytes,), (pace,) = sized([(0, 5)], [load], None, 10.0, setting)
    wire_bps = 8 * setting.wire.frames_bytes(pace.message_bytes) / pace.period_s
    assert wire_bps == pytest.approx(load * rate_bps, rel=1e-9) and pace.period_s >= LEAST_PERIOD_S * 0.999
    assert -(-size_bytes // pace.message_bytes) * pace.period_s == pytest.approx(10.0, abs=2 * pace.period_s)


def test_paced_messages_have_moments_of_their_own(setting):
    workload = resolve_workload("pattern:pair=0-5,load=0.5,time=1s", setting)
    waits = [op for ops in workload.schedule.ranks for op in ops if op.kind is Kind.COMPUTE]
    assert {op.phase for op in waits} == {PACE} and not any(op.deps for op in waits)
    gaps = [b.duration_s - a.duration_s for a, b in zip(waits, waits[1:])]
    assert gaps == pytest.approx([gaps[0]] * len(gaps)) and len(sends(workload)) == len(waits) + 1
    assert ideal(workload, setting.paths, setting.wire).ideal_s == pytest.approx(1.0, rel=0.02)


def test_the_others_share_what_paced_flows_leave(setting):
    workload = resolve_workload("pattern:incast=3,load=0.3+1+1,time=4s", setting)
    by_rank = [sum(op.size_bytes for op in ops if op.kind is Kind.SEND) for ops in workload.schedule.ranks]
    assert by_rank[1] == by_rank[2] == pytest.approx(by_rank[0] * 0.35 / 0.3, rel=0.01)
    assert ideal(workload, setting.paths, setting.wire).ideal_s == pytest.approx(4.0, rel=0.02)
    assert {op.size_bytes for op in sends(resolve_workload("pattern:incast=3,load=1+1,bytes=5kB", setting))} == {5000}


@pytest.mark.parametrize("text", ["load=0", "load=1.5", "load=x", "class=tensor++storage", "class=tensr", "bytes=1MB,time=3s"])
def test_slips(setting, text):
    with pytest.raises(BadInput):
        resolve_workload(f"pattern:incast=3,{text}", setting)
