"""The report of several runs: one line each, and what differs over their seeds."""
from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import mean, stdev
from typing import Any

from rich.table import Table

from emulator.report.tables import label_without, percent, seconds, short_labels, table
from emulator.units import show_rate, show_size, show_time

Summary = Mapping[str, Any]
FIGURES = (("completion_s", show_time), ("efficiency", percent), ("host_links_share", percent))
"""Whose spread over seeds is shown, and how."""


def comparison(rows: Sequence[tuple[str, Summary]]) -> Table:
    """One line a run, for matrix and repeat."""
    made = table("All runs", "run", "completion", "of ideal", "FCT p50", "FCT p99", "goodput",
                 "of host links", "queue p99", "drops", "verdict")
    for label, (_, s) in zip(short_labels([label for label, _ in rows]), rows):
        w, f, q = s["workload"], s["flows"], s["queues"]
        if not q:
            made.add_row(label, *["-"] * 8, s["fidelity"]["verdict"])
            continue
        goodput = "-" if w["goodput_bps"] is None else show_rate(w["goodput_bps"])
        made.add_row(label, seconds(w["completion_s"]), percent(w["efficiency"]), seconds(f["fct_p50_s"]),
                     seconds(f["fct_p99_s"]), goodput, percent(w["host_links_share"]),
                     show_size(q["p99_bytes"] or 0), str(s["loss"]["dropped_packets"]),
                     s["fidelity"]["verdict"])
    return made


def spread(rows: Sequence[tuple[str, Summary]]) -> Table | None:
    """Mean, standard deviation, least and most over the seeds of runs that differ in nothing else; and how
    many connections all of them together put over each top switch. None where no two runs do.
    """
    alike: dict[str, list[Summary]] = {}
    for _, summary in rows:
        alike.setdefault(label_without(summary, "seed"), []).append(summary)
    made = table("Over the seeds", "runs", "figure", "mean", "sd", "least", "most")
    for label, summaries in alike.items():
        for key, show_value in FIGURES:
            values = [s["workload"][key] for s in summaries if s["workload"][key] is not None]
            if len(values) > 1:
                figures = (mean(values), stdev(values), min(values), max(values))
                made.add_row(f"{label} ({len(values)} seeds)".strip(), key, *map(show_value, figures))
        over: Counter[str] = Counter()
        for s in summaries:
            over.update(s["links"]["connections_by_top_switch"] if s["links"] else {})
        if len(summaries) > 1 and over:
            made.add_row(label, "connections over " + " ".join(f"{name}:{n}" for name, n in over.items()))
    return made if made.row_count else None
