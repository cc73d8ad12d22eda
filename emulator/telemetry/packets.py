"""What a switch that sees every packet recorded of its queues (the bpf switch), as plain data."""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class QueueRecord:
    """One egress queue (a class of a port) over the measured window.

    Depths are weighted by time, delays are sojourn times of packets, from arrival to leaving for the
    wire (NaN where none left). limit_bytes: what it may hold. dropped_packets: tail drops. lost_packets: bit errors. ect_packets could
    be marked, marked_packets were.
    """

    port: str
    traffic_class: int
    mean_bytes: float
    p50_bytes: float
    p95_bytes: float
    p99_bytes: float
    max_bytes: int
    delay_p50_s: float
    delay_p99_s: float
    delay_max_s: float
    arrived_packets: int
    sent_packets: int
    dropped_packets: int
    lost_packets: int
    ect_packets: int
    marked_packets: int
    sent_bytes: int = 0
    limit_bytes: int = 0


@dataclass(frozen=True)
class GapRecord:
    """Gaps between the departures of a port while it was backlogged, as |gap / frame time - 1|, behind full packets."""

    port: str
    gaps: int
    p90: float
    p99: float


@dataclass(frozen=True)
class SentSeries:
    """What each queue had sent since the start of the record: time_s[T] (CLOCK_MONOTONIC), sent_bytes[T, Q]
    in the order of the record's queues."""

    time_s: np.ndarray
    sent_bytes: np.ndarray


@dataclass(frozen=True)
class PacketRecord:
    """All queues and ports of the switches, and their depth whenever it changed.

    time_s[N] (CLOCK_MONOTONIC), queue[N] (index into `queues`), depth_bytes[N], in order of time;
    lost_samples: overwritten before they were read. sent: only where ports have several classes.
    """

    queues: tuple[QueueRecord, ...]
    gaps: tuple[GapRecord, ...]
    time_s: np.ndarray
    queue: np.ndarray
    depth_bytes: np.ndarray
    lost_samples: int
    sent: SentSeries | None = None
