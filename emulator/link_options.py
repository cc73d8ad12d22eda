"""Rates, sizes and times of links as options give them, each against the wire that it is for."""
from __future__ import annotations

import math
from collections.abc import Callable

from emulator.errors import BadInput
from emulator.experiment import Experiment
from emulator.fabric.spec import ETHERNET_BYTES
from emulator.units import RATES, is_time, parse_rate, parse_size, parse_time, show_time
from traffic.wire import Wire

DEFAULT_BUFFER_FRAMES = 100
LEAST_DEADLINE_S = 60.0
MOST_DEADLINE_S = 7 * 86400.0
DEADLINE_FACTOR = 10.0


def rate_bps(text: str, largest: Callable[[], float]) -> float:
    """The wire of a host link: as given, or the largest that this machine is expected to keep up with."""
    if text == "auto":
        return largest()
    given_bps = parse_rate(text, "--rate")
    if given_bps < 1000:
        raise BadInput(f'--rate "{text}" is less than 1 kbit; a packet would take minutes.')
    if given_bps > 100 * RATES["gbit"]:
        raise BadInput(f'--rate "{text}" is more than any kernel forwards; emulate a slower wire with '
                       "--dilation K.")
    return given_bps


def buffer_bytes(text: str, wire: Wire) -> int:
    """The queue limit: bytes as given, a time at the host link's rate, or 100 frames."""
    if text == "auto":
        return DEFAULT_BUFFER_FRAMES * wire.frame_bytes
    if is_time(text):
        size = math.floor(parse_time(text, "--buffer") * wire.rate_bps / 8)
    else:
        size = parse_size(text, "--buffer")
    if size < wire.frame_bytes:
        raise BadInput(f'--buffer "{text}" is {size} bytes and holds not even one frame of '
                       f"{wire.frame_bytes} bytes (MTU {wire.mtu} + {ETHERNET_BYTES}).")
    if size > 2**31:
        raise BadInput(f'--buffer "{text}" is more than 2 GiB a port.')
    return size


def ecn_bytes(experiment: Experiment, wire: Wire, switch: str, limit_bytes: int) -> int | None:
    """The marking threshold K, below the queue limit of a port; None for no marking."""
    if experiment.ecn == "off":
        return None
    if switch != "bpf":
        raise BadInput(f'--ecn "{experiment.ecn}" needs --switch bpf; Open vSwitch marks nothing.')
    size = parse_size(experiment.ecn, "--ecn")
    if size < wire.frame_bytes:
        raise BadInput(f'--ecn "{experiment.ecn}" is less than one frame of {wire.frame_bytes} bytes.')
    if size >= limit_bytes - wire.frame_bytes:  # what finds more than K must find room
        raise BadInput(f'--ecn "{experiment.ecn}" is too large: a queue of {limit_bytes} bytes drops each full frame '
                       "that finds more than that, so none would be marked; lower it, or give ports a larger "
                       "--buffer.")
    return size


def deadline_s(text: str, ideal_s: float) -> float:
    """When a replay is given up, of one that ideally takes `ideal_s`; at most a week."""
    if text == "auto":
        chosen_s = max(LEAST_DEADLINE_S, DEADLINE_FACTOR * ideal_s)
        if chosen_s > MOST_DEADLINE_S:
            raise BadInput(f"On a perfect fabric this takes {show_time(ideal_s)} ({ideal_s / 86400:.3g} days), and no "
                           "run is given more than 7 days, of which it should need a tenth; raise --rate, or send "
                           "less (bytes=…, --byte-scale S), or name a --deadline.")
        return chosen_s
    given_s = parse_time(text, "--deadline")
    if given_s <= 0:
        raise BadInput(f'--deadline "{text}" must be more than zero.')
    if given_s > MOST_DEADLINE_S:
        raise BadInput(f'--deadline "{text}" is more than 7 days, the most that a run is given; raise --rate or '
                       "send less where it needs longer.")
    return given_s
