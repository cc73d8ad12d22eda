"""The qdiscs of a bpf switch's port, as route-netlink messages, and their reading back.

One class: as on every other link end, HTB 1:, class 1:1, leaf 10: (emulator/fabric/link.py). Eight:

    htb 1: - class 1:100 (the port's rate) +- class 1:1 - leaf 10:   class 0
                                           +- class 1:2 - leaf 11:   class 1 ...

queue.bpf.c sets skb->priority to the class id, so there are no filters. A child's own rate is the
least there is (HTB serves whoever is within his own rate before it looks at `prio`: a thousandth of the
port's let seven frames of the others go before a strict class's after every pause, and one in 140 later);
what it sends it borrows from the parent, which HTB hands out by `prio` first
(strict classes 0, 1, ... in order; the weighted ones share the last) and by deficit round robin with
`quantum` within a prio (the weights): net/sched/sch_htb.c. A leaf is a bfifo with the class's limit,
under a TBF of the same limit where the class can be paused (gate.py).
"""
from __future__ import annotations

import struct
from dataclasses import replace

from emulator.asic.queueing import Queueing, limits
from emulator.errors import BadInput
from emulator.fabric import rtnl
from emulator.fabric.link import (CLASS, H_ROOT, LEAF, PARENT, ROOT, Shape, htb_root, leaf, read_class,
                                  read_kind, shape)
from emulator.netlink import Message, Netlink, attribute, attributes, nest, text, u32

_OWN_BYTES_PER_S = 1  # of a child: the least there is
_OWN_BURST_TICKS = 1
_MAX_QUANTUM = 200_000  # above, HTB warns
_TCA_KIND, _TCA_OPTIONS = 1, 2
_HTB_PARMS, _HTB_RATE64, _HTB_CEIL64 = 1, 6, 7
_TBF_PARMS, _TBF_RATE64, _TBF_BURST = 1, 4, 6
_RATESPEC = struct.Struct("=BBHhHI")  # cell_log, linklayer, overhead, cell_align, mpu, rate
_ETHERNET = 1
_TICK_NS = 64
_U32 = 2**32 - 1
OPEN_BYTES_PER_S, OPEN_BURST_BYTES = 125_000_000_000, 1 << 20  # of a gate: never in the way


def port_messages(ifindex: int, rate_bps: float, limit_bytes: int, mtu: int,
                  queueing: Queueing) -> list[Message]:
    """What builds the queues of one port (an interface without a root qdisc).

    Raises BadInput for a rate or limit that cannot be shaped.
    """
    port = shape(rate_bps, mtu, limit_bytes)
    # only a packet that no program has classified needs the default: it goes where DSCP 0 goes
    messages = [rtnl.qdisc(ifindex, ROOT, H_ROOT, htb_root(CLASS + queueing.class_of_dscp[0]))]
    if len(queueing.classes) == 1:
        messages.append(rtnl.traffic_class(ifindex, CLASS, ROOT, _class(port, port.rate_bytes_per_s, 0)))
    else:
        messages.append(rtnl.traffic_class(ifindex, PARENT, ROOT, _class(port, port.rate_bytes_per_s, 0)))
        for number, (quantum, prio) in enumerate(service(queueing, port.quantum_bytes)):
            messages.append(rtnl.traffic_class(ifindex, CLASS + number, PARENT, _child(port, quantum, prio)))
    for number, limit in enumerate(limits(queueing, port.limit_bytes, port.quantum_bytes)):
        options = (gate(OPEN_BYTES_PER_S, OPEN_BURST_BYTES, limit) if queueing.pausable
                   else leaf(replace(port, limit_bytes=limit)))
        messages.append(rtnl.qdisc(ifindex, LEAF + (number << 16), CLASS + number, options))
    return messages


def class_messages(ifindex: int, rate_bps: float, limit_bytes: int, mtu: int,
                   queueing: Queueing) -> list[Message]:
    """What gives a standing port another rate or other weights; queues stay, with what waits in them."""
    port = shape(rate_bps, mtu, limit_bytes)
    whole = _class(port, port.rate_bytes_per_s, 0)
    if len(queueing.classes) == 1:
        return [rtnl.changed_class(ifindex, CLASS, ROOT, whole)]
    return [rtnl.changed_class(ifindex, PARENT, ROOT, whole), *(
        rtnl.changed_class(ifindex, CLASS + number, PARENT, _child(port, quantum, prio))
        for number, (quantum, prio) in enumerate(service(queueing, port.quantum_bytes)))]


def service(queueing: Queueing, frame_bytes: int) -> list[tuple[int, int]]:
    """(quantum in bytes, prio) of each class."""
    strict = [number for number, each in enumerate(queueing.classes) if each.strict]
    heaviest = max(each.weight for each in queueing.classes)
    if heaviest * frame_bytes > _MAX_QUANTUM:
        raise BadInput(f"A weight of {heaviest} with frames of {frame_bytes} bytes is more than HTB can "
                       f"serve; give weights up to {_MAX_QUANTUM // frame_bytes}.")
    return [(each.weight * frame_bytes, strict.index(number) if each.strict else min(len(strict), 7))
            for number, each in enumerate(queueing.classes)]


def _child(port: Shape, quantum_bytes: int, prio: int) -> bytes:
    """A class of a port of several."""
    return _class(replace(port, quantum_bytes=quantum_bytes), _OWN_BYTES_PER_S, prio)


