"""The tables of classes of service: of one run, and of several side by side."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table

from emulator.report.tables import percent, seconds, short_labels, table
from emulator.units import show_rate, show_size

Summary = Mapping[str, Any]


def classes(summary: Summary) -> Table | None:
    """What each class got; None where the run has none."""
    block = summary.get("classes")
    if not block:
        return None
    where = f" (queues at {block['port']}" if block["port"] else ""
    if block["contended_s"]:
        where += f"; shares of what it sent in the {block['contended_s']:.1f} s in which all of them sent"
    one_queue = "Kinds of traffic, without classes of service all in one queue"
    what = "Classes of service" if block["table"] else one_queue
    made = table(f"{what}{where}{')' if where else ''}", "class", "DSCP", "weight", "rate", "share",
                 "fair", "queue p99", "delay p99", "drops", "marked", "FCT p50", "FCT p99")
    _narrow(made)
    for row in block["by_class"]:
        if row["messages"] or row["queue_p99_bytes"] is not None:
            made.add_row(row["name"], str(row["dscp"]) if block["table"] else "-", _service(row), _rate(row),
                         percent(row["share"]), percent(row["fair_share"]), _size(row["queue_p99_bytes"]),
                         seconds(row["delay_p99_s"]), _count(row["dropped_packets"]),
                         _count(row["marked_packets"]), seconds(row["fct_p50_s"]), seconds(row["fct_p99_s"]))
    return made


def pauses(summary: Summary) -> list[str]:
    """A line for each lossless class."""
    rows = (summary.get("classes") or {}).get("by_class", ())
    return [f"Lossless {row['name']}: {row['pauses']} pauses, {seconds(row['paused_s'])} over all ports, the "
            f"longest {seconds(row['longest_pause_s'])}; {row['dropped_packets']} packets dropped"
            for row in rows if row["lossless"] and row["pauses"] is not None]


def classes_side_by_side(rows: Sequence[tuple[str, Summary]]) -> Table | None:
    """A line for each class of each run, classes together; None where fewer than two runs have any."""
    found = [(label, row) for label, summary in rows
             for row in (summary.get("classes") or {}).get("by_class", ()) if row["messages"]]
    if len({label for label, _ in found}) < 2:
        return None
    labels = [label for label, _ in rows]
    short = dict(zip(labels, short_labels(labels)))
    made = table("Classes of service, side by side", "class", "run", "weight", "rate", "share", "fair",
                 "queue p99", "delay p99", "FCT p50", "FCT p99")
    made.columns[1].justify = "left"
    _narrow(made)
    made.columns[1].no_wrap = False  # a run's label may be long
    for name in dict.fromkeys(row["name"] for _, row in found):
        for label, row in found:
            if row["name"] == name:
                made.add_row(name, short[label], _service(row), _rate(row), percent(row["share"]),
                             percent(row["fair_share"]), _size(row["queue_p99_bytes"]),
                             *(seconds(row[key]) for key in ("delay_p99_s", "fct_p50_s", "fct_p99_s")))
    return made


def _narrow(made: Table) -> None:
    """No cell in two lines: there are many, so they stand closer than in other tables."""
    made.padding = (0, 0)
    for column in made.columns:
        column.no_wrap = True


def _service(row: Mapping[str, Any]) -> str:
    return "strict" if row["strict"] else "-" if row["weight"] is None else str(row["weight"])


def _rate(row: Mapping[str, Any]) -> str:
    return "-" if row["throughput_bps"] is None else show_rate(row["throughput_bps"])


def _size(value: float | None) -> str:
    return "-" if value is None else show_size(value)


def _count(value: int | None) -> str:
    return "-" if value is None else str(value)
