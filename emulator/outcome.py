"""What a run brings back from the sandbox: raw records and counters, not yet judged or summarised."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from emulator.delay.record import DelayRecord
from emulator.events.record import EventsRecord
from emulator.fabric.pcap import Captured
from emulator.fabric.spec import Port
from emulator.memory import Memory
from emulator.programs.records import ProgramResult
from emulator.telemetry.counters import Snapshot
from emulator.telemetry.packets import PacketRecord
from emulator.telemetry.series import Recording
from traffic.records import ConnectionKey, EngineResult


@dataclass(frozen=True)
class Setup:
    """Wall seconds until the fabric stood, until every path was proven, and for taking it down; the memory
    that was in use once it stood (None where nobody looked).
    """

    up_s: float
    ready_s: float
    down_s: float = 0.0
    memory: Memory | None = None


@dataclass(frozen=True)
class Outcome:
    """One run, as it happened.

    started_s, ended_s: the replay (CLOCK_MONOTONIC). between: counters before and after it.
    paths, return_paths: the interfaces that send each connection's data and its acknowledgements, in order,
    by the switches' own account; empty where packets take several paths. shaped_bps: interface -> rate of its HTB class as read back at the end, None
    without one. link_faults: a sentence for each port that was not as configured at the end.
    offloads: interface -> offloads found on at the end. datapath_losses: what -> packets lost where
    no queue is. scheduling: the controller's books on what it moved, before the replay, and in the end those
    of each controller that there was; None where it moves nothing. packets: every queue packet by packet, where the switches can. switch_failure: a sentence where
    a switch's process died. delay: what delayed links (--delay) did, None without one. bit_errors:
    switch port -> packets of its link lost to bit errors. program: how a real program's ranks ended.
    group_packets: interface -> packets that select groups sent out of it, where only they do and no table
    changed. error: why the run broke off, as (exit status, sentence).
    """

    setup: Setup | None = None
    environment: Mapping[str, object] = field(default_factory=dict)
    ports: tuple[Port, ...] = ()
    engine: EngineResult | None = None
    started_s: float = 0.0
    ended_s: float = 0.0
    recording: Recording | None = None
    packets: PacketRecord | None = None
    delay: DelayRecord | None = None
    bit_errors: Mapping[str, int] = field(default_factory=dict)
    switch_failure: str = ""
    impossible_windows: int = 0
    between: Snapshot | None = None
    paths: Mapping[ConnectionKey, tuple[str, ...]] = field(default_factory=dict)
    return_paths: Mapping[ConnectionKey, tuple[str, ...]] = field(default_factory=dict)
    shaped_bps: Mapping[str, float | None] = field(default_factory=dict)
    link_faults: tuple[str, ...] = ()
    offloads: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    packet_ins: int = 0
    group_packets: Mapping[str, int] = field(default_factory=dict)
    datapath_losses: Mapping[str, int] = field(default_factory=dict)
    scheduling: tuple[Mapping[str, Any], tuple[Mapping[str, Any], ...]] | None = None
    captures: tuple[Captured, ...] = ()
    events: EventsRecord | None = None
    program: ProgramResult | None = None
    interrupted: bool = False
    error: tuple[int, str] | None = None
    log: str = ""

    @cached_property
    def port(self) -> Mapping[str, Port]:
        """Interface -> its port."""
        return {port.name: port for port in self.ports}

    def nodes(self, path: Sequence[str]) -> tuple[str, ...]:
        """From host to host what a packet crosses that the interfaces of `path` send; empty for no path."""
        return (*(self.port[name].node for name in path),
                *(self.port[self.port[name].peer].node for name in path[-1:]))
