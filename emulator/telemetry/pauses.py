"""How often classes of ports were paused (priority flow control), as plain data."""
from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PortPauses:
    """One class of one port: how often and for how long it was held back, and how many frames that only wake
    a qdisc (gate.KICK) it sent on resuming. A pause that still stands counts up to the end; one that began
    before is not among `pauses`."""

    port: str
    traffic_class: int
    pauses: int
    paused_s: float
    longest_s: float
    kicks: int


@dataclass(frozen=True)
class PauseRecord:
    """All pauses of a run. late_p99_s, late_max_s: lateness of the watcher's looks at the queues, which are
    due every period_s: what came meanwhile had to fit the headroom."""

    ports: tuple[PortPauses, ...]
    period_s: float
    late_p99_s: float
    late_max_s: float
