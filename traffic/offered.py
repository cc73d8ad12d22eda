"""What the flows of a pattern offer: which class each belongs to, and how much it sends how fast."""
from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence

from emulator.errors import BadInput
from traffic.patterns import Pace, Pairs
from traffic.setting import Setting, check_class
from traffic.sizing import pattern_bytes

LEAST_PERIOD_S = 0.002
"""Between two messages of a paced flow: less, and the engine's own rest would decide when they leave."""


def traffic_classes(setting: Setting) -> Callable[[str], tuple[str, ...]]:
    """A parser of 'gradients+storage', or of 'all' classes of the setting."""

    def parse(text: str) -> tuple[str, ...]:
        if text == "all":
            return setting.classes
        names = tuple(name.strip() for name in text.split("+"))
        if not all(names):
            raise BadInput(f'"{text}" is not a list of classes such as gradients+storage.')
        for name in names:
            check_class("workload pattern", name, setting)
        return names

    return parse


def loads(text: str) -> tuple[float, ...]:
    """Of '0.3+1': each above 0 and at most 1."""
    found = []
    for word in text.split("+"):
        try:
            load = float(word)
        except ValueError:
            load = math.nan
        if not 0 < load <= 1:
            raise BadInput(f'"{word}" is not a part of a host link above 0 and at most 1, such as 0.3.')
        found.append(load)
    return tuple(found)


def sized(pairs: Pairs, offered: Sequence[float], size_bytes: int | None, time_s: float,
          setting: Setting) -> tuple[list[int], list[Pace | None]]:
    """(bytes, pace) of each flow. A load of 1 has no pace: TCP alone says how fast.

    Where no size is given, paced flows last for time_s, and the others share equally what these leave of
    the busiest host link in that time (at least a tenth of it: then they last longer).
    """
    wire = setting.wire
    load = [offered[number % len(offered)] for number in range(len(pairs))]
    paces = [None if each == 1 else _pace(each, setting) for each in load]
    if size_bytes:
        return [size_bytes] * len(pairs), paces
    taken: dict[tuple[str, int], float] = defaultdict(float)
    for (source, destination), each in zip(pairs, load):
        if each < 1:
            taken["out", source] += each
            taken["into", destination] += each
    left = max(0.1, 1 - max(taken.values(), default=0.0))
    unpaced = [pair for pair, each in zip(pairs, load) if each == 1]
    whole = pattern_bytes(unpaced, setting, time_s * left) if unpaced else 0
    paced_bps = setting.rate_bps * wire.goodput_ratio()
    return [whole if each == 1 else max(1, round(each * paced_bps * time_s / 8)) for each in load], paces


def _pace(load: float, setting: Setting) -> Pace:
    """Messages of one full frame, or of as many as LEAST_PERIOD_S asks for."""
    wire = setting.wire
    frame_s = 8 * wire.frame_bytes / (load * setting.rate_bps)
    frames = max(1, math.ceil(LEAST_PERIOD_S / frame_s))
    return Pace(frames * wire.payload_bytes, frames * frame_s)
