"""Percentiles from the histograms that telemetry.bpf.c keeps."""
from __future__ import annotations

import numpy as np

from emulator.asic.layout import GAP_BINS, SOJOURN_BINS

_UNIT_NS = 64  # the first 16 bins are linear; then 16 bins an octave


def sojourn_bounds_ns() -> np.ndarray:
    """Lower bounds of the sojourn bins and the upper one of the last, in ns, [SOJOURN_BINS + 1]."""
    bins = np.arange(SOJOURN_BINS + 1)
    octave, place = bins // 16, bins % 16
    return np.where(octave == 0, bins, (16 + place) << np.maximum(octave - 1, 0)) * _UNIT_NS


def percentile(bins: np.ndarray, bounds: np.ndarray, percent: float) -> float:
    """The middle of the bin in which the count of rank `percent` lies; NaN for no counts."""
    cumulative = np.cumsum(bins)
    if not cumulative[-1]:
        return float("nan")
    at = int(np.searchsorted(cumulative, max(percent / 100 * cumulative[-1], 1)))
    return float(bounds[at] + bounds[at + 1]) / 2


def sojourn_percentile(bins: np.ndarray, percent: float) -> float:
    """A percentile of the sojourn time in seconds, within 3.2 % (32 ns below 1 us)."""
    return percentile(bins, sojourn_bounds_ns(), percent) / 1e9


def gap_percentile(bins: np.ndarray, percent: float) -> float:
    """A percentile of |gap / ideal - 1|, as a fraction, to the nearest half percent."""
    return percentile(bins, np.arange(GAP_BINS + 1) / 100, percent)
