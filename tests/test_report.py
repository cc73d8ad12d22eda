"""What a person reads: nothing cut, nothing interpreted, the verdict in words."""
from __future__ import annotations

import io
from dataclasses import replace

import pytest

from emulator import report
from emulator.matrix import label_of
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


def run(late: float = 1.0, broken: bool = False, varied: dict[str, str] | None = None, **values: object) -> tuple:
    made = replace(plan(**values), varied=varied or {})
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
            varied = {"routing": routing, "seed": str(seed)}
            rows.append((label_of(varied, False), run(late, varied=varied, routing=routing, seed=seed)[0]))
    rows.append(("routing=single seed=4", run(broken=True, varied={"routing": "single", "seed": "4"},
                                              routing="single")[0]))
    lines = text_of(report.comparison(rows)).splitlines()
    assert sum("routing=" in line for line in lines) == 7
    table = report.spread(rows)
    assert table is not None
    said = text_of(table)
    assert "ecmp (3 seeds)" in said and "single (3 seeds)" in said
    assert "s1:" in said, "the connections of all seeds over each top switch"


def test_one_run_has_no_spread() -> None:
    rows = [("mtu=1500", run(varied={"mtu": "1500"})[0]), ("mtu=9000", run(varied={"mtu": "9000"})[0])]
    assert report.spread(rows) is None


def test_seeds_are_gathered_by_what_varies_not_by_words_of_the_label() -> None:
    rows = []
    for name, late in (("/tmp/my a.goal", 1.0), ("/tmp/my b.goal", 2.0)):
        for seed in ("1", "2"):
            varied = {"workload": name, "seed": seed}
            rows.append((label_of(varied, False), run(late, varied=varied)[0]))
    said = text_of(report.spread(rows))
    assert said.count("(2 seeds)") == 2 * 3 and "4 seeds" not in said


def test_jobs_are_compared_only_where_there_are_several_or_one_ran_alone() -> None:
    rows = [(f"mtu={mtu}", run(varied={"mtu": str(mtu)})[0]) for mtu in (1500, 4000)]
    assert report.compared(rows) is None
    assert report.compared([*rows, ("only=a", {**rows[0][1], "experiment": {
        **rows[0][1]["experiment"], "only": "a"}})]) is not None


@pytest.mark.parametrize("value, shown", [(None, "-"), (0.5, "50.0 %"), (1, "100.0 %")])
def test_percent(value: float | None, shown: str) -> None:
    assert percent(value) == shown
