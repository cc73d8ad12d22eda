"""The shape of one end of a link: its rate by HTB, its queue by a byte-limited fifo.

One HTB class holds the rate; its burst is two MTU frames, because a burst is what leaves back to back
at line rate of the machine, and it is also the lateness of a timer that HTB can make up for: at 1 Gb/s
two frames are 24 us, so there `LATENESS_S` asks for more. The leaf is a bfifo whose limit is the port's
buffer. Nothing passes beside the class (direct_qlen 0). Arithmetic as in net/sched/sch_htb.c and
sch_api.c: rates in bytes per second, times in ticks of 64 ns.
"""
from __future__ import annotations

import math
import struct
from dataclasses import dataclass

from emulator.errors import BadInput
from emulator.fabric.spec import ETHERNET_BYTES
from emulator.netlink import attribute, attributes, nest, text, u32
from emulator.units import show_rate, show_size

ROOT = 0x10000  # qdisc 1:
CLASS = 0x10001  # class 1:1
PARENT = 0x10100  # class 1:100, the port's rate where there are several classes
LEAF = 0x100000  # qdisc 10:
H_ROOT = 0xFFFFFFFF

MIN_RATE_BPS, MAX_RATE_BPS = 8e3, 100e9
MIN_MTU, MAX_MTU = 68, 65535  # veth's limits (RFC 791's minimum; include/linux/etherdevice.h)
LATENESS_S = 100e-6

_TICK_NS = 64  # PSCHED_SHIFT 6, include/net/pkt_sched.h
_U32 = 2**32 - 1
_TCA_KIND, _TCA_OPTIONS = 1, 2
_PARMS, _INIT, _DIRECT_QLEN, _RATE64, _CEIL64 = 1, 2, 5, 6, 7  # TCA_HTB_*
_RATESPEC = struct.Struct("=BBHhHI")
_HTB_VERSION, _ETHERNET = 3, 1


@dataclass(frozen=True)
class Shape:
    """What HTB and the leaf of one link end are told. `quantum_bytes` is one MTU frame."""

    rate_bytes_per_s: int
    burst_ticks: int
    quantum_bytes: int
    limit_bytes: int

    @property
    def rate_bps(self) -> float:
        return 8.0 * self.rate_bytes_per_s

    @property
    def burst_bytes(self) -> int:
        return round(self.burst_ticks * _TICK_NS * self.rate_bytes_per_s / 1e9)

    def __str__(self) -> str:
        return (f"rate {show_rate(self.rate_bps)}, burst {show_size(self.burst_bytes)}, "
                f"quantum {show_size(self.quantum_bytes)}, queue {show_size(self.limit_bytes)}")


def shape(rate_bps: float, mtu: int, buffer_bytes: int) -> Shape:
    """The shape of a link end of `rate_bps` with a queue of `buffer_bytes` (whole frames, with headers).

    Raises BadInput for what HTB cannot shape or a queue that cannot hold one MTU frame.
    """
    frame = mtu + ETHERNET_BYTES
    if not MIN_MTU <= mtu <= MAX_MTU:
        raise BadInput(f"An MTU of {mtu} bytes is outside {MIN_MTU} to {MAX_MTU}.")
    if not math.isfinite(rate_bps) or not MIN_RATE_BPS <= rate_bps <= MAX_RATE_BPS:
        raise BadInput(f"A link of {show_rate(rate_bps)} cannot be shaped; from {show_rate(MIN_RATE_BPS)} to "
                       f"{show_rate(MAX_RATE_BPS)} can (scale faster fabrics down with --dilation).")
    if buffer_bytes < frame:
        raise BadInput(f"A buffer of {buffer_bytes} bytes cannot hold one packet: at an MTU of {mtu} a frame "
                       f"has {frame} bytes; give at least --buffer {frame}B.")
    if buffer_bytes > _U32:
        raise BadInput(f"A buffer of {show_size(buffer_bytes)} is more than a queue can count (4.29 GB).")
    rate = round(rate_bps / 8)
    burst_ns = max(2 * frame * 1e9 / rate, LATENESS_S * 1e9)
    return Shape(rate, math.ceil(burst_ns / _TICK_NS), frame, int(buffer_bytes))


def tc_lines(made: Shape, device: str) -> list[str]:
    """The same as lines for `tc -batch`, to be read by people and pasted."""
    rate, burst = f"{int(made.rate_bps)}bit", f"{made.burst_bytes}b"
    return [f"qdisc replace dev {device} root handle 1: htb default 1 direct_qlen 0",
            f"class replace dev {device} parent 1: classid 1:1 htb rate {rate} ceil {rate} "
            f"burst {burst} cburst {burst} quantum {made.quantum_bytes}",
            f"qdisc replace dev {device} parent 1:1 handle 10: bfifo limit {made.limit_bytes}"]


def htb_root(default: int = CLASS) -> bytes:
    """Attributes of the root qdisc: everything unclassified goes to class `default`, nothing around it."""
    glob = struct.pack("=5I", _HTB_VERSION, 10, default & 0xFFFF, 0, 0)
    return text(_TCA_KIND, "htb") + nest(_TCA_OPTIONS, attribute(_INIT, glob), u32(_DIRECT_QLEN, 0))


def htb_class(made: Shape) -> bytes:
    """Attributes of the class that holds the rate."""
    rate = _RATESPEC.pack(0, _ETHERNET, 0, 0, 0, min(made.rate_bytes_per_s, _U32))
    parms = rate + rate + struct.pack("=5I", made.burst_ticks, made.burst_ticks, made.quantum_bytes, 0, 0)
    wide = struct.pack("=Q", made.rate_bytes_per_s)
    return text(_TCA_KIND, "htb") + nest(_TCA_OPTIONS, attribute(_PARMS, parms),
                                         attribute(_RATE64, wide), attribute(_CEIL64, wide))


def leaf(made: Shape) -> bytes:
    """Attributes of the leaf qdisc: a fifo with a byte limit."""
    return text(_TCA_KIND, "bfifo") + attribute(_TCA_OPTIONS, struct.pack("=I", made.limit_bytes))


def read_kind(body: bytes, start: int) -> str:
    """The kind of a qdisc or class from its attributes at `start`."""
    return attributes(body, start).get(_TCA_KIND, b"").rstrip(b"\0").decode()


def read_root(body: bytes, start: int) -> tuple[int, int]:
    """(default class, packets that passed beside the classes) of an HTB root."""
    options = attributes(attributes(body, start)[_TCA_OPTIONS])
    _, _, default, _, direct_packets = struct.unpack_from("=5I", options[_INIT])
    return default, direct_packets


def read_class(body: bytes, start: int, limit_bytes: int) -> tuple[Shape, Shape]:
    """(by rate and burst, by ceil and cburst): the two agree unless somebody changed the class."""
    options = attributes(attributes(body, start)[_TCA_OPTIONS])
    parms = options[_PARMS]
    rates = [_RATESPEC.unpack_from(parms, at)[5] for at in (0, _RATESPEC.size)]
    for index, wide in enumerate((_RATE64, _CEIL64)):
        if wide in options:
            rates[index] = struct.unpack("=Q", options[wide])[0]
    burst, cburst, quantum = struct.unpack_from("=3I", parms, 2 * _RATESPEC.size)
    return (Shape(rates[0], burst, quantum, limit_bytes), Shape(rates[1], cburst, quantum, limit_bytes))


def read_limit(body: bytes, start: int) -> int:
    """The byte limit of a bfifo."""
    return struct.unpack("=I", attributes(body, start)[_TCA_OPTIONS][:4])[0]
