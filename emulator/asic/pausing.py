"""When a lossless class is paused (priority flow control, IEEE 802.1Qbb): thresholds, and whose bytes a queue
holds. Pure.

A real chip counts the buffer that each ingress port takes; it pauses the other end of that link at XOFF and
lets it go on at XON. Here packets wait in egress queues, which are fifos: what a queue holds are the last
bytes that came to it, so who sent them follows from what came by when.
"""
from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from emulator.errors import BadInput
from emulator.units import show_size

POLL_S = 0.001
HEADROOM_S = 0.005
"""What a link may still send between crossing XOFF and the pause: a look each POLL_S, and its lateness."""
HEADROOM_FRAMES = 2
"""The frame that a shut gate lets pass, and the one on its way."""
HYSTERESIS_FRAMES = 2


@dataclass(frozen=True)
class Thresholds:
    """Bytes that one ingress port may have in a switch's queues of a class: above xoff its upstream is
    paused, at xon or below it goes on."""

    xoff_bytes: int
    xon_bytes: int


def thresholds(name: str, switch: str, limit_bytes: int, ports: int, rate_bps: float, frame_bytes: int,
               delay_s: float = 0.0) -> Thresholds:
    """Of the class `name` on a switch of `ports` ports, all but one of which may fill one queue
    of limit_bytes.

    rate_bps: of the fastest port. delay_s: of a link; what is under way when its other end is paused still
    comes. Raises BadInput where the queue has no room for that.
    """
    feeders = max(1, ports - 1)
    headroom = int(rate_bps * (HEADROOM_S + delay_s) / 8) + HEADROOM_FRAMES * frame_bytes
    least = headroom + (HYSTERESIS_FRAMES + 1) * frame_bytes
    xoff = limit_bytes // feeders - headroom
    if limit_bytes // feeders < least:
        raise BadInput(
            f'class "{name}" cannot be lossless on {switch}: {feeders} ports can fill one queue, and each '
            f"needs {show_size(least)} there, {show_size(feeders * least)} in all, but the class has "
            f"{show_size(limit_bytes)}; give it a larger buffer share, or ports a larger --buffer.")
    return Thresholds(xoff, xoff - HYSTERESIS_FRAMES * frame_bytes)


class Holdings:
    """Whose bytes one egress queue holds; `held` is told again and again what came so far, and the depth."""

    def __init__(self, arrived: np.ndarray) -> None:
        self._history: deque[tuple[int, np.ndarray]] = deque([(int(arrived.sum()), arrived)])

    def held(self, arrived: np.ndarray, depth_bytes: int) -> np.ndarray:
        """Bytes in the queue by ingress port. arrived[I]: bytes that ever came from each, never less than
        before.

        What came between two looks is taken to have come evenly mixed.
        """
        total, history = int(arrived.sum()), self._history
        if total > history[-1][0]:
            history.append((total, arrived))
        position = total - depth_bytes  # everything that came up to here has left
        while len(history) > 1 and history[1][0] <= position:
            history.popleft()
        before, gone = history[0]
        if len(history) > 1 and position > before:
            after, there = history[1]
            gone = gone + (there.astype(float) - gone) * ((position - before) / (after - before))
        return arrived - gone
