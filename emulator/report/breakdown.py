"""The parts of a training iteration, and the iteration on the real cluster."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from statistics import mean
from typing import Any

from rich.table import Table

from emulator.breakdown import Breakdown
from emulator.report.tables import percent, seconds, short_labels, table
from emulator.units import show_rate, show_size, show_time

Summary = Mapping[str, Any]
EXPOSED = "exposed communication, "


def breakdown(summary: Summary) -> list[Table]:
    """The blocks of a job; none where nothing was computed."""
    parts, ideal = summary["workload"].get("breakdown"), summary["workload"].get("ideal_breakdown")
    if not parts:
        return []
    made = [_parts(parts[0], ideal, summary["workload"]["iterations"][0]["time_s"])]
    projected = summary["projected"]
    if projected and "mfu" in projected and projected["completion_s"]:
        made.append(_projected(projected, ideal))
    return made


def breakdowns(rows: Sequence[tuple[str, Summary]]) -> Table | None:
    """One line a run that computes: its mean iteration in parts, in the real cluster's seconds where it
    stands for one. None where no run does, or only one."""
    made = table("Iterations of all runs", "run", "time", "on the real cluster", "computing",
                 "exposed communication", "network share", "bubble", "MFU")
    for label, (_, s) in zip(short_labels([label for label, _ in rows]), rows):
        iterations, parts = s["workload"]["iterations"], s["workload"].get("breakdown")
        projected = s["projected"] or {}
        if not parts:
            continue
        mean_of = {key: mean(i[key] for i in iterations) for key in iterations[0]}
        bubbles = [part["bubble"] for part in parts
                   if part["bubble"] is not None and part["ideal_bubble"] != 0.0]
        made.add_row(label, show_time(mean_of["time_s"]), seconds(projected.get("completion_s")),
                     show_time(mean_of["compute_s"]), show_time(mean_of["exposed_comm_s"]),
                     percent(mean_of["network_share"]), percent(mean(bubbles) if bubbles else None),
                     percent(projected.get("mfu")))
    return made if made.row_count > 1 else None


def planned(part: Breakdown | None, time_s: float, ideal_bubble: float | None) -> list[Table]:
    """The same for an iteration that has not run, on a perfect fabric; none where nothing is computed."""
    if part is None:
        return []
    made = table("Where an ideal iteration goes (mean over ranks; classes may overlap)", "", "time", "share")
    for what, value in _rows(asdict(part)):
        made.add_row(what, show_time(value), percent(value / time_s))
    if part.bubble is not None and ideal_bubble != 0.0:  # one stage has none
        made.add_row(_bubble(ideal_bubble), "", percent(part.bubble))
    return [made]


def _parts(part: Mapping[str, Any], ideal: Mapping[str, Any], time_s: float) -> Table:
    made = table("Where the first measured iteration goes (mean over ranks; classes may overlap)", "",
                 "measured", "share", "on a perfect fabric", "sent by all ranks")
    perfect = dict(_rows(ideal))
    for what, value in _rows(part):
        name = what.removeprefix(EXPOSED)
        sent = show_size(part["bytes_sent"][name]) if what.startswith(EXPOSED) else ""
        made.add_row(what, show_time(value), percent(value / time_s), show_time(perfect.get(what, 0.0)), sent)
    if part["bubble"] is not None and part["ideal_bubble"] != 0.0:
        made.add_row(_bubble(part["ideal_bubble"]), "", percent(part["bubble"]), percent(ideal["bubble"]), "")
    return made


def _rows(part: Mapping[str, Any]) -> list[tuple[str, float]]:
    """(what, seconds) of a breakdown, in the order of the report."""
    return [*((f"computing, {name}", value) for name, value in part["compute_s"].items()),
            *((f"{EXPOSED}{name}", value) for name, value in part["exposed_s"].items()),
            ("waiting for other ranks", part["idle_s"])]


def _bubble(ideal: float | None) -> str:
    without = "" if ideal is None else f"; {percent(ideal)} if transfers took no time"
    return f"pipeline bubble, of the time to the last backward pass{without}"


def _projected(p: Mapping[str, Any], ideal: Mapping[str, Any]) -> Table:
    made = table(f"On the real cluster ({show_rate(p['rate_bps'])} network cards): rates x "
                 f"{p['dilation']:.6g}, bytes x {p['byte_scale']:.6g}, times / {p['time_scale']:.4g}", "",
                 "measured", "ideal")
    made.add_row("iteration", show_time(p["completion_s"]), show_time(p["ideal_s"]))
    perfect = dict(_rows(ideal))
    for what, value in _rows(p):
        made.add_row(f"  {what}", show_time(value), show_time(perfect.get(what, 0.0) / p["time_scale"]))
    made.add_row("tokens a second", f"{p['tokens_per_s']:.4g}", "")
    made.add_row("model FLOPs utilisation", percent(p["mfu"]), percent(p["ideal_mfu"]))
    return made
