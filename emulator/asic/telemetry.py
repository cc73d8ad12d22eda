"""The queues of bpf switches, packet by packet, read from memory that the programs write.

`QueueTelemetry` takes a snapshot at the start of a measurement, drains depth samples while it runs and
gives totals and series at its end. Departures and tail drops are the kernel's own counters; arrivals,
marks, losses, sojourn times and depth are the programs'. Times are CLOCK_MONOTONIC.
"""
from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from emulator.asic.chip import Chip, PortSite
from emulator.asic.histogram import gap_percentile, sojourn_percentile
from emulator.asic.layout import CAUSES, DEPARTURES, SAMPLE

_SETTLE_S = 0.001  # a program that took its place in the ring has written it long before
_COUNTED = ("arrived_packets", "arrived_bytes", "ect_packets", "marked_packets", "lost_packets",
            "oversize_packets", "sent_packets", "sent_bytes", "dropped_packets", "chained_events")


@dataclass(frozen=True)
class QueueKey:
    """One egress queue: a class of a port."""

    port: PortSite
    traffic_class: int


@dataclass(frozen=True)
class QueueTotals:
    """What one queue did between start and end.

    dropped_packets: tail drops (the kernel's count). lost_packets: bit errors on the way out.
    held_bytes: in the queue at the end. The sojourn time is from the arrival of a packet to its leaving
    for the wire, of the timed_packets (a tracepoint program is now and then skipped, so they can be a
    little fewer than sent_packets); percentiles are within 3.2 %, NaN where nothing left.
    depth_mean_bytes is the time average.
    """

    key: QueueKey
    arrived_packets: int
    arrived_bytes: int
    ect_packets: int
    marked_packets: int
    lost_packets: int
    oversize_packets: int
    sent_packets: int
    sent_bytes: int
    dropped_packets: int
    chained_events: int
    held_bytes: int
    depth_mean_bytes: float
    depth_max_bytes: int
    timed_packets: int
    sojourn_mean_s: float
    sojourn_p50_s: float
    sojourn_p99_s: float
    sojourn_max_s: float


@dataclass(frozen=True)
class PortTotals:
    """What one port did between start and end.

    refused: cause -> packets dropped on arrival at the switch (layout.CAUSES). Gaps between departures
    of a backlogged port after packets of half a full frame and more, as |gap / ideal - 1|: how many,
    and their percentiles (NaN if none).
    """

    port: PortSite
    refused: dict[str, int]
    packet_ins_lost: int
    gaps: int
    gap_deviation_p90: float
    gap_deviation_p99: float


