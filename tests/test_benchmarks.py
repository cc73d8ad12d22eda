"""The search for the highest rate that passes is bounded and finds it. Pure: no run is made."""
from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from benchmarks.forwarding import HIGHEST_BPS, LEAST_BPS, START_BPS, Carried, highest


@given(st.floats(1e4, 2e9), st.sampled_from(sorted(START_BPS.values())), st.integers(0, 3))
def test_the_highest_rate_that_passes_is_found(limit_bps: float, start_bps: float, bisections: int) -> None:
    tried: list[float] = []

    def measure(rate_bps: float) -> Carried:
        tried.append(rate_bps)
        return Carried(rate_bps, rate_bps, () if rate_bps <= limit_bps else ("idle",))

    best = highest(measure, start_bps, bisections)
    assert len(tried) <= 14 + bisections and len(set(tried)) == len(tried)
    if best is None:
        assert limit_bps < LEAST_BPS
        return
    assert best.passed and best.rate_bps == max(rate for rate in tried if rate <= limit_bps)
    # a step of the ladder is at most 2.5, and every bisection takes its square root
    assert limit_bps / best.rate_bps < 2.5 ** (0.5**bisections) * 1.001 or best.rate_bps == HIGHEST_BPS
