"""From the real cluster to the emulated one: bytes / S, rates / K, times x K / S.

A message of B bytes takes 8B/R on the real network and 8(B/S) / (R/K) = K/S times as long on the
emulated one; computing is stretched by the same K/S, so that the ratio of the two, and with it what
overlaps what, stays. (Packets in a message are divided by S, and no kernel timer is stretched.)
"""
from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Scale:
    """dilation K: the real network's rate over the emulated one's. byte_scale S: real bytes a byte.
    per_card: accelerators whose traffic shares a network card."""

    dilation: float
    byte_scale: float
    per_card: int = 1

    @property
    def time_scale(self) -> float:
        """Emulated seconds a second of the real cluster."""
        return self.dilation / self.byte_scale

    def size_bytes(self, real_bytes: float) -> int:
        """Of what one accelerator sends; at least one byte of anything that is sent at all."""
        return max(1, round(real_bytes * self.per_card / self.byte_scale))

    def duration_s(self, real_s: float) -> float:
        return real_s * self.time_scale


def rounded(value: float) -> float:
    """Three significant digits from 1 to 10^9, what --byte-scale takes: nobody wants to read 38461.538."""
    return min(1e9, max(1.0, float(f"{value:.3g}")))