@dataclass(frozen=True)
class DepthSamples:
    """Depth of every queue when it changed, at most one sample in 250 us a queue, in order of time.

    time_s[N], queue[N] (index into `keys`), depth_bytes[N]. lost: samples that were overwritten before
    they were read, which makes the series worthless where it is not 0.
    """

    keys: tuple[QueueKey, ...]
    start_s: float
    end_s: float
    time_s: np.ndarray
    queue: np.ndarray
    depth_bytes: np.ndarray
    lost: int

    @cached_property
    def _sorted(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Times and depths queue by queue, and where each queue's begin, [Q + 1]."""
        order = np.argsort(self.queue, kind="stable")
        starts = np.searchsorted(self.queue[order], np.arange(len(self.keys) + 1))
        return self.time_s[order], self.depth_bytes[order], starts

    def _of(self, column: int) -> tuple[np.ndarray, np.ndarray]:
        times, depths, starts = self._sorted
        mine = slice(starts[column], starts[column + 1])
        return times[mine], depths[mine]

    def on_grid(self, period_s: float) -> tuple[np.ndarray, np.ndarray]:
        """(time_s[T], backlog_bytes[T, Q]) at a fixed period, as a polling sampler would have seen it."""
        times = np.arange(self.start_s, self.end_s, period_s)
        grid = np.zeros((len(times), len(self.keys)), np.uint32)
        for column in range(len(self.keys)):
            sampled_s, depths = self._of(column)
            last = np.searchsorted(sampled_s, times, side="right") - 1
            grid[last >= 0, column] = depths[last[last >= 0]]
        return times, grid

    def percentiles(self, column: int, percents: tuple[float, ...]) -> list[float]:
        """Time-weighted percentiles of the depth of one queue, in bytes."""
        sampled_s, depths = self._of(column)
        times = np.concatenate(([self.start_s], sampled_s, [self.end_s]))
        depths = np.concatenate(([0], depths))
        order = np.argsort(depths, kind="stable")
        weight = np.cumsum(np.diff(times).clip(0)[order])
        if not weight[-1] > 0:
            return [0.0] * len(percents)
        places = np.searchsorted(weight, np.array(percents) / 100 * weight[-1]).clip(0, len(order) - 1)
        return [float(depth) for depth in depths[order][places]]


class QueueTelemetry:
    """One measurement over a chip that was installed with telemetry; `start`, `drain` often, `finish`."""

    def __init__(self, chip: Chip) -> None:
        self.keys = tuple(QueueKey(port, number) for port in chip.site.values()
                          for number in range(chip.classes))
        self._chip = chip
        self._rows = np.array([key.port.ifindex * chip.classes + key.traffic_class for key in self.keys])
        self._ports = np.array(list(chip.site))
        self._samples = chip.maps["samples"].array(SAMPLE)
        self._head = chip.maps["sample_head"].array(np.dtype("<u8"))
        self._departures = chip.maps["departures"].array(DEPARTURES)
        self._column = np.full(int(self._rows.max()) + 1, -1)
        self._column[self._rows] = np.arange(len(self._rows))

    def start(self) -> None:
        """Begin: everything before is not counted."""
        self._observe()
        self._next, self._lost, self._chunks = int(self._head[0]), 0, []
        for name in ("sojourn_max_ns", "depth_max_bytes"):
            self._chip.queues[name][self._rows] = 0
        self._start_s = time.monotonic()
        self._queues, self._drops, self._gaps = self._read()

    def sent_bytes(self) -> np.ndarray:
        """Bytes that each queue of `keys` has sent since `start`, by the kernel's count now, [Q]."""
        self._observe()
        now, before = self._chip.queues["sent_bytes"][self._rows], self._queues["sent_bytes"]
        return now.astype(np.int64) - before.astype(np.int64)

    def drain(self) -> None:
        """Take the depth samples written since the last call; call it several times a second."""
        head = int(self._head[0])
        size = len(self._samples)
        time.sleep(_SETTLE_S)
        if head - self._next > size:
            self._lost += head - size - self._next
            self._next = head - size
        if head > self._next:
            self._chunks.append(self._samples[np.arange(self._next, head) % size])
        self._next = head

    def finish(self) -> tuple[list[QueueTotals], list[PortTotals], DepthSamples]:
        """End: totals of every queue and port since `start`, and the depths in between."""
        end_s = time.monotonic()
        self._observe()
        queues, drops, gaps = self._read()
        self.drain()
        totals = [_queue_totals(key, now, before, self._start_s * 1e9, end_s * 1e9)
                  for key, now, before in zip(self.keys, queues, self._queues, strict=True)]
        ports = [_port_totals(self._chip.site[int(ifindex)], *rows)
                 for ifindex, *rows in zip(self._ports, drops, self._drops, gaps, self._gaps, strict=True)]
        return totals, ports, self._depths(queues, end_s)

    def _observe(self) -> None:
        for ifindex in self._ports:
            self._chip.observe(int(ifindex))

    def _read(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return (self._chip.queues[self._rows], self._chip.drops[self._ports], self._departures[self._ports])

    def _depths(self, queues: np.ndarray, end_s: float) -> DepthSamples:
        """The drained samples, with each queue's depth at the start before them and at the end after.

        A queue that has been idle since its last change may have passed over that one (bpf/queues.h), so it
        is taken from the queue itself.
        """
        parts = [np.zeros(0, SAMPLE), *self._chunks]
        for at_ns, depth_bytes in ((self._start_s * 1e9, self._queues["held_bytes"]),
                                   (queues["changed_ns"], queues["depth_bytes"]),
                                   (end_s * 1e9, queues["held_bytes"])):
            edge = np.zeros(len(self._rows), SAMPLE)
            edge["time_ns"], edge["queue"], edge["depth_bytes"] = at_ns, self._rows, depth_bytes
            parts.append(edge)
        found = np.concatenate(parts)
        found = found[(found["time_ns"] >= int(self._start_s * 1e9)) & (found["time_ns"] <= int(end_s * 1e9))]
        found = found[np.argsort(found["time_ns"], kind="stable")]
        return DepthSamples(self.keys, self._start_s, end_s, found["time_ns"] / 1e9,
                            self._column[found["queue"]], found["depth_bytes"].copy(), self._lost)


def _queue_totals(key: QueueKey, now: np.void, before: np.void, start_ns: float,
                  end_ns: float) -> QueueTotals:
    counts = {name: int(now[name]) - int(before[name]) for name in _COUNTED}
    bins = now["sojourn"].astype(np.int64) - before["sojourn"]
    timed = int(bins.sum())
    sojourn_ns = int(now["sojourn_sum_ns"]) - int(before["sojourn_sum_ns"])
    area = _area(now, end_ns) - _area(before, start_ns)
    return QueueTotals(
        key, **counts, held_bytes=int(now["held_bytes"]), depth_mean_bytes=area / max(end_ns - start_ns, 1.0),
        depth_max_bytes=int(now["depth_max_bytes"]), timed_packets=timed,
        sojourn_mean_s=sojourn_ns / timed / 1e9 if timed else float("nan"),
        sojourn_p50_s=sojourn_percentile(bins, 50), sojourn_p99_s=sojourn_percentile(bins, 99),
        sojourn_max_s=int(now["sojourn_max_ns"]) / 1e9 if timed else float("nan"))


def _area(queue: np.void, at_ns: float) -> float:
    """Integral of the depth up to a moment: as of the last change, and what it has held since."""
    held_ns = max(at_ns - int(queue["changed_ns"]), 0.0) if queue["changed_ns"] else 0.0
    return int(queue["depth_byte_ns"]) + int(queue["depth_bytes"]) * held_ns


def _port_totals(port: PortSite, drops: np.void, drops_before: np.void, gaps: np.void,
                 gaps_before: np.void) -> PortTotals:
    refused = drops["packets"].astype(np.int64) - drops_before["packets"].astype(np.int64)
    bins = gaps["gap_deviation"].astype(np.int64) - gaps_before["gap_deviation"]
    return PortTotals(port, dict(zip(CAUSES, map(int, refused), strict=True)),
                      int(drops["packet_ins_lost"]) - int(drops_before["packet_ins_lost"]), int(bins.sum()),
                      gap_percentile(bins, 90), gap_percentile(bins, 99))
