"""How late the relay was and what it lost, from its counters. Pure."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from emulator.asic.histogram import percentile, sojourn_bounds_ns
from emulator.asic.layout import SOJOURN_BINS

# struct stats of relay.c: sent on; no room, refused by the interface, larger than a slot; steps of the clock
_COUNTED = ("relayed", "lost_full", "lost_refused", "lost_cut", "clock_steps")
COUNTERS = np.dtype([(name, "<u8") for name in _COUNTED] + [("late", "<u8", SOJOURN_BINS)])
LOSSES = {"lost_full": "lost by the relay of --delay, which had no room for them",
          "lost_refused": "refused by the far end of their link when the relay of --delay sent them on",
          "lost_cut": "lost by the relay of --delay, being larger than the MTU"}


@dataclass(frozen=True)
class DelayRecord:
    """What the relay did while traffic ran.

    delay_s: of each link. late_p50_s, late_p99_s, late_max_s: how long after it was due a packet was sent
    on, within 3.2 % (None for no packets). clock_steps: how often somebody set the machine's clock.
    failure: a sentence where the relay's process ended.
    """

    delay_s: float
    relayed: int
    late_p50_s: float | None
    late_p99_s: float | None
    late_max_s: float | None
    losses: Mapping[str, int]
    clock_steps: int
    failure: str = ""


def record(delay_s: float, before: np.void, after: np.void, failure: str = "") -> DelayRecord:
    """From the relay's counters (COUNTERS) at two times."""
    late = after["late"] - before["late"]
    p50, p99, most = (None, None, None)
    if late.any():
        bounds = sojourn_bounds_ns()
        p50, p99 = (percentile(late, bounds, rank) / 1e9 for rank in (50, 99))
        most = float(bounds[int(np.flatnonzero(late)[-1]) + 1]) / 1e9

    def counted(name: str) -> int:
        return int(after[name] - before[name])

    losses = {what: counted(name) for name, what in LOSSES.items()}
    return DelayRecord(delay_s, counted("relayed"), p50, p99, most, losses, counted("clock_steps"), failure)
