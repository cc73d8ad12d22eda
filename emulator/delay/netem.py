"""The delay of links by the kernel's netem: no process, and no packet leaves the kernel.

Between the two inner ends of a link a tc program redirects what comes in at one to the other, whose root
qdisc is netem with the link's delay: no jitter, no loss, and room for more than the link can hold. So netem
stands alone behind the shaper of a port, never in its HTB tree. A tracepoint on departures measures how late
they are (bpf/delay.bpf.c), as the switch measures its queues.
"""
from __future__ import annotations

import math
import os
import struct
from collections.abc import Iterable

import numpy as np

from emulator import netns
from emulator.asic.build import object_path
from emulator.asic.objects import INGRESS, Object, open_object, tc_attach, tc_hook
from emulator.delay.record import CROSSINGS, NETEM_COUNTERS, DelayRecord, netem_record
from emulator.errors import EmulatorError
from emulator.fabric import rtnl
from emulator.fabric.spec import ETHERNET_BYTES, FabricSpec, Port
from emulator.fabric.veths import DELAY_NETNS, inner_end, send
from emulator.netlink import Message, Netlink, attribute, attributes, text
from emulator.telemetry.links import read_links
from emulator.telemetry.qdisc import QueueReader

HANDLE, _ROOT = 0x10000, 0xFFFFFFFF
SMALLEST_PACKET_BYTES = 20 + ETHERNET_BYTES  # an IPv4 header and its frame's
_SPARE_PACKETS = 1000
_TCA_KIND, _TCA_OPTIONS, _LATENCY64 = 1, 2, 10  # TCA_NETEM_LATENCY64: nanoseconds
_QOPT = struct.Struct("=6I")  # struct tc_netem_qopt: latency (ticks), limit, loss, gap, duplicate, jitter
_LATENCY = struct.Struct("=q")
_SETTINGS = np.dtype([("delay_ns", "<u8"), ("netns", "<u4"), ("pad", "<u4")])


def limit_packets(rate_bps: float, delay_s: float) -> int:
    """More packets than a link of this rate can hold, however small; netem drops what exceeds it."""
    return math.ceil(rate_bps * delay_s / 8 / SMALLEST_PACKET_BYTES) + _SPARE_PACKETS


def options(delay_s: float, limit: int) -> bytes:
    """Attributes of a netem that does nothing but delay (net/sched/sch_netem.c)."""
    latency = attribute(_LATENCY64, _LATENCY.pack(round(delay_s * 1e9)))
    return text(_TCA_KIND, "netem") + attribute(_TCA_OPTIONS, _QOPT.pack(0, limit, 0, 0, 0, 0) + latency)


def read_options(body: bytes, start: int) -> tuple[str, tuple[int, ...], int | None]:
    """(kind, limit and what else netem does to packets, delay in ns) of a qdisc from its attributes."""
    found = attributes(body, start)
    kind = found.get(_TCA_KIND, b"").rstrip(b"\0").decode()
    if kind != "netem":
        return kind, (), None
    _, *others = _QOPT.unpack_from(found[_TCA_OPTIONS])
    told = attributes(found[_TCA_OPTIONS], _QOPT.size)
    return kind, tuple(others), _LATENCY.unpack(told[_LATENCY64])[0]


class Netem:
    """The delay of a standing fabric's links; it goes with the namespace of their inner ends."""

    WAY = "netem"

    def __init__(self, spec: FabricSpec, ports: Iterable[Port]) -> None:
        self._delay_s = spec.delay_s
        # what comes from a port leaves by the other inner end, at the rate of that same link
        self._limits = {inner_end(port.ifindex): limit_packets(port.rate_bps, spec.delay_s) for port in ports}
        settings = np.zeros(1, _SETTINGS)
        settings["delay_ns"] = round(spec.delay_s * 1e9)
        settings["netns"] = os.stat(netns.DIRECTORY / DELAY_NETNS).st_ino
        self._object: Object = open_object(object_path("delay"), settings=settings.tobytes())
        self._crossed = self._object.map("crossed").array(CROSSINGS)
        self._object.attach("left")
        self._delay_links()
        self._queues = QueueReader([(DELAY_NETNS, ifindex) for ifindex in self._limits])
        fault = self.failure()
        if fault:
            raise EmulatorError(fault)

    def _delay_links(self) -> None:
        with netns.entered(DELAY_NETNS):
            with Netlink() as netlink:
                send(netlink, [rtnl.qdisc(ifindex, HANDLE, _ROOT, options(self._delay_s, limit))
                               for ifindex, limit in self._limits.items()], "the delay of the links")
            for ifindex in self._limits:
                tc_hook(ifindex)
            for ifindex in self._limits:
                tc_attach(ifindex, self._object.program("across"), INGRESS)

    def counters(self) -> np.void:
        """What crossed the links since their start (NETEM_COUNTERS), a copy; arrivals are read first, so that
        a packet between two readings is not taken for a lost one.
        """
        counted = np.zeros((), NETEM_COUNTERS)
        counted["arrived"] = self._crossed["arrived"][0]
        queues, links = self._queues.read(), read_links(DELAY_NETNS)
        counted["sent"], counted["queued"] = queues.sent_packets.sum(), queues.queued_packets.sum()
        counted["dropped"] = queues.dropped_packets.sum()
        counted["refused"] = sum(links[ifindex].tx_dropped for ifindex in self._limits)
        counted["late"] = self._crossed["late"][0]
        return counted[()]

    def since(self, before: np.void) -> DelayRecord:
        """What it did since `before`."""
        return netem_record(self._delay_s, before, self.counters(), self.failure() or "")

    def failure(self) -> str | None:
        """None while each link has its delay as it was set, else a sentence."""
        found: dict[int, tuple[str, tuple[int, ...], int | None]] = {}
        with netns.entered(DELAY_NETNS), Netlink() as netlink:
            for body in netlink.dump(rtnl.GET_QDISC, rtnl.TC.pack(0, 0, 0, 0, 0)):
                _, ifindex, _, parent, _ = rtnl.TC.unpack_from(body)
                if parent == _ROOT:
                    found[ifindex] = read_options(body, rtnl.TC.size)
        for ifindex, limit in self._limits.items():
            wanted = "netem", (limit, 0, 0, 0, 0), round(self._delay_s * 1e9)
            if found.get(ifindex) != wanted:
                return (f"The link with the inner end {ifindex} has {found.get(ifindex)} for its delay, where "
                        f"{wanted} was set: somebody changed it.")
        return None

    def stop(self) -> None:
        """Let go of the programs; the links keep their delay until their namespace goes."""
        self._queues.close()
        self._object.close()


def probe_message() -> Message:
    """Give the loopback of a scratch namespace a netem, which tells whether the kernel has it and its options."""
    return rtnl.qdisc(1, HANDLE, _ROOT, options(0.001, _SPARE_PACKETS))
