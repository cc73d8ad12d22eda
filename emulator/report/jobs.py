"""Several jobs and their background, in tables."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table

from emulator.report.tables import label_without, number, percent, seconds, short_labels, table
from emulator.units import show_rate, show_size, show_time

Summary = Mapping[str, Any]
ALL = "all"
"""What --only says where every job runs."""


def jobs_table(summary: Summary) -> Table | None:
    """A line a job; None where there is only one."""
    rows = [job for job in summary["jobs"] if job["runs"]]
    if len(summary["jobs"]) < 2:
        return None
    made = table("Jobs (an iteration, alone on a perfect fabric: ideal)", "job", "ranks", "begun", "ended",
                 "iteration", "ideal", "of ideal", "slowdown", "fluid model", "busbw")
    for job in rows:
        made.add_row(job["name"], str(job["ranks"]), seconds(job["start_s"]), seconds(job["end_s"]),
                     seconds(job["completion_s"]), show_time(job["ideal_s"]), percent(job["efficiency"]),
                     "-" if job["slowdown"] is None else f"{job['slowdown']:.2f}",
                     percent(job["expected_efficiency"]),
                     "-" if job["busbw_bps"] is None else show_rate(job["busbw_bps"]))
    return made


def background(summary: Summary) -> list[Any]:
    """The background's flows by size, and a line of all; empty without one."""
    back = summary["background"]
    if back is None:
        return []
    made = table(f"Background: {back['name']}", "flows of", "ended", "bytes", "FCT mean", "FCT p50",
                 "FCT p99", "slowdown p50", "slowdown p99")
    for row in back["by_size"]:
        size = f"more than {show_size(row['above_bytes'])}" if row["up_to_bytes"] is None else (
            f"up to {show_size(row['up_to_bytes'])}")
        made.add_row(size, str(row["flows"]), show_size(row["bytes"]), seconds(row["fct_mean_s"]),
                     seconds(row["fct_p50_s"]), seconds(row["fct_p99_s"]), number(row["slowdown_p50"]),
                     number(row["slowdown_p99"]))
    return [made, f"Background: {back['begun']} flows began, {back['unfinished']} were under way when the "
                  f"jobs ended. Offered {percent(back['offered_load'])} of the links of its {back['hosts']} "
                  f"hosts (asked for {percent(back['load'], 0)}), carried to the end "
                  f"{percent(back['carried_load'])}."]


def compared(rows: Sequence[tuple[str, Summary]]) -> Table | None:
    """Each job's iteration in each run, its share of the ideal, and, where a run had it alone (--only), how
    much longer it took among the others. None without several jobs or runs."""
    if len(rows) < 2 or not any(len(s["jobs"]) > 1 or s["experiment"]["only"] != ALL for _, s in rows):
        return None
    labels = [label for label, _ in rows]
    short = dict(zip(labels, short_labels(labels)))
    made = table("Jobs over all runs", "run", "job", "iteration", "ideal", "of ideal", "fluid model",
                 "against its run alone")
    for label, s in rows:
        for job in s["jobs"]:
            if job["runs"]:
                made.add_row(short[label], job["name"], seconds(job["completion_s"]),
                             show_time(job["ideal_s"]), percent(job["efficiency"]), percent(job["expected_efficiency"]),
                             _against(alone_s(rows, s, job["name"]), job["completion_s"]))
    return made


def alone_s(rows: Sequence[tuple[str, Summary]], among: Summary, name: str) -> float | None:
    """What the job took in the run of the same settings that had it alone."""
    wanted = label_without(among, "only")
    for _, s in rows:
        if label_without(s, "only") == wanted and s["experiment"]["only"] == name:
            return next(job["completion_s"] for job in s["jobs"] if job["name"] == name)
    return None


def _against(alone: float | None, together: float | None) -> str:
    return f"{together / alone:.2f}" if alone and together else "-"
