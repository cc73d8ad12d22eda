"""Propagation delay and bit errors of links: their arithmetic, their verdict, and real runs with them."""
from __future__ import annotations

import io
import os
import signal
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator import report, results
from emulator.asic.biterrors import parse_bit_errors
from emulator.asic.histogram import sojourn_bounds_ns
from emulator.delay import build, way
from emulator.delay.build import require_relay
from emulator.delay.record import COUNTERS, LOSSES, DelayRecord, record
from emulator.delay.relay import check, slot_bytes, slots
from emulator.errors import BadInput, MachineLacks
from emulator.fidelity import judge
from emulator.observe import observe
from tests.commands import SMALL, measure, start, strict_json
from tests.outcomes import outcome, plan
from tests.sound_run import failed, only, sound, with_link

ON_TIME = DelayRecord(0.005, 1000, 5e-5, 2e-4, 1e-3, dict.fromkeys(LOSSES.values(), 0), 0, timed=1000)
root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: runs whole experiments")


@given(st.lists(st.floats(1e4, 1e9), min_size=2, max_size=40), st.floats(1e-6, 0.1), st.integers(576, 9000))
def test_the_ring_has_room_for_all_that_is_under_way(rates: list[float], delay_s: float, mtu: int) -> None:
    room, size = slots(rates, delay_s, mtu), slot_bytes(mtu)
    assert size >= mtu + 14 + 80 and 65536 % size == 0, "a slot holds a frame, a block whole slots"
    assert room % (65536 // size) == 0
    assert room * (mtu + 14) >= sum(rates) * delay_s / 8 + 3 * len(rates) * (mtu + 14), "and a burst of each port"


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=200))
def test_lateness_is_read_from_the_histogram(late_ns: list[int]) -> None:
    before, after = np.zeros((), COUNTERS)[()], np.zeros((), COUNTERS)
    bins = np.searchsorted(sojourn_bounds_ns(), late_ns, side="right") - 1
    np.add.at(after["late"], bins, 1)
    after["relayed"] = len(late_ns)
    found = record(0.001, before, after[()])
    assert found.relayed == len(late_ns) and not any(found.losses.values())
    assert found.late_max_s * 1e9 > max(late_ns) - 1 and found.late_max_s * 1e9 <= max(late_ns) * 17 / 16 + 64
    assert found.late_p50_s <= found.late_p99_s <= found.late_max_s


def test_nothing_relayed_has_no_lateness() -> None:
    nothing = np.zeros((), COUNTERS)[()]
    assert record(0.001, nothing, nothing).late_p99_s is None


def test_delays_that_cannot_be() -> None:
    check(0.1, [1e6] * 10, 1500)
    for delay_s, rates in ((0.2, [1e6]), (0.05, [1e10] * 100)):
        with pytest.raises(BadInput):
            check(delay_s, rates, 1500)


@given(st.floats(0, 1.6e-5))
def test_bit_error_rates(rate: float) -> None:
    assert parse_bit_errors(repr(rate), 1514, "bpf") == rate


def test_the_verdict_on_a_delay() -> None:
    on_time = replace(sound(), delay=ON_TIME)
    assert failed(on_time) == {}
    check_of = {check.name: check for check in judge(on_time).checks}
    assert check_of["delay"].value == ON_TIME.late_p99_s
    assert "5 ms" in check_of["delay"].why
    late = only(replace(sound(), delay=replace(ON_TIME, late_p99_s=0.1)), "delay")
    assert "lower --rate" in late.why and late.limit == pytest.approx(1514 * 8 / 5e6)
    assert "set the machine's clock 1 times" in only(replace(sound(), delay=replace(ON_TIME, clock_steps=1)), "delay").why
    assert "killed" in only(replace(sound(), delay=replace(ON_TIME, failure="The relay was killed.")), "delay").why
    only(replace(sound(), delay=replace(ON_TIME, late_p99_s=None)), "delay")


@pytest.mark.parametrize("what", LOSSES.values())
def test_what_the_relay_lost_is_missing(what: str) -> None:
    lossy = replace(ON_TIME, losses={**ON_TIME.losses, what: 3})
    fault = only(replace(sound(), delay=lossy), "conservation")
    assert fault.value == 3 and what in fault.why


def test_bit_errors_are_accounted_for_and_nothing_else_is() -> None:
    hit = with_link(sound(), "s1-eth1", rx_packets=1005)
    hit = with_link(hit, "h1-eth0", tx_packets=1005)
    assert only(hit, "conservation").value == 5
    told = replace(hit, switch_drops={"s1": 5})
    assert failed(told) == {}
    assert "5 were lost to bit errors" in next(c.why for c in judge(told).checks if c.name == "conservation")
    assert only(replace(hit, switch_drops={"s1": 6}), "conservation").value == 1


