"""What a run brings back from the sandbox: raw records and counters, not yet judged or summarised."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from emulator.fabric.spec import Port
from emulator.telemetry.counters import Snapshot
from emulator.telemetry.series import Recording
from traffic.records import ConnectionKey, EngineResult


@dataclass(frozen=True)
class Setup:
    """Wall seconds until the fabric stood, until every path was proven, and for taking it down."""

    up_s: float
    ready_s: float
    down_s: float = 0.0


@dataclass(frozen=True)
class Outcome:
    """One run, as it happened.

    started_s, ended_s: the replay (CLOCK_MONOTONIC). between: counters before and after it.
    paths: the nodes that each connection crosses, by the switches' own account. shaping, offloads:
    a sentence for each port that was not (any more) as configured at the end. unread_packets: lost
    inside switches. error: why the run broke off, as (exit status, sentence).
    """

    setup: Setup | None = None
    environment: Mapping[str, object] = field(default_factory=dict)
    ports: tuple[Port, ...] = ()
    engine: EngineResult | None = None
    started_s: float = 0.0
    ended_s: float = 0.0
    recording: Recording | None = None
    between: Snapshot | None = None
    paths: Mapping[ConnectionKey, tuple[str, ...]] = field(default_factory=dict)
    shaping: tuple[str, ...] = ()
    offloads: tuple[str, ...] = ()
    packet_ins: int = 0
    lost_in_switches: int = 0
    interrupted: bool = False
    error: tuple[int, str] | None = None
    log: str = ""
