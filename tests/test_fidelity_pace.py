"""Checks 1 to 3 of the verdict: each passes on a sound run and fails on the fault it is there for."""
from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sound_run import END_S, FRAME, PORTS, RATE_BPS, START_S, failed, only, series, sound, with_queue

from emulator.fidelity import Observations, judge
from emulator.fidelity.pace import as_option
from emulator.telemetry.cpu import CoreSeries
from emulator.units import parse_rate


# 1. rates

@given(st.floats(0.995, 1.005))
def test_a_rate_within_the_tolerance_passes(ratio: float) -> None:
    assert failed(replace(sound(), series=(series(actual_bps=RATE_BPS * ratio),))) == {}


@given(st.floats(0.2, 0.97))
def test_a_slow_port_fails_with_a_lower_rate(ratio: float) -> None:
    check = only(replace(sound(), series=(series(actual_bps=RATE_BPS * ratio),)), "rate")
    assert check.value == pytest.approx(1 - ratio, abs=0.012)
    proposed = parse_rate(check.why.rpartition(" ")[2])
    assert 0.5 * ratio * RATE_BPS < proposed < ratio * RATE_BPS


@given(st.floats(1.05, 5.0))
def test_a_fast_port_breaks_the_ceiling(ratio: float) -> None:
    found = failed(replace(sound(), series=(series(actual_bps=RATE_BPS * ratio),)))
    assert "ceiling" in found
    assert "rate" in found


@given(st.floats(1.05, 5.0))
def test_a_fast_port_breaks_the_ceiling_without_a_queue(ratio: float) -> None:
    quick = replace(sound(), series=(series(actual_bps=RATE_BPS * ratio, depth=0),), paths=())
    check = only(quick, "ceiling")
    assert check.value > check.limit


def test_a_port_with_little_to_send_is_not_judged() -> None:
    idle = replace(sound(), series=(series(actual_bps=RATE_BPS / 10, depth=FRAME),), paths=())
    assert failed(idle) == {}
    why = next(check.why for check in judge(idle).checks if check.name == "rate")
    assert why.startswith("not exercised")
    assert "0.1" in why


def test_htb_that_goes_is_named_and_dated() -> None:
    gone = replace(series(), unshaped_s=np.array([np.nan, START_S + 3]))
    check = only(replace(sound(), series=(gone,)), "shaping")
    assert "s1-eth2 was without HTB +3.00 s" in check.why


@pytest.mark.parametrize("read_back, words", [(None, "no HTB"), (4e6, "4 Mb/s, not 5 Mb/s")])
def test_another_rate_read_back_is_named(read_back: float | None, words: str) -> None:
    run = sound()
    check = only(replace(run, shaped_bps={**run.shaped_bps, "h2-eth0": read_back}), "shaping")
    assert "h2-eth0" in check.why
    assert words in check.why


def test_a_port_that_was_not_read_back_fails() -> None:
    run = sound()
    assert only(replace(run, shaped_bps={}), "shaping").value == len(PORTS)


def test_unshaped_packets_fail() -> None:
    assert "7 packets" in only(with_queue(sound(), "s1-eth2", direct_packets=7), "shaping").why


def test_gaps_between_packets() -> None:
    assert only(replace(sound(), dequeue_gap_deviation=(0.2, 0.4)), "gaps").value == 0.2
    assert failed(replace(sound(), dequeue_gap_deviation=None)) == {}


# 2. cores

def with_cores(second: int, core: int, **changed: float) -> Observations:
    run = sound()
    arrays = {}
    for name, value in changed.items():
        arrays[name] = getattr(run.cores, name).copy()
        arrays[name][second, core] = value
    return replace(run, cores=replace(run.cores, **arrays))


@given(st.integers(1, 10), st.integers(0, 1), st.floats(0, 0.349))
def test_one_busy_second_of_one_core_fails(second: int, core: int, share: float) -> None:
    check = only(with_cores(second, core, idle=share), "idle")
    assert check.value == share
    assert f"core {core}" in check.why
    proposed = parse_rate(check.why.partition("--rate to about ")[2].partition(",")[0])
    assert proposed < RATE_BPS


@pytest.mark.parametrize("second", [0, 11])
def test_seconds_outside_the_window_do_not_count(second: int) -> None:
    assert failed(with_cores(second, 0, idle=0.0, steal=0.9)) == {}


def test_stolen_time_fails() -> None:
    run = with_cores(5, 1, steal=0.9)
    assert only(run, "steal").value >= 0.9 / len(run.cores.steal) > 0.05
    assert not failed(with_cores(5, 1, steal=0.3))  # one second alone is for `idle` to judge


def test_a_window_shorter_than_a_second_takes_those_around_it() -> None:
    run = replace(with_cores(5, 0, idle=0.1), start_s=START_S + 4.2, end_s=START_S + 4.9)
    assert "no full second" in failed(run)["idle"].why


def test_cores_that_were_not_watched_fail() -> None:
    run = sound()
    nothing = CoreSeries(np.array([1.0]), np.zeros((0, 2)), np.zeros((0, 2)))
    assert set(failed(replace(run, cores=nothing))) == {"idle", "steal"}


# 3. timers

def test_late_timers_fail_with_a_rate() -> None:
    check = only(replace(sound(), series=(series(late_s=0.009, late_every=50),)), "timers")
    assert check.value == pytest.approx(0.009)
    assert check.limit == pytest.approx(FRAME * 8 / RATE_BPS)
    assert "--rate" in check.why


def test_ticks_that_were_missed_are_late() -> None:
    seen = series()
    kept = np.ones(len(seen.time_s), bool)
    kept[300:350] = False
    assert only(replace(sound(), series=(seen.rows(kept),)), "timers").value > 0.3


def test_a_sampler_that_stopped_early_fails() -> None:
    assert "not sampled" in only(replace(sound(), series=(series(end_s=END_S - 3),)), "timers").why


def test_a_sampler_held_up_across_the_end_counts() -> None:
    seen = series()
    held = (seen.time_s > END_S - 0.5) & (seen.time_s < END_S + 0.5)
    assert only(replace(sound(), series=(seen.rows(~held),)), "timers").value > 0.5


def test_no_samples_fail() -> None:
    assert "not sampled" in failed(replace(sound(), series=(), paths=()))["timers"].why


@given(st.floats(1, 1e12))
def test_a_proposed_rate_can_be_given_back(rate_bps: float) -> None:
    assert parse_rate(as_option(rate_bps)) == pytest.approx(rate_bps, rel=0.06, abs=0.5)


def test_a_port_that_is_not_as_configured_at_the_end():
    check = only(replace(sound(), link_faults=("s1-eth2 holds 9 bytes, not 60000.",)), "shaping")
    assert check.value == 1 and "s1-eth2 holds 9 bytes" in check.why
