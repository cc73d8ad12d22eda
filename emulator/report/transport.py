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
        told.append(f"Transport: {t['reordered_connections']} of {t['connections']} connections saw reordering "
                    f"({t['reordering_events']} times); {t['spurious_retransmissions']} of "
                    f"{t['retransmitted_segments']} segments sent again had arrived before "
                    f"({percent(t['spurious_share'])} needless)")
    if delay and delay["late_p99_s"] is not None:
        told.append(f"Delay of a link: {show_time(delay['delay_s'])}, kept within {show_time(delay['late_p50_s'])} "
                    f"(median), {show_time(delay['late_p99_s'])} (p99), {show_time(delay['late_max_s'])} (most) by "
                    f"{WAYS[delay['way']]}")
    return told
