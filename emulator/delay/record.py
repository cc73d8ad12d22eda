"""How late links with a delay delivered and what was lost on them, from counters. Pure."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from emulator.asic.histogram import percentile, sojourn_bounds_ns
from emulator.asic.layout import SOJOURN_BINS

_LATE = [("late", "<u8", SOJOURN_BINS)]
# struct stats of relay.c: sent on; no room, refused by the interface, larger than a slot; steps of the clock
_OF_RELAY = ("relayed", "lost_full", "lost_refused", "lost_cut", "clock_steps")
COUNTERS = np.dtype([(name, "<u8") for name in _OF_RELAY] + _LATE)
LOSSES = {"lost_full": "lost by the relay of --delay, which had no room for them",
          "lost_refused": "refused by the far end of their link when the relay of --delay sent them on",
          "lost_cut": "lost by the relay of --delay, being larger than the MTU"}

CROSSINGS = np.dtype([("arrived", "<u8"), *_LATE])
"""struct crossings of bpf/delay.bpf.c."""
_OF_NETEM = ("arrived", "sent", "queued", "dropped", "refused")
NETEM_COUNTERS = np.dtype([(name, "<i8") for name in _OF_NETEM] + _LATE)
"""Of all links: seen by the tc program; out of, in and refused by netem; refused by the far end."""
NETEM_LOSSES = {"lost_full": "dropped by the netem of --delay, which must have room for all",
                "lost_refused": "lost between netem and the far end of their link"}
REFUSED = {losses["lost_refused"] for losses in (LOSSES, NETEM_LOSSES)}
"""The losses that a port which an event took down explains."""

WAYS = {"relay": "the wire process", "netem": "netem"}


@dataclass(frozen=True)
class DelayRecord:
    """What was delayed while traffic ran.

    delay_s: of each link. relayed: packets that crossed a link. late_p50_s, late_p99_s, late_max_s: how long
    after it was due a packet went on, within 3.2 % (None for no packets). losses: sentence -> packets.
    clock_steps: how often somebody set the machine's clock, where that matters. failure: a sentence where
    links lost their delay. way: one of WAYS. timed: packets whose lateness was seen.
    """

    delay_s: float
    relayed: int
    late_p50_s: float | None
    late_p99_s: float | None
    late_max_s: float | None
    losses: Mapping[str, int]
    clock_steps: int
    failure: str = ""
    way: str = "relay"
    timed: int = 0


def record(delay_s: float, before: np.void, after: np.void, failure: str = "") -> DelayRecord:
    """From the relay's counters (COUNTERS) at two times."""
    late = after["late"] - before["late"]

    def counted(name: str) -> int:
        return int(after[name] - before[name])

    losses = {what: counted(name) for name, what in LOSSES.items()}
    return DelayRecord(delay_s, counted("relayed"), *_lateness(late), losses, counted("clock_steps"), failure,
                       timed=int(late.sum()))


def netem_record(delay_s: float, before: np.void, after: np.void, failure: str = "") -> DelayRecord:
    """From the counters of netem and of the programs around it (NETEM_COUNTERS) at two times.

    A packet that arrived and that netem neither sent, dropped nor holds was lost with a link that went
    down, whose qdisc the kernel then empties (dev_deactivate, net/sched/sch_generic.c).
    """
    late = after["late"] - before["late"]
    arrived, sent, queued, dropped, refused = (int(after[name] - before[name]) for name in _OF_NETEM)
    emptied = max(0, arrived - sent - queued - dropped)
    losses = {"lost_full": dropped, "lost_refused": refused + emptied}
    return DelayRecord(delay_s, sent - refused, *_lateness(late),
                       {what: losses[name] for name, what in NETEM_LOSSES.items()}, 0, failure, "netem",
                       int(late.sum()))


def _lateness(late: np.ndarray) -> tuple[float | None, float | None, float | None]:
    """(median, 99th percentile, most) in seconds of a histogram, None for an empty one."""
    if not late.any():
        return None, None, None
    bounds = sojourn_bounds_ns()
    p50, p99 = (percentile(late, bounds, rank) / 1e9 for rank in (50, 99))
    return p50, p99, float(bounds[int(np.flatnonzero(late)[-1]) + 1]) / 1e9
