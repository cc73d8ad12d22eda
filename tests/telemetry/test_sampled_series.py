"""The pure parts of sampling: rates within a budget, counters that wrap, idle cores, shared arrays."""
from __future__ import annotations

import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.fabric.spec import Port
from emulator.telemetry.cpu import TICKS_PER_S, core_series, parse_cores, process_cpu_s, read_cores
from emulator.telemetry.qdisc import SAMPLED
from emulator.telemetry.sample_loop import HOST_HZ, MINIMUM_HZ, choose_rates
from emulator.telemetry.series import queue_series, running_total
from emulator.telemetry.shared import map_arrays, size_of

costs = st.floats(1e-5, 5e-2)


@given(st.floats(20, 2000), costs, costs, st.floats(0.01, 1.0), st.floats(20, 1e5))
def test_rates_keep_the_budget_or_are_the_least(asked: float, switch: float, host: float, budget: float,
                                                 most: float) -> None:
    rates = choose_rates(asked, [switch, host], 1, budget, most)
    used = rates[0] * switch + rates[1] * host
    assert used <= budget * (1 + 1e-9) or MINIMUM_HZ in rates
    assert all(rate <= min(asked, most) * (1 + 1e-9) for rate in rates)
    assert rates[1] <= HOST_HZ


def test_what_is_cheap_is_sampled_as_asked() -> None:
    assert choose_rates(1000, [50e-6, 100e-6], 1, 0.1, 1e6) == [1000, HOST_HZ]
    assert choose_rates(5, [1.0], -1, 0.1, 1e6) == [5]


@given(st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=20), st.integers(0, 2**32 - 1))
def test_a_wrapping_counter_counts_on(steps: list[int], first: int) -> None:
    counter = (first + np.cumsum([0, *steps])).astype(np.uint64) % 2**32
    total = running_total(counter.astype(np.uint32)[:, None])
    assert total[:, 0].tolist() == np.cumsum([0, *steps]).tolist()


def test_a_counter_that_began_anew_goes_on_from_there() -> None:
    counter = np.array([[1000], [5000], [200], [900]], np.uint32)
    assert running_total(counter)[:, 0].tolist() == [0, 4000, 4200, 4900]


def test_a_window_holds_the_samples_in_it() -> None:
    port = Port("s1-eth1", "s1", 1, 2, None, 1e6, 10_000, 0, "h1-eth0")
    time_s = np.arange(10.0)
    words = np.arange(10 * SAMPLED, dtype=np.uint32).reshape(10, SAMPLED, 1)
    series = queue_series((port,), 1.0, time_s, time_s * 0, time_s * 0, words, np.array([np.nan]))
    window = series.between(2.0, 4.5)
    assert window.time_s.tolist() == [2.0, 3.0, 4.0]
    assert window.backlog_bytes[:, 0].tolist() == [2 * SAMPLED, 3 * SAMPLED, 4 * SAMPLED]
    assert window.ports == (port,)


@given(st.lists(st.tuples(st.integers(0, TICKS_PER_S), st.integers(0, TICKS_PER_S)), min_size=1, max_size=8))
def test_idle_is_idle_time_over_wall_time(steps: list[tuple[int, int]]) -> None:
    ticks = np.concatenate([[[(0, 0)]], np.cumsum([[step] for step in steps], axis=0)])
    series = core_series(np.arange(len(steps) + 1.0), ticks)
    assert np.allclose(series.idle[:, 0], [idle / TICKS_PER_S for idle, _ in steps])
    assert np.allclose(series.steal[:, 0], [steal / TICKS_PER_S for _, steal in steps])


def test_the_columns_of_proc_stat() -> None:
    text = b"cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 1 2 3 40 5 6 7 8 0 0\ncpu1 1 2 3 50 0 6 7 9 0 0\nintr 5\n"
    assert parse_cores(text).tolist() == [[45, 8], [50, 9]]
    assert read_cores().shape == (os.sysconf("SC_NPROCESSORS_ONLN"), 2)


def test_own_cpu_time_is_there() -> None:
    assert process_cpu_s(os.getpid()) == pytest.approx(sum(os.times()[:2]), abs=0.1)


def test_shared_arrays_lie_apart_and_are_seen_by_both_sides() -> None:
    layout = {"a": ("i8", (3,)), "b": ("u4", (2, 5)), "c": ("f4", (0,))}
    descriptor = os.memfd_create("test")
    try:
        one, other = map_arrays(descriptor, layout), map_arrays(descriptor, layout)
        one["a"][:], one["b"][:] = 7, 9
        assert other["a"].tolist() == [7] * 3
        assert other["b"].sum() == 90
        assert other["c"].shape == (0,)
        assert os.fstat(descriptor).st_size >= size_of(layout)
    finally:
        os.close(descriptor)
