"""How idle each core was, second by second, and what a process used.

Idle time in /proc/stat is exact where the kernel is tickless (fs/proc/stat.c: get_idle_time); the
other columns are sampled by the tick and miss work that fits between two. So idleness is taken as
idle time over wall time, not over the sum of the columns. The file counts in 1/100 s, which makes
one second good to one per cent.
"""
from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np

TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class CoreSeries:
    """S intervals of about a second on C cores.

    time_s[S+1]: their bounds, CLOCK_MONOTONIC. idle[S, C], steal[S, C]: fractions of wall time;
    steal is what the hypervisor took away.
    """

    time_s: np.ndarray
    idle: np.ndarray
    steal: np.ndarray


def read_cores() -> np.ndarray:
    """Ticks [C, 2] that each core has been idle (waiting for a disk included) and stolen, since boot."""
    with open("/proc/stat", "rb") as stat:
        text = stat.read()
    return parse_cores(text)


def parse_cores(text: bytes) -> np.ndarray:
    """The same from the text of /proc/stat (proc(5): user nice system idle iowait irq softirq steal)."""
    rows = []
    for line in text.split(b"\n")[1:]:
        if not line.startswith(b"cpu"):
            break
        ticks = [int(word) for word in line.split()[1:9]]
        rows.append((ticks[3] + ticks[4], ticks[7]))
    return np.array(rows, np.int64)


def core_series(time_s: np.ndarray, ticks: np.ndarray) -> CoreSeries:
    """From readings ticks[S+1, C, 2] taken at time_s[S+1]."""
    shares = np.diff(ticks, axis=0) / TICKS_PER_S / np.diff(time_s)[:, None, None]
    shares = np.clip(shares, 0.0, 1.0)
    return CoreSeries(time_s, shares[:, :, 0], shares[:, :, 1])


def process_cpu_s(pid: int) -> float:
    """Seconds of CPU that process `pid` and its threads have used, from /proc/PID/stat."""
    with open(f"/proc/{pid}/stat", "rb") as stat:
        after_name = stat.read().rpartition(b")")[2].split()
    return (int(after_name[11]) + int(after_name[12])) / TICKS_PER_S  # utime, stime
