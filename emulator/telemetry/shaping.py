"""Whether ports sent at the rate of their wire: no slower while they had to send, never faster. Pure."""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from emulator.fabric.spec import Port
from emulator.telemetry.series import QueueSeries

LONG_QUANTA = 100


@dataclass(frozen=True)
class BackloggedRate:
    """A port's rate over all the time in which it certainly had something to send.

    ratio: bytes sent over bytes that its configured rate gives. uncertainty: how far from 1 the ratio
    of a perfect port may lie for the whole number of packets, the burst and the time that reading
    takes, at both ends of each stretch. seconds: of all stretches together.
    """

    port: Port
    ratio: float
    uncertainty: float
    seconds: float


def backlogged_rates(series: QueueSeries, quantum_bytes: int) -> list[BackloggedRate]:
    """Of the ports that were backlogged for long enough; the others cannot be judged and are left out.

    Two backlogged samples do not prove a port busy between them: a queue may run empty and fill up
    again. It is proved where the first of them holds more than the configured rate carries until the
    second. A stretch is an unbroken sequence of such intervals, and counts if it is long enough to
    carry LONG_QUANTA times `quantum_bytes` (the burst of the shaper and one frame), which keeps the
    uncertainty at about 1 %.
    """
    if len(series.time_s) < 2:
        return []
    found = []
    lengths_s = np.diff(series.time_s) + series.read_s[1:]
    for column, port in enumerate(series.ports):
        rate = port.rate_bps / 8
        busy = series.backlog_bytes[:-1, column] >= rate * lengths_s
        edges = np.flatnonzero(np.diff(np.concatenate([[False], busy, [False]]).astype(np.int8)))
        first, last = edges[::2], edges[1::2]
        seconds = series.time_s[last] - series.time_s[first]
        long = rate * seconds >= LONG_QUANTA * quantum_bytes
        if not long.any():
            continue
        first, last = first[long], last[long]
        total_s = float(seconds[long].sum())
        sent = float((series.sent_bytes[last, column] - series.sent_bytes[first, column]).sum())
        reading_s = float((series.read_s[first] + series.read_s[last]).sum())
        unsure = len(first) * quantum_bytes + rate * reading_s
        found.append(BackloggedRate(port, sent / (rate * total_s), unsure / (rate * total_s), total_s))
    return found


def excess_bytes(series: QueueSeries, tolerance: float) -> np.ndarray:
    """The most bytes [P] that a port sent in any window beyond its rate times the window's length.

    A shaper of rate C and burst b stays below b and one frame in every window, however short or long
    (the token bucket of RFC 2697). The rate is taken `tolerance` (a fraction) higher, so that a fault
    of that size does not add up over a long run.
    """
    if len(series.time_s) == 0:
        return np.zeros(len(series.ports))
    rate = series.rate_bps / 8 * (1 + tolerance)
    began = series.sent_bytes - rate * series.time_s[:, None]
    ended = series.sent_bytes - rate * (series.time_s + series.read_s)[:, None]
    return (ended - np.minimum.accumulate(began, axis=0)).max(axis=0)