def _class(port: Shape, rate_bytes_per_s: int, prio: int) -> bytes:
    """A class with a rate of its own that may take the whole port's; no burst of its own for a child."""
    def spec(rate: int) -> bytes:
        return _RATESPEC.pack(0, _ETHERNET, 0, 0, 0, min(rate, _U32))

    ceil = port.rate_bytes_per_s
    burst = port.burst_ticks
    if rate_bytes_per_s != ceil:
        burst = _OWN_BURST_TICKS
    parms = spec(rate_bytes_per_s) + spec(ceil) + struct.pack(
        "=5I", burst, port.burst_ticks, port.quantum_bytes, 0, prio)
    return text(_TCA_KIND, "htb") + nest(
        _TCA_OPTIONS, attribute(_HTB_PARMS, parms),
        attribute(_HTB_RATE64, struct.pack("=Q", rate_bytes_per_s)),
        attribute(_HTB_CEIL64, struct.pack("=Q", ceil)))


def gate(rate_bytes_per_s: int, burst_bytes: int, limit_bytes: int) -> bytes:
    """Attributes of a TBF leaf. Every packet costs it `burst_bytes` when that is one frame (mpu), so a
    closed gate lets exactly one packet through, of whatever size: net/sched/sch_tbf.c.
    """
    mpu = burst_bytes if burst_bytes < 1 << 16 else 0
    rate = _RATESPEC.pack(0, _ETHERNET, 0, 0, mpu, min(rate_bytes_per_s, _U32))
    parms = rate + bytes(_RATESPEC.size) + struct.pack("=III", limit_bytes, 0, 0)
    options = [attribute(_TBF_PARMS, parms), u32(_TBF_BURST, burst_bytes)]
    if rate_bytes_per_s > _U32:
        options.append(attribute(_TBF_RATE64, struct.pack("=Q", rate_bytes_per_s)))
    return text(_TCA_KIND, "tbf") + nest(_TCA_OPTIONS, *options)


Qdiscs = dict[int, dict[int, tuple[str, int, bytes]]]
"""ifindex -> parent -> (kind, handle, body)"""


def read_qdiscs(netlink: Netlink) -> Qdiscs:
    """All qdiscs of this namespace, in one dump: asked port by port, each answer would hold them all."""
    found: Qdiscs = {}
    for body in netlink.dump(rtnl.GET_QDISC, rtnl.TC.pack(0, 0, 0, 0, 0)):
        _, index, handle, parent, _ = rtnl.TC.unpack_from(body)
        found.setdefault(index, {})[parent] = (read_kind(body, rtnl.TC.size), handle, body)
    return found


def port_faults(netlink: Netlink, found: Qdiscs, name: str, ifindex: int, rate_bps: float, limit_bytes: int,
                mtu: int, queueing: Queueing) -> list[str]:
    """A sentence for each way in which the port's queues are not as `port_messages` made them."""
    port = shape(rate_bps, mtu, limit_bytes)
    qdiscs = found.get(ifindex, {})
    kind, handle, _ = qdiscs.get(H_ROOT, ("nothing", 0, b""))
    if kind != "htb" or handle != ROOT:
        return [f"{name} is not shaped any more: its root qdisc is {kind} instead of htb."]
    classes = {handle: body for body in netlink.dump(rtnl.GET_CLASS, rtnl.TC.pack(0, ifindex, 0, 0, 0))
               if (handle := rtnl.TC.unpack_from(body)[2]) >> 16 == ROOT >> 16}  # a TBF has a class too
    whole = CLASS if len(queueing.classes) == 1 else PARENT
    handles = {CLASS + number for number in range(len(queueing.classes))} | {whole}
    if set(classes) != handles:
        return [f"{name} has {len(classes)} HTB classes instead of {len(handles)}."]
    faults = []
    for real in read_class(classes[whole], rtnl.TC.size, port.limit_bytes):
        if real != port:
            faults.append(f"{name} has {real} instead of {port}.")
            break
    if len(queueing.classes) > 1:
        for number, expected in enumerate(service(queueing, port.quantum_bytes)):
            found_service = _read_service(classes[CLASS + number])
            if found_service != expected:
                faults.append(f"Class {number} of {name} is served with quantum and priority {found_service} "
                              f"instead of {expected}.")
    for number, limit in enumerate(limits(queueing, port.limit_bytes, port.quantum_bytes)):
        kind, handle, body = qdiscs.get(CLASS + number, ("nothing", 0, b""))
        if kind != ("tbf" if queueing.pausable else "bfifo") or handle != LEAF + (number << 16):
            faults.append(f"The queue of class {number} of {name} is {kind} {handle >> 16:x}:.")
        elif _read_limit(kind, body) != limit:
            faults.append(f"The queue of class {number} of {name} holds {_read_limit(kind, body)} bytes "
                          f"instead of {limit}.")
    return faults


def _read_service(body: bytes) -> tuple[int, int]:
    """(quantum in bytes, prio) of an HTB class: struct tc_htb_opt, include/uapi/linux/pkt_sched.h."""
    parms = attributes(attributes(body, rtnl.TC.size)[_TCA_OPTIONS])[_HTB_PARMS]
    quantum, _, prio = struct.unpack_from("=3I", parms, 2 * _RATESPEC.size + 8)
    return quantum, prio


def _read_limit(kind: str, body: bytes) -> int:
    options = attributes(body, rtnl.TC.size)[_TCA_OPTIONS]
    if kind == "bfifo":
        return struct.unpack_from("=I", options)[0]
    return struct.unpack_from("=I", attributes(options)[_TBF_PARMS], 2 * _RATESPEC.size)[0]
