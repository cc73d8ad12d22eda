"""The time series of a result bundle, `queues.csv` and `links.csv`, for a spreadsheet or pandas.

queues.csv: time_s, port, backlog_bytes, dropped_packets. A row says that from time_s on, until the
next row of the same port, the queue was this deep (the deepest seen, where several samples share a
row) and had dropped so many packets since sampling began. Before a port's first row it was empty.

links.csv: time_s, port, sent_bytes, utilisation. A row is one interval beginning at time_s; sent_bytes
were sent in it, utilisation is 8 sent_bytes / (rate * interval). Intervals in which a port sent
nothing have no row.

Time is in seconds from the start of the measured window. Both files are held to a number of rows by
widening the steps of time, never by leaving out ports or peaks.
"""
from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from emulator.telemetry.series import QueueSeries

MOST_ROWS = 200_000     # of about 30 bytes
LINK_INTERVAL_S = 0.1


def write_queues(path: Path, series: Sequence[QueueSeries], start_s: float,
                 most_rows: int = MOST_ROWS) -> None:
    """Write queues.csv. start_s: CLOCK_MONOTONIC at the start of the measured window."""
    share = _shares(series, most_rows)
    _write(path, ("time_s", "port", "backlog_bytes", "dropped_packets"),
           (row for part, rows in zip(series, share) for row in _queue_rows(part, start_s, rows)))


def write_links(path: Path, series: Sequence[QueueSeries], start_s: float,
                most_rows: int = MOST_ROWS) -> None:
    """Write links.csv. start_s: CLOCK_MONOTONIC at the start of the measured window."""
    share = _shares(series, most_rows)
    _write(path, ("time_s", "port", "sent_bytes", "utilisation"),
           (row for part, rows in zip(series, share) for row in _link_rows(part, start_s, rows)))


def _shares(series: Sequence[QueueSeries], most_rows: int) -> list[int]:
    """Rows for each part, by its number of ports."""
    ports = sum(len(part.ports) for part in series)
    return [most_rows * len(part.ports) // ports for part in series]


def _write(path: Path, header: Sequence[str], rows: Iterator[tuple[object, ...]]) -> None:
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


def _queue_rows(series: QueueSeries, start_s: float, most_rows: int) -> Iterator[tuple[object, ...]]:
    """Changes of depth or drops; `most_rows` holds if it is at least the number of ports."""
    if len(series.time_s) == 0:
        return
    step = 1
    while True:
        starts = np.arange(0, len(series.time_s), step)
        depth = np.maximum.reduceat(series.backlog_bytes, starts, axis=0)
        # the drops of a step are those counted by its end
        drops = series.drops[np.append(starts[1:], len(series.time_s)) - 1]
        changed = np.empty(depth.shape, bool)
        changed[0] = (depth[0] != 0) | (drops[0] != 0)
        changed[1:] = (depth[1:] != depth[:-1]) | (drops[1:] != drops[:-1])
        count = int(changed.sum())
        if count <= most_rows or len(starts) == 1:
            break
        step *= max(2, -(-count // most_rows))
    for moment, column in zip(*np.nonzero(changed)):
        yield (f"{series.time_s[starts[moment]] - start_s:.6f}", series.ports[column].name,
               int(depth[moment, column]), int(drops[moment, column]))


def _link_rows(series: QueueSeries, start_s: float, most_rows: int) -> Iterator[tuple[object, ...]]:
    samples = len(series.time_s)
    if samples < 2:
        return
    fitting = -(-samples * len(series.ports) // max(1, most_rows))
    step = max(1, round(LINK_INTERVAL_S / series.period_s), fitting)
    bounds = np.unique(np.append(np.arange(0, samples, step), samples - 1))
    lengths_s = np.diff(series.time_s[bounds])
    sent = np.diff(series.sent_bytes[bounds], axis=0)
    used = 8 * sent / series.rate_bps / lengths_s[:, None]
    for moment, column in zip(*np.nonzero(sent)):
        yield (f"{series.time_s[bounds[moment]] - start_s:.6f}", series.ports[column].name,
               int(sent[moment, column]), f"{used[moment, column]:.4f}")
