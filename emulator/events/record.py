"""What the conductor brings back of the events: plain data, times of CLOCK_MONOTONIC in seconds."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Tally:
    """Counted since the start of the replay.

    lost: cause -> packets; retransmitted: segments that all connections sent again.
    """

    lost: Mapping[str, int] = field(default_factory=dict)
    retransmitted: int = 0


@dataclass(frozen=True)
class Happening:
    """One event as it happened.

    due_s, applied_s, done_s: when it should happen, when the first thing was done for it, when the last.
    tally: as it stood just before. avoided_s: when the first packet that was meant for a port that this
    event killed took another port; avoided_packets: how many did until the next event of that port; None
    where the switches do not tell. refused: why it could not be done, else ''.
    """

    text: str
    kind: str
    target: str
    up: bool
    due_s: float
    applied_s: float
    done_s: float
    tally: Tally
    ports: tuple[str, ...] = ()
    avoided_s: float | None = None
    avoided_packets: int | None = None
    refused: str = ""


@dataclass(frozen=True)
class EventsRecord:
    """All events of a run.

    end: the tally after the traffic. missed: events whose step never came, as written. port_events,
    repairs, adoptions: as the books of all controllers have them (controllers/process.py). interrupted:
    interfaces that had no link at some time, reshaped: whose rate was changed,
    altered_at_end: those that are not as they were built when the run ends. lost_at: interface -> packets
    that its link's failure took: waiting in the queue, or sent to it while it was dead; only where the
    switches count arrivals.
    """

    happenings: tuple[Happening, ...]
    end: Tally
    missed: tuple[str, ...] = ()
    port_events: tuple[Mapping[str, object], ...] = ()
    repairs: tuple[Mapping[str, object], ...] = ()
    adoptions: tuple[Mapping[str, object], ...] = ()
    interrupted: frozenset[str] = frozenset()
    reshaped: frozenset[str] = frozenset()
    altered_at_end: frozenset[str] = frozenset()
    lost_at: Mapping[str, int] = field(default_factory=dict)
