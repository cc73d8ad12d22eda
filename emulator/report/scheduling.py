"""The report's lines on global scheduling."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from emulator.units import show_time


def scheduling(summary: Mapping[str, Any]) -> list[str]:
    """What the controller moved and whether it wavered; nothing where it moves nothing."""
    r = summary.get("routing")
    if r is None:
        return []
    first = min((move["time_s"] for move in r["moves"] if move["what"] == "placed"), default=None)
    after = "" if first is None else f", the first {show_time(max(0.0, first))} after the start"
    return [f"Global scheduling ({r['scheduler']}, every {show_time(r['period_s'])}): up to "
            f"{r['elephants_most']} elephants; {r['placed']} pairs given a path{after}; {r['moved']} moved "
            f"to another ({r['moves_per_s']:.2g} a second), {r['moved_back']} of them back; {r['released']} "
            "released."]
