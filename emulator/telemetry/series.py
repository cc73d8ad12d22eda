"""What the sampler saw, as arrays: one row a moment, one column a port."""
from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, replace

import numpy as np

from emulator.fabric.spec import Port
from emulator.telemetry.cpu import CoreSeries
from emulator.telemetry.qdisc import WORDS

_WRAP = 1 << 32


@dataclass(frozen=True)
class QueueSeries:
    """T samples of the queues of P ports.

    period_s: time between samples as planned. time_s[T]: when each began, CLOCK_MONOTONIC; read_s[T]:
    how long it took, so that a port's numbers are from somewhere in time_s .. time_s + read_s.
    lateness_s[T]: by how much it began after it was due. backlog_bytes[T, P], queued_packets[T, P]:
    waiting. sent_bytes[T, P], drops[T, P]: since the first sample. unshaped_s[P]: when the port was
    first seen without HTB, NaN if never.
    """

    ports: tuple[Port, ...]
    period_s: float
    time_s: np.ndarray
    read_s: np.ndarray
    lateness_s: np.ndarray
    backlog_bytes: np.ndarray
    queued_packets: np.ndarray
    sent_bytes: np.ndarray
    drops: np.ndarray
    unshaped_s: np.ndarray

    def between(self, start_s: float, end_s: float) -> QueueSeries:
        """Only the samples that began in start_s .. end_s (views, not copies)."""
        return self.rows(slice(*np.searchsorted(self.time_s, [start_s, np.nextafter(end_s, np.inf)])))

    def rows(self, which: slice | np.ndarray) -> QueueSeries:
        """Only these samples: a slice or a mask [T]."""
        return replace(self, **{name: getattr(self, name)[which] for name in _PER_SAMPLE})

    def without(self, names: Container[str]) -> QueueSeries:
        """Without the ports of these names."""
        kept = [column for column, port in enumerate(self.ports) if port.name not in names]
        columns = {name: getattr(self, name)[:, kept] for name in _PER_PORT}
        return replace(self, ports=tuple(self.ports[column] for column in kept),
                       unshaped_s=self.unshaped_s[kept], **columns)

    @property
    def rate_bps(self) -> np.ndarray:
        """Configured rate of each port, [P]."""
        return np.array([port.rate_bps for port in self.ports], float)


_PER_PORT = ("backlog_bytes", "queued_packets", "sent_bytes", "drops")
_PER_SAMPLE = ("time_s", "read_s", "lateness_s", *_PER_PORT)


@dataclass(frozen=True)
class Recording:
    """All that one sampler saw.

    series: of the switch ports and of the host ports, those that there are. cores: of the machine.
    asked_hz, rate_hz: the sampling rate of the switch ports as asked for and as chosen. cpu_share:
    cores that the sampler used, mean. ended_early: it stopped by itself, its memory being full at
    the deadline.
    """

    series: tuple[QueueSeries, ...]
    cores: CoreSeries
    asked_hz: float
    rate_hz: float
    cpu_share: float
    ended_early: bool


def running_total(counter: np.ndarray) -> np.ndarray:
    """What a 32-bit counter [T, P] has counted since its first sample, as int64.

    A step backwards by less than half its range is a counter that began anew (the qdisc was replaced)
    and counts from zero; else it wrapped. At 10 samples a second that holds up to 170 Gb/s.
    """
    values = counter.astype(np.int64)
    total = np.zeros_like(values)
    steps = np.diff(values, axis=0) % _WRAP
    restarted = steps >= _WRAP // 2
    steps[restarted] = values[1:][restarted]
    np.cumsum(steps, axis=0, out=total[1:])
    return total


def queue_series(ports: tuple[Port, ...], period_s: float, time_s: np.ndarray, read_s: np.ndarray,
                 lateness_s: np.ndarray, words: np.ndarray, unshaped_s: np.ndarray) -> QueueSeries:
    """From the sampler's raw words[T, SAMPLED, P] (see qdisc.WORDS)."""
    column = {word: words[:, row] for row, word in enumerate(WORDS[:words.shape[1]])}
    drops = running_total(column["drops"]) + running_total(column["clsact_drops"])
    return QueueSeries(ports, period_s, time_s, read_s, lateness_s, column["backlog"], column["queued"],
                       running_total(column["bytes"]), drops, unshaped_s)
