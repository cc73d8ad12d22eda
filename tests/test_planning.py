"""The plans of several runs: what they are compared by must not hang on a rate that each chose for itself."""
from __future__ import annotations

import pytest

from emulator.crosstable import reference_runs
from emulator.matrix import expand
from emulator.planning import plan_all
from emulator.results import flows, summarise
from emulator.writing import NOTHING_TO_JUDGE
from tests.outcomes import outcome

FILE = {"topology": "fat-tree:k=4", "workload": "pattern:stride=8,bytes=100kB"}


def plans(values: dict, *before: object) -> list:
    return plan_all([*before, *expand(values)], lambda kind: ("bpf", "bpf"))


@pytest.fixture(autouse=True)
def a_machine_as_fast_as_the_one_that_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("emulator.capacity.slowness", lambda: 1.0)


def test_auto_is_one_rate_for_all_runs_and_said_so() -> None:
    alone = [plans({**FILE, "mtu": mtu})[0].wire.rate_bps for mtu in (1500, 4000)]
    assert alone[0] < alone[1], "else this test tests nothing"
    together = plans({**FILE, "matrix": {"mtu": [1500, 4000]}})
    assert [plan.wire.rate_bps for plan in together] == [alone[0]] * 2
    assert [plan.wire.mtu for plan in together] == [1500, 4000]
    assert all(sum("--rate auto is" in note for note in plan.notes) == 1 for plan in together)
    assert [plan.label for plan in together] == ["mtu=1500", "mtu=4000"]
    assert [plan.varied for plan in together] == [{"mtu": "1500"}, {"mtu": "4000"}]


def test_a_reference_takes_the_same_rate() -> None:
    values = {**FILE, "matrix": {"routing": ["ecmp", "spray"]}, "reference": {"topology": "star:hosts=16"},
              "table": {"rows": "routing"}}
    made = plans(values, *reference_runs(values, "lab.yaml"))
    assert len({plan.wire.rate_bps for plan in made}) == 1
    assert [plan.reference for plan in made] == [True] * 2 + [False] * 2


def test_a_rate_that_the_matrix_varies_is_each_runs_own() -> None:
    made = plans({**FILE, "matrix": {"rate": ["auto", "1mbit"], "mtu": [1500, 4000]}})
    rates = [plan.wire.rate_bps for plan in made]
    assert rates[2:] == [1e6, 1e6] and rates[0] < rates[1] and not any(plan.remarks for plan in made)


def test_one_rate_for_all_needs_no_word() -> None:
    made = plans({**FILE, "repeat": 2})
    assert made[0].wire == made[1].wire and not made[0].remarks


def test_what_a_run_is_of_the_matrix_stands_in_its_summary() -> None:
    made = plans({"topology": "star:hosts=4", "workload": "pattern:stride=1,bytes=10kB", "rate": "5mbit",
                  "matrix": {"cc": ["dctcp"]}, "repeat": 2})[1]
    brought = outcome(made)
    said = summarise(made, brought, NOTHING_TO_JUDGE, flows(made, brought))
    assert said["experiment"]["varied"] == {"cc": "dctcp", "seed": "2"} and not said["experiment"]["reference"]
    assert any("no queue marks packets" in note for note in said["notes"])


@pytest.mark.parametrize("more", [{"ecn": "30kB"}, {"classes": {"gold": {"ecn": "20kB"}}}, {"cc": "cubic"}])
def test_dctcp_that_is_marked_needs_no_word(more: dict) -> None:
    made, = plans({"topology": "star:hosts=4", "workload": "pattern:stride=1", "rate": "5mbit", "cc": "dctcp", **more})
    assert not made.notes
