"""A recording of all queues of the bpf switches: a thread that drains the depth samples."""
from __future__ import annotations

import threading
import time

import numpy as np

from emulator.asic.chip import Chip
from emulator.asic.pauserprocess import Pauser
from emulator.asic.telemetry import DepthSamples, PortTotals, QueueTelemetry, QueueTotals
from emulator.telemetry.packets import GapRecord, PacketRecord, QueueRecord, SentSeries

DRAIN_S = 0.2


class Recorder:
    """Started at once; `stop` gives the record."""

    def __init__(self, chip: Chip, pauser: Pauser | None = None) -> None:
        self._pauser, self._pauses = pauser, pauser.read() if pauser else None
        self._chip, self._telemetry = chip, QueueTelemetry(chip)
        self._times_s: list[float] = []
        self._sent: list[np.ndarray] = []
        self._telemetry.start()
        self._ended = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._drain, name="depth samples", daemon=True)
        self._thread.start()

    def _drain(self) -> None:
        try:
            while not self._ended.wait(DRAIN_S):
                self._telemetry.drain()
                self._note_sent()
        except Exception as failure:  # raised again by stop, in the thread that can report it
            self._failure = failure

    def _note_sent(self) -> None:
        """Who was served when, where there is a choice."""
        if self._chip.classes > 1:
            self._times_s.append(time.monotonic())
            self._sent.append(self._telemetry.sent_bytes())

    def stop(self) -> PacketRecord:
        """End the recording; what was seen since the start."""
        self._ended.set()
        self._thread.join()
        if self._failure:
            raise self._failure
        self._note_sent()
        totals, ports, depths = self._telemetry.finish()
        sent = SentSeries(np.array(self._times_s), np.array(self._sent)) if self._sent else None
        return PacketRecord(
            tuple(_queue(each, self._limit(each), column, depths) for column, each in enumerate(totals)),
            tuple(_gaps(each) for each in ports), depths.time_s, depths.queue, depths.depth_bytes,
            depths.lost, sent, self._pauser.record(self._pauses) if self._pauser else None)

    def _limit(self, each: QueueTotals) -> int:
        return int(self._chip.ports[each.key.port.ifindex]["limit_bytes"][each.key.traffic_class])


def _queue(each: QueueTotals, limit_bytes: int, column: int, depths: DepthSamples) -> QueueRecord:
    p50, p95, p99 = depths.percentiles(column, (50, 95, 99))
    return QueueRecord(
        each.key.port.name, each.key.traffic_class,
        each.depth_mean_bytes, p50, p95, p99, each.depth_max_bytes,
        each.sojourn_p50_s, each.sojourn_p99_s, each.sojourn_max_s, each.arrived_packets, each.sent_packets,
        each.dropped_packets, each.lost_packets, each.ect_packets, each.marked_packets, each.sent_bytes,
        limit_bytes)


def _gaps(each: PortTotals) -> GapRecord:
    return GapRecord(each.port.name, each.gaps, each.gap_deviation_p90, each.gap_deviation_p99)
