"""Parsing and printing of sizes, rates and times. Inside the program all values are SI.

Sizes take B, kB, MB, GB (powers of 1000) and KiB, MiB, GiB (powers of 1024); rates bit, kbit,
mbit, gbit (per second); times ns, us, ms, s. A value
without a unit is refused (100 what?), unless it is zero.
"""
from __future__ import annotations

import math
import re

from emulator.errors import BadInput, nearest

SIZES = {"b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12,
         "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40}
RATES = {"bit": 1, "kbit": 10**3, "mbit": 10**6, "gbit": 10**9, "tbit": 10**12}
TIMES = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0}

_VALUE = re.compile(r"\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*([A-Za-zµ]*)\s*")


def _parse(text: str, what: str, units: dict[str, float], example: str) -> float:
    match = _VALUE.fullmatch(str(text))
    if not match:
        raise BadInput(f'{what} "{text}" is not a number with a unit, such as {example}.')
    number, unit = match.groups()
    unit = unit.lower().replace("µ", "u").removesuffix("/s").removesuffix("ps")
    if not unit and float(number):  # nothing is nothing in any unit
        raise BadInput(f'{what} "{text}" has no unit; write for example {example}.')
    if unit and unit not in units:
        raise BadInput(f'{what} "{text}" has an unknown unit{nearest(unit, units)}.')
    value = float(number) * units.get(unit, 1)
    if not math.isfinite(value) or value > 1e18:
        raise BadInput(f'{what} "{text}" is too large.')
    if value < 0:
        raise BadInput(f'{what} "{text}" is negative.')
    return value


def parse_rate(text: str, what: str = "the rate") -> float:
    """Bits per second of '10mbit'; zero and negative rates are refused."""
    value = _parse(text, what, RATES, "10mbit")
    if value < 1:
        raise BadInput(f'{what} "{text}" must be more than zero, such as 10mbit.')
    return value


def parse_size(text: str, what: str = "the size") -> int:
    """Bytes of '1MB' or '64KiB'; a fraction of a byte is refused, zero allowed."""
    value = _parse(text, what, SIZES, "100kB")
    if value != int(value):
        raise BadInput(f'{what} "{text}" is not a whole number of bytes.')
    return int(value)


def parse_time(text: str, what: str = "the time") -> float:
    """Seconds of '10us'; zero allowed."""
    return _parse(text, what, TIMES, "10ms")


def is_time(text: str) -> bool:
    """Whether the unit of a value is one of time, whatever the number."""
    match = _VALUE.fullmatch(str(text))
    return match is not None and match[2].lower().replace("µ", "u") in TIMES


def _scaled(value: float, steps: list[tuple[float, str]]) -> str:
    for scale, unit in steps:
        if abs(value) >= scale:
            return f"{value / scale:.4g} {unit}"
    scale, unit = steps[-1]
    return f"{value / scale:.4g} {unit}"


def show_rate(rate_bps: float) -> str:
    """'12.5 Mb/s'."""
    return _scaled(rate_bps, [(1e12, "Tb/s"), (1e9, "Gb/s"), (1e6, "Mb/s"), (1e3, "kb/s"), (1, "b/s")])


def show_size(size_bytes: float) -> str:
    """'1.5 MB' (powers of 1000)."""
    return _scaled(size_bytes, [(1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1, "B")])


def show_time(time_s: float) -> str:
    """'3.2 ms'."""
    if time_s == 0:
        return "0 s"
    return _scaled(time_s, [(1, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns")])
