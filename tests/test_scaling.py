"""--target-rate, --dilation and --byte-scale: what follows from what, and what contradicts."""
from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.experiment import make
from emulator.scaling import scaling
from tests.outcomes import plan, refusal

JOB = "llm:layers=8,hidden=1024,seq=1024,dp=4"


@settings(max_examples=40, deadline=None)
@given(rate_bps=st.floats(1e3, 1e9), target_gbit=st.integers(1, 1600))
def test_the_dilation_follows_from_the_target_rate(rate_bps, target_gbit):
    chosen = scaling(make({"target-rate": f"{target_gbit}gbit"}), rate_bps)
    assert chosen["dilation"] == pytest.approx(target_gbit * 1e9 / rate_bps)
    assert chosen["auto_dilation"] and chosen["auto_byte_scale"] and chosen["byte_scale"] == 1


def test_nothing_is_scaled_where_nobody_asked():
    made = plan(workload="allreduce:bytes=100kB")
    assert (made.experiment.dilation, made.experiment.byte_scale) == (1.0, 1.0)
    assert made.workload.target is None


def test_a_target_rate_projects_any_workload():
    made = plan(workload="allreduce:bytes=100kB", **{"target-rate": "400gbit"})
    assert made.experiment.dilation == 80_000


def test_a_job_chooses_both_scales_and_repeats_with_them():
    made = plan(workload=JOB)
    target = made.workload.target
    assert (made.experiment.dilation, made.experiment.byte_scale) == (target.dilation, target.byte_scale)
    assert made.resolved.dilation == 80_000 and made.resolved.byte_scale > 1


def test_contradictions_are_refused():
    said = refusal(workload=JOB, dilation=10, **{"target-rate": "400gbit"})
    assert "contradict" in said and "leave --dilation out" in said
    assert "is less than the emulated rate" in refusal(workload=JOB, **{"target-rate": "1mbit"})
    assert "no unit" in refusal(workload=JOB, **{"target-rate": "400"})
    assert plan(workload=JOB, dilation=80_000, **{"target-rate": "400gbit"}).experiment.dilation == 80_000
