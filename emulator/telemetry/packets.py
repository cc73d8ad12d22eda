"""What a switch that sees every packet recorded of its queues (the bpf switch), as plain data."""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from emulator.telemetry.pauses import PauseRecord


@dataclass(frozen=True)
class QueueRecord:
    """One egress queue (a class of a port) over the measured window.

    Depths are weighted by time, delays are sojourn times of packets, from arrival to leaving for the
    wire (NaN where none left). dropped_packets: tail drops. lost_packets: bit errors. ect_packets could
    be marked, marked_packets were. limit_bytes: what it may hold.
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
    sent_bytes: int
    limit_bytes: int


@dataclass(frozen=True)
class GapRecord:
    """Gaps between departures of a backlogged port, as |gap / frame time - 1|, behind full packets."""

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
    pauses: only where a class is lossless.
    """

    queues: tuple[QueueRecord, ...]
    gaps: tuple[GapRecord, ...]
    time_s: np.ndarray
    queue: np.ndarray
    depth_bytes: np.ndarray
    lost_samples: int
    sent: SentSeries | None = None
    pauses: PauseRecord | None = None

    def _depths(self, column: int) -> tuple[np.ndarray, np.ndarray]:
        mine = self.queue == column
        return self.time_s[mine], self.depth_bytes[mine].astype(float)

    def busy_share(self, column: int, start_s: float, end_s: float) -> float:
        """The part of the time in which queue `column` held packets."""
        times, depths = self._depths(column)
        at = np.concatenate(([start_s], times.clip(start_s, end_s), [end_s]))
        held = np.concatenate(([0.0], depths)) > 0
        return float(np.diff(at)[held].sum()) / max(end_s - start_s, 1e-9)

    def mean_wait_s(self, column: int, start_s: float, end_s: float) -> float:
        """How long a packet of queue `column` waits, averaged over time, by Little's law: its mean depth over
        what it sent, in each second, because its rate changes with what the other classes leave. 0 if it
        sent nothing; NaN if it was starved so that packets waited for longer than that second.
        """
        if self.sent is None:
            return 0.0
        within = (self.sent.time_s >= start_s) & (self.sent.time_s <= end_s)
        moments, sent = self.sent.time_s[within], self.sent.sent_bytes[within, column]
        times, depths = self._depths(column)
        if len(moments) < 2 or len(times) < 2:
            return 0.0
        area = np.concatenate(([0.0], np.cumsum(depths[:-1] * np.diff(times))))
        held = np.interp(moments, times, area)
        step = max(1, min(len(moments) - 1, round(1.0 / float(np.diff(moments).mean()))))
        passed, waited = sent[step:] - sent[:-step], held[step:] - held[:-step]
        served = passed > 0
        waits_s = waited[served] / passed[served]
        if (waits_s > (moments[step:] - moments[:-step])[served]).any():
            return float("nan")
        return float(waits_s.mean()) if served.any() else 0.0
