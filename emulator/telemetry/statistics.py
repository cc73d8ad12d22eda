"""Arithmetic on sampled queues: percentiles over time, utilisation, bursts, fairness. Pure numpy."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from emulator.telemetry.series import QueueSeries

PEAK_FRAMES = 100
HOT, HOT_FRAMES = 0.5, 20


@dataclass(frozen=True)
class DepthStatistics:
    """Of one queue's depth, weighted by time; max_bytes is the deepest sample."""

    mean_bytes: float
    p50_bytes: float
    p95_bytes: float
    p99_bytes: float
    max_bytes: float


def held_s(time_s: np.ndarray) -> np.ndarray:
    """Seconds that each sample stands for, [T]: until the next one; the last stands for nothing.

    A lone sample stands for one second.
    """
    if len(time_s) < 2:
        return np.ones(len(time_s))
    return np.append(np.diff(time_s), 0.0)


def weighted_percentiles(values: np.ndarray, weights: np.ndarray, quantiles: Sequence[float]) -> np.ndarray:
    """The least value such that at least the fraction q of the weight lies at or below it, for each q.

    values[T], weights[T] >= 0 with a positive sum; quantiles in 0..1.
    """
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[order])
    # a sum of weights is not exact: without the margin q = 1 could point past the end
    at = np.searchsorted(reached, np.asarray(quantiles) * reached[-1] * (1 - 1e-12))
    return values[order][np.minimum(at, len(values) - 1)]


def depth_statistics(series: QueueSeries) -> list[DepthStatistics]:
    """One for each port; all zero if there is no sample."""
    if len(series.time_s) == 0:
        return [DepthStatistics(0.0, 0.0, 0.0, 0.0, 0.0)] * len(series.ports)
    weights = held_s(series.time_s)
    statistics = []
    for column in range(len(series.ports)):
        depth = series.backlog_bytes[:, column]
        p50, p95, p99 = weighted_percentiles(depth, weights, (0.5, 0.95, 0.99))
        mean = np.average(depth, weights=weights)
        statistics.append(DepthStatistics(*map(float, (mean, p50, p95, p99, depth.max()))))
    return statistics


def _stride(series: QueueSeries, rate_bps: float, frames: int, frame_bytes: int) -> int:
    """Samples that span the time of `frames` frames at `rate_bps`, at least one."""
    return max(1, int(np.ceil(frames * frame_bytes * 8 / rate_bps / series.period_s - 1e-9)))


def utilisation(series: QueueSeries, frame_bytes: int) -> tuple[np.ndarray, np.ndarray]:
    """(mean[P], peak[P]) of 8 dB / (C dt), C the configured rate; zero with fewer than two samples.

    The peak is that of any window as long as PEAK_FRAMES frames of `frame_bytes` (MTU and Ethernet
    header) take: in a shorter one the whole number of packets in it would make it seem above 1.
    """
    ports = len(series.ports)
    if len(series.time_s) < 2:
        return np.zeros(ports), np.zeros(ports)
    rates = series.rate_bps
    mean = 8 * (series.sent_bytes[-1] - series.sent_bytes[0]) / rates / np.ptp(series.time_s)
    peak = np.zeros(ports)
    for column, rate_bps in enumerate(rates):
        stride = min(_stride(series, rate_bps, PEAK_FRAMES, frame_bytes), len(series.time_s) - 1)
        sent = series.sent_bytes[stride:, column] - series.sent_bytes[:-stride, column]
        peak[column] = (8 * sent / rate_bps / (series.time_s[stride:] - series.time_s[:-stride])).max()
    return mean, peak


def microbursts(series: QueueSeries, frame_bytes: int) -> list[np.ndarray]:
    """Durations in seconds of the bursts of each port.

    Zhang, Liu, Zeng, Krishnamurthy, "High-Resolution Measurement of Data Center Microbursts", IMC 2017:
    an interval is hot if its utilisation is above 50 %, and an unbroken sequence of hot intervals is a
    burst. They take 25 us at 10 Gb/s, which is 20 full frames; so an interval here is the time of 20
    frames at the port's rate, or the sampling period where that is longer. A long transfer is one
    burst, whatever its length: whether it is micro, its duration tells.
    """
    bursts = []
    for column, rate_bps in enumerate(series.rate_bps):
        stride = _stride(series, rate_bps, HOT_FRAMES, frame_bytes)
        time_s, sent = series.time_s[::stride], series.sent_bytes[::stride, column]
        hot = 8 * np.diff(sent) > HOT * rate_bps * np.diff(time_s)
        edges = np.flatnonzero(np.diff(np.concatenate([[False], hot, [False]]).astype(np.int8)))
        bursts.append(time_s[edges[1::2]] - time_s[edges[::2]])
    return bursts


def jain(values: np.ndarray) -> float:
    """Jain's fairness index (sum x)^2 / (n sum x^2): 1 all alike, 1/n one has all; 1 if all are zero.

    Jain, Chiu, Hawe, DEC-TR-301, 1984.
    """
    largest = float(values.max())
    if not largest:
        return 1.0
    shares = values / largest  # squares of very small values would lose their digits
    return float(shares.sum()) ** 2 / (len(shares) * float(np.square(shares).sum()))


def max_over_mean(values: np.ndarray) -> float:
    """The largest over the mean; 1 if all are zero."""
    mean = float(values.mean())
    return float(values.max()) / mean if mean else 1.0


def all_ticks(series: QueueSeries) -> tuple[np.ndarray, np.ndarray]:
    """(when due, lateness) in seconds of every tick, those included that the sampler could not take.

    A sampler that is held up for a second takes one late sample and leaves out the ticks it missed,
    which would hide them. A missed tick is as late as the next sample that was taken. Not in order.
    """
    due_s = series.time_s - series.lateness_s
    missed = np.maximum(np.rint(np.diff(due_s) / series.period_s).astype(int) - 1, 0)
    # the nth tick before the sample that came next was due n periods earlier
    nth = np.arange(missed.sum()) - np.repeat(np.cumsum(missed) - missed, missed) + 1
    earlier_s = nth * series.period_s
    return (np.concatenate([due_s, np.repeat(due_s[1:], missed) - earlier_s]),
            np.concatenate([series.lateness_s, np.repeat(series.lateness_s[1:], missed) + earlier_s]))
