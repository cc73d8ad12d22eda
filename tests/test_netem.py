"""The delay of links by netem: its arithmetic, which way is chosen and why, and what counts as lost.

A run with netem is in tests/test_stock_kernel.py, since not every kernel has it.
"""
from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator import machine
from emulator.delay import way
from emulator.delay.netem import SMALLEST_PACKET_BYTES, limit_packets, options, read_options
from emulator.delay.record import NETEM_COUNTERS, NETEM_LOSSES, DelayRecord, netem_record
from emulator.delay.way import Way, choose, require
from emulator.errors import MachineLacks
from emulator.fidelity import judge
from tests.commands import SMALL, measure
from tests.sound_run import failed, only, sound

ON_TIME = DelayRecord(0.005, 1000, 2e-6, 9e-6, 3e-4, dict.fromkeys(NETEM_LOSSES.values(), 0), 0, way="netem",
                      timed=1000)
COUNTS = st.integers(0, 2**40)


@given(st.floats(1e3, 1e11), st.floats(1e-6, 0.1))
def test_netem_has_room_for_all_that_is_under_way(rate_bps: float, delay_s: float) -> None:
    assert (limit_packets(rate_bps, delay_s) - 1) * SMALLEST_PACKET_BYTES * 8 > rate_bps * delay_s


@given(st.floats(1e-6, 0.1), st.integers(1, 2**31))
def test_netem_is_told_its_delay_to_the_nanosecond_and_nothing_else(delay_s: float, limit: int) -> None:
    assert read_options(options(delay_s, limit), 0) == ("netem", (limit, 0, 0, 0, 0), round(delay_s * 1e9))


@given(COUNTS, COUNTS, COUNTS, COUNTS, COUNTS)
def test_every_packet_that_arrived_is_accounted_for(crossed: int, queued: int, dropped: int, refused: int,
                                                    emptied: int) -> None:
    before, after = np.zeros((), NETEM_COUNTERS), np.zeros((), NETEM_COUNTERS)
    for name, count in (("sent", crossed + refused), ("queued", queued), ("dropped", dropped), ("refused", refused)):
        after[name] = count
    after["arrived"] = crossed + refused + queued + dropped + emptied
    after["late"][3] = crossed
    found = netem_record(0.005, before[()], after[()])
    assert found.relayed == found.timed == crossed
    lost = {"lost_full": dropped, "lost_refused": refused + emptied}
    assert found.losses == {NETEM_LOSSES[name]: count for name, count in lost.items()}
    assert (found.late_p99_s is None) == (crossed == 0)


def test_the_verdict_on_netem() -> None:
    on_time = replace(sound(), delay=ON_TIME)
    assert failed(on_time) == {}
    why = next(check.why for check in judge(on_time).checks if check.name == "delay")
    assert "by netem" in why and "leaving the qdisc" in why
    unseen = only(replace(sound(), delay=replace(ON_TIME, timed=500)), "delay")
    assert "of which 500 were timed" in unseen.why
    only(replace(sound(), delay=replace(ON_TIME, failure="somebody changed it.")), "delay")


@pytest.mark.parametrize("what", NETEM_LOSSES.values())
def test_what_netem_lost_is_missing(what: str) -> None:
    fault = only(replace(sound(), delay=replace(ON_TIME, losses={**ON_TIME.losses, what: 3})), "conservation")
    assert fault.value == 3 and what in fault.why


def test_why_netem_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(way.time, "clock_getres", lambda clock: 0.004)
    assert "high-resolution timers" in choose().why and "4 ms" in str(choose())
    monkeypatch.undo()
    monkeypatch.setattr(way, "object_path", lambda name: Path("/nowhere"))
    assert choose().name == "relay" and "emulator.asic.build" in str(choose())
    monkeypatch.setattr(way, "object_path", lambda name: Path("/"))
    monkeypatch.setattr(way, "supported", lambda: "this kernel has no BTF.")
    assert choose().name == "relay" and str(choose()).endswith("cannot be measured here: this kernel has no BTF")


def test_what_each_way_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    def lacks() -> None:
        raise MachineLacks("no relay")

    monkeypatch.setattr(way, "require_relay", lacks)
    require(Way("netem"))
    with pytest.raises(MachineLacks):
        require(Way("relay", "this kernel has no netem"))


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: asks the kernel for a qdisc")
def test_netem_is_chosen_where_the_kernel_has_it_and_it_says_so() -> None:
    lacking = machine.lacking_qdiscs(["netem"])
    chosen = choose()
    assert chosen.name == ("relay" if lacking else "netem"), chosen
    assert ("has no netem" in str(chosen)) == bool(lacking)


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: runs a whole experiment")
def test_a_run_says_which_way_it_took(tmp_path: Path) -> None:
    summary = measure(tmp_path, *SMALL, "--workload", "pattern:pair=0-1,bytes=60kB", "--rate", "1mbit",
                      "--delay", "2ms", "--switch", "bpf")
    assert summary["environment"]["link_delay"] == str(choose())
    assert summary["delay"]["way"] == choose().name
    assert summary["delay"]["timed"] == summary["delay"]["relayed"] > 100
    assert 8 * 0.002 <= summary["transport"]["rtt_min_s"] < 8 * 0.002 + 0.01
