"""Are all links still what the plan says? Read back by netlink, after building and after a run.

A shaper that somebody removed or altered (Open vSwitch does it when a port is added without its own
QoS type) makes every number of a run worthless, so it is looked for and never assumed.
"""
from __future__ import annotations

import struct
import time
from collections.abc import Iterable
from contextlib import nullcontext

from emulator import netns
from emulator.errors import EmulatorError
from emulator.fabric import link as shaping
from emulator.fabric import rtnl
from emulator.fabric.build import Fabric, shapes
from emulator.fabric.spec import Port
from emulator.netlink import Netlink

_OPERSTATE, _UP = 16, 6  # IFLA_OPERSTATE, IF_OPER_UP (RFC 2863)


def verify_links(fabric: Fabric) -> list[str]:
    """A sentence for each port that is not as planned; an empty list when all are.

    Checked of every port: it exists under its ifindex, is up with carrier, has the MTU and a single
    queue. Checked of every shaped port (`Fabric.shaped_ports`) in addition: HTB is its root and sends
    everything through one class of the planned rate, burst and quantum, whose leaf has the planned limit.
    """
    expected = shapes(fabric.spec)
    shaped = {port.name for port in fabric.shaped_ports}
    faults: list[str] = []
    with Netlink() as netlink:
        faults += _check_namespace(netlink, fabric, fabric.switch_ports, shaped, expected)
    for port in fabric.ports:
        if port.netns is not None:
            with netns.entered(port.netns), Netlink() as netlink:
                faults += _check_namespace(netlink, fabric, (port,), shaped, expected)
    return faults


def shaped_rates_bps(fabric: Fabric) -> dict[str, float | None]:
    """Interface -> rate of its HTB class in b/s as the kernel has it, None where there is none."""
    rates: dict[str, float | None] = {}
    for port in fabric.ports:
        with netns.entered(port.netns) if port.netns else nullcontext(), Netlink() as netlink:
            bodies = list(netlink.dump(rtnl.GET_CLASS, rtnl.TC.pack(0, port.ifindex, 0, 0, 0)))
        classes = {rtnl.TC.unpack_from(body)[2]: body for body in bodies}
        body = classes.get(shaping.PARENT, classes.get(shaping.CLASS))
        rates[port.name] = None if body is None else 8.0 * shaping.read_class(
            body, rtnl.TC.size, port.limit_bytes)[0].rate_bytes_per_s
    return rates


def wait_until_verified(fabric: Fabric, timeout_s: float = 10.0) -> None:
    """Wait for the carriers (the kernel announces them a little late), then demand that all is as planned.

    Raises EmulatorError with the first faults.
    """
    end_s = time.monotonic() + timeout_s
    while faults := verify_links(fabric):
        if time.monotonic() > end_s or not all("carrier" in fault for fault in faults):
            shown = " ".join(faults[:5])
            more = f" And {len(faults) - 5} more." if len(faults) > 5 else ""
            raise EmulatorError(f"The fabric does not stand as planned. {shown}{more}")
        time.sleep(0.02)


def _check_namespace(netlink: Netlink, fabric: Fabric, ports: Iterable[Port], shaped: set[str],
                     expected: dict[int, shaping.Shape]) -> list[str]:
    """The faults of `ports`, all in the namespace of `netlink`."""
    links, qdiscs = rtnl.links(netlink), _qdiscs(netlink)
    faults = []
    for port in ports:
        found = _link_faults(port, links, fabric.spec.mtu)
        if not found and port.name in shaped:
            found = _queue_faults(netlink, port, qdiscs.get(port.ifindex, {}), expected[port.link])
        faults += found
    return faults


def _link_faults(port: Port, links: dict, mtu: int) -> list[str]:
    if port.name not in links:
        return [f"{port.name} is gone."]
    ifindex, flags, found = links[port.name]
    if ifindex != port.ifindex:
        return [f"{port.name} was replaced by another link (index {ifindex} for {port.ifindex})."]
    faults = []
    if not flags & rtnl.IFF_UP:
        faults.append(f"{port.name} is down.")
    elif not flags & rtnl.IFF_LOWER_UP or found[_OPERSTATE][0] != _UP:
        faults.append(f"{port.name} has no carrier.")
    for kind, name, value in ((rtnl.IFLA_MTU, "an MTU", mtu), (rtnl.IFLA_TX_QUEUES, "transmit queues", 1),
                              (rtnl.IFLA_RX_QUEUES, "receive queues", 1),
                              (rtnl.IFLA_GSO_MAX_SEGS, "segments to a packet", 1)):
        real = struct.unpack("=I", found[kind])[0]
        if real != value:
            faults.append(f"{port.name} has {name} of {real} instead of {value}.")
    return faults


def _qdiscs(netlink: Netlink) -> dict[int, dict[int, tuple[str, int, bytes]]]:
    """ifindex -> parent -> (kind, handle, body) of every qdisc of the namespace, without ingress hooks."""
    table: dict[int, dict[int, tuple[str, int, bytes]]] = {}
    for body in netlink.dump(rtnl.GET_QDISC, rtnl.TC.pack(0, 0, 0, 0, 0)):
        _, ifindex, handle, parent, _ = rtnl.TC.unpack_from(body)
        kind = shaping.read_kind(body, rtnl.TC.size)
        if kind not in ("clsact", "ingress"):
            table.setdefault(ifindex, {})[parent] = (kind, handle, body)
    return table


def _queue_faults(netlink: Netlink, port: Port, qdiscs: dict, expected: shaping.Shape) -> list[str]:
    kind, handle, root = qdiscs.get(shaping.H_ROOT, ("nothing", 0, b""))
    if kind != "htb" or handle != shaping.ROOT:
        return [f"{port.name} is not shaped any more: its root qdisc is {kind} instead of htb."]
    default, direct_packets = shaping.read_root(root, rtnl.TC.size)
    if default != shaping.CLASS & 0xFFFF:
        return [f"The HTB of {port.name} sends to class {default:#x} instead of 0x1."]
    faults = []
    if direct_packets:
        faults.append(f"{direct_packets} packets of {port.name} went around its shaper.")
    kind, _, body = qdiscs.get(shaping.CLASS, ("nothing", 0, b""))
    if kind != "bfifo":
        return [*faults, f"The queue of {port.name} is {kind} instead of bfifo."]
    limit_bytes = shaping.read_limit(body, rtnl.TC.size)
    classes = {}
    for body in netlink.dump(rtnl.GET_CLASS, rtnl.TC.pack(0, port.ifindex, 0, 0, 0)):
        classes[rtnl.TC.unpack_from(body)[2]] = body
    if set(classes) != {shaping.CLASS}:
        return [*faults, f"{port.name} has {len(classes)} HTB classes instead of 1."]
    for real in shaping.read_class(classes[shaping.CLASS], rtnl.TC.size, limit_bytes):
        if real != expected:
            faults.append(f"{port.name} has {real} instead of {expected}.")
            break
    return faults
