"""The report's lines on what TCP saw and on the delay of links."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from emulator.delay.record import WAYS
from emulator.report.tables import percent
from emulator.units import show_time


def lines(summary: Mapping[str, Any]) -> list[str]:
    """One line on reordering; one on the delay, where links have one."""
    told = []
    t, delay = summary["transport"], summary["delay"]
    if t:
        told.append(f"Transport: {t['reordered_connections']} of {t['connections']} connections saw "
                    f"reordering ({t['reordering_events']} times); {t['spurious_retransmissions']} of "
                    f"{t['retransmitted_segments']} segments sent again had arrived before "
                    f"({percent(t['spurious_share'])} needless)")
    if delay and delay["late_p99_s"] is not None:
        median, p99, most = (show_time(delay[f"late_{which}_s"]) for which in ("p50", "p99", "max"))
        told.append(f"Delay of a link: {show_time(delay['delay_s'])}, kept within {median} (median), {p99} "
                    f"(p99), {most} (most) by {WAYS[delay['way']]}")
    return told
