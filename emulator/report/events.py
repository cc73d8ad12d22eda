"""The table of events: what happened, and what followed."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Group
from rich.table import Table

from emulator.report.tables import percent, seconds, table


def events(summary: Mapping[str, Any]) -> Group | None:
    """None for a run in which nothing was to happen."""
    block = summary.get("events")
    if not block:
        return None
    parts: list[Any] = [_table(block)] if block["happened"] else []
    parts += [f"Refused: {each['event']}: {each['refused']}" for each in block["happened"] if each["refused"]]
    parts += [f"Never came: {text}; the workload ended before" for text in block["missed"]]
    if block["counted"]:
        parts.append(f"Lost to events: {block['lost_packets']} packets "
                     f"({percent(block['lost_share'], 3)} of those that hosts sent)")
    return Group(*parts, "")


def _repaired(each: Mapping[str, Any]) -> str:
    """'20 ms (12 changes)'."""
    changes = each["changes"]
    words = "nothing to change" if changes == 0 else f"{changes} changes"
    return seconds(each["repaired_s"]) + ("" if changes is None else f" ({words})")


def _table(block: Mapping[str, Any]) -> Table:
    made = table("Events (times after the event)", "event", "applied at", "controller told", "local repair",
                 "controller repaired", "rate back", "lost", "sent again")
    for each in block["happened"]:
        lost = ", ".join(f"{packets} {cause}" for cause, packets in each["lost"].items()) or "0"
        made.add_row(each["event"], seconds(each["at_s"]), seconds(each["detected_s"]),
                     seconds(each["local_s"]), _repaired(each), seconds(each["rate_back_s"]),
                     lost if block["counted"] else "-", str(each["retransmitted"]))
    return made