def test_the_delay_counts_once_in_a_flows_ideal() -> None:
    near, far = (plan(delay=delay) for delay in ("0s", "10ms"))
    alone = [results.flows(made, outcome(made))[0].ideal_s for made in (near, far)]
    assert alone[0] == pytest.approx(alone[1]), "the least round trip, which is measured, has the delays in it"
    assert far.ideal.ideal_s == pytest.approx(near.ideal.ideal_s + 4 * 0.01), "four links from rack to rack"


@pytest.mark.root
@root
def test_every_link_keeps_its_delay(tmp_path: Path) -> None:
    summary = measure(tmp_path, *SMALL, "--workload", "pattern:pair=0-1,bytes=125kB", "--rate", "1mbit",
                      "--delay", "5ms", "--switch", "ovs")
    assert 8 * 0.005 <= summary["transport"]["rtt_min_s"] < 8 * 0.005 + 0.02, "four links there and four back"
    assert summary["transport"]["reordering_events"] == 0
    delay = summary["delay"]
    assert delay["relayed"] > 4 * 125_000 / 1448 and not any(delay["losses"].values())
    assert summary["experiment"]["delay_s"] == 0.005


@pytest.mark.long
@pytest.mark.root
@root
def test_bit_errors_are_lost_and_counted(tmp_path: Path) -> None:
    summary = measure(tmp_path, *SMALL, "--workload", "pattern:pair=0-1,bytes=1MB", "--rate", "5mbit",
                      "--loss", "1e-6", "--delay", "2ms", "--switch", "bpf")
    loss = summary["loss"]
    # some 700 frames over 4 links, 1.2 % lost at each, and acknowledgements: 35 expected
    assert 12 <= loss["bit_error_packets"] <= 70
    assert loss["bit_error_packets"] == sum(row["packets"] for row in loss["bit_errors_by_link"])
    assert loss["dropped_packets"] == 0 and summary["transport"]["retransmitted_segments"] > 0
    assert summary["workload"]["bytes_received"] == 1_000_000
    assert 8 * 0.002 <= summary["transport"]["rtt_min_s"] < 8 * 0.002 + 0.01


@pytest.mark.long
@pytest.mark.root
@root
def test_a_relay_that_dies_is_told(tmp_path: Path) -> None:
    if way.choose().name != "relay":
        pytest.skip("this kernel has netem, so that no wire process runs")
    run = start(*SMALL, "--workload", "pattern:pair=0-1,bytes=3MB", "--rate", "5mbit", "--delay", "2ms",
                "--deadline", "2s", "--out", tmp_path / "out")
    run.says("connecting ranks (")
    os.kill(run.one("delay/build/relay"), signal.SIGKILL)
    status, _, complained = run.ended()
    assert status == 4, complained
    checks = {c["name"]: c for c in strict_json(tmp_path / "out/summary.json")["fidelity"]["checks"]}
    assert not checks["delay"]["ok"] and "killed by signal 9" in checks["delay"]["why"]


def test_without_its_relay_a_delay_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "BINARY", Path("/nowhere/relay"))
    with pytest.raises(MachineLacks, match="not compiled.*emulator.asic.build"):
        require_relay()


def test_a_report_tells_delay_bit_errors_and_reordering() -> None:
    made = replace(plan(delay="5ms"), bit_error_rate=1e-6)
    brought = outcome(made)
    reordered = replace(brought.engine.connections[0].info, reord_seen=7, dsack_dups=2, total_retrans=8)
    brought.engine.connections[0] = replace(brought.engine.connections[0], info=reordered)
    brought = replace(brought, delay=ON_TIME, bit_errors={"l1-eth1": 3, "s1-eth1": 4})
    listed = results.flows(made, brought)
    summary = results.summarise(made, brought, judge(observe(made, brought)), listed)
    out = io.StringIO()
    report.show(report.result(summary, listed, "out"), out)
    said = " ".join(out.getvalue().split())
    assert "delay 5 ms, bit errors 1e-06" in said and "7 lost to bit errors" in said
    assert f"1 of {len(brought.engine.connections)} connections saw reordering (7 times); 2 of 8 segments" in said
    assert "25.0 % needless" in said and "Delay of a link: 5 ms, kept within 50 us (median), 200 us (p99)" in said
    ports = {port.name: port.link for port in brought.ports}
    assert summary["loss"]["bit_errors_by_link"] == [
        {"link": link, "packets": packets} for link, packets in
        sorted([(ports["l1-eth1"], 3), (ports["s1-eth1"], 4)])]
    assert summary["transport"]["spurious_share"] == 0.25
