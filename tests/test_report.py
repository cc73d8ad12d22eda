"""What a person reads: nothing cut, nothing interpreted, the verdict in words."""
from __future__ import annotations

import io
from dataclasses import replace

import pytest

from emulator import report
from emulator.report.tables import percent
from emulator.fidelity import judge
from emulator.observe import observe
from emulator.outcome import Outcome
from emulator.results import flows, summarise
from emulator.writing import NOTHING_TO_JUDGE
from tests.outcomes import outcome, plan


def text_of(renderable: object) -> str:
    out = io.StringIO()
    report.show(renderable, out)
    return out.getvalue()


def run(label: str = "", late: float = 1.0, broken: bool = False, **values: object) -> tuple:
    made = replace(plan(**values), label=label)
    brought = Outcome(error=(1, "it broke.")) if broken else outcome(made, late)
    listed = flows(made, brought)
    verdict = NOTHING_TO_JUDGE if broken else judge(observe(made, brought))
    return summarise(made, brought, verdict, listed), listed


def test_a_report_has_every_check_and_the_verdict() -> None:
    summary, listed = run()
    said = text_of(report.result(summary, listed, "/tmp/[out] :100:"))
    for check in summary["fidelity"]["checks"]:
        assert check["name"] in said
    assert f"Verdict: {'pass' if summary['fidelity']['verdict'] == 'pass' else 'FAIL'}" in said
    assert "Result bundle: /tmp/[out] :100:" in said
    assert "h1 to h3" in said and "h1 l1 s1 l2 h3" in said
    assert max(map(len, said.splitlines())) <= 120


def test_a_run_that_broke_off_is_reported_without_numbers() -> None:
    summary, listed = run(broken=True)
    said = text_of(report.result(summary, listed, "out"))
    assert "Verdict: FAIL" in said and "complete" in said


def test_stuck_ranks_have_a_sentence_each() -> None:
    made = plan()
    brought = outcome(made)
    brought = replace(brought, engine=replace(brought.engine, stuck=["rank 3 is stuck in step 7."]))
    summary = summarise(made, brought, NOTHING_TO_JUDGE, [])
    assert "Stuck: rank 3 is stuck in step 7." in text_of(report.result(summary, [], "out"))


def test_runs_are_compared_a_line_each_and_over_their_seeds() -> None:
    rows = []
    for routing, late in (("ecmp", 1.0), ("single", 2.0)):
        for seed in (1, 2, 3):
            label = f"routing={routing} seed={seed}"
            rows.append((label, run(label, late, routing=routing, seed=seed)[0]))
    rows.append(("routing=single seed=4", run("routing=single seed=4", broken=True, routing="single")[0]))
    lines = text_of(report.comparison(rows)).splitlines()
    assert sum("routing=" in line for line in lines) == 7
    table = report.spread(rows)
    assert table is not None
    said = text_of(table)
    assert "ecmp (3 seeds)" in said and "single (3 seeds)" in said
    assert "s1:" in said, "the connections of all seeds over each top switch"


def test_one_run_has_no_spread() -> None:
    assert report.spread([("", run()[0]), ("mtu=9000", run()[0])]) is None


@pytest.mark.parametrize("value, shown", [(None, "-"), (0.5, "50.0 %"), (1, "100.0 %")])
def test_percent(value: float | None, shown: str) -> None:
    assert percent(value) == shown
