"""The BPF programs of all switches of a fabric: loaded, put on the ports, and their maps at hand.

`install` loads and attaches them (the process of the run); `open_chip` opens the same maps from another
process (the OpenFlow agent) by their kernel-wide numbers, so nothing is pinned. The programs hang on the
ports' tc hooks and go when their namespace goes, whoever died before.
"""
from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from emulator.asic import layout
from emulator.asic.biterrors import check_bit_errors
from emulator.asic.build import object_path
from emulator.asic.gate import KICK, Gate
from emulator.asic.maps import Map
from emulator.asic.objects import (EGRESS, INGRESS, Object, open_object, open_program, program_id, tc_attach,
                                   tc_hook, test_run)
from emulator.asic.queueing import Queueing, limits
from emulator.asic.sizes import Sizes
from emulator.errors import EmulatorError, MachineLacks
from emulator.fabric.spec import ETHERNET_BYTES

SAMPLE_GAP_NS = 250_000  # depth over time at no more than 4 kHz a queue
_SAMPLES = 1 << 18  # of all queues together, between two reads; 4 MB
_PROBE_FRAME = bytes(64)
_RUN_BYTES = 2048  # of a frame that goes with a test run, which has room for a page less its own needs
_NOT_SENT = 0xFFFFFFFF


@dataclass(frozen=True)
class PortSite:
    """A port of a switch as it stands in this namespace; `mac` as six bytes."""

    number: int
    name: str
    ifindex: int
    mac: bytes
    rate_bps: float
    limit_bytes: int


@dataclass(frozen=True)
class SwitchSite:
    """A switch: its datapath id, the seed of its hash where a group brings none, its ports."""

    dpid: int
    seed: int
    ports: tuple[PortSite, ...]


class Chip:
    """The maps of the programs, and `observe`, which copies the kernel's own numbers into them.

    The arrays are live: they change while packets flow.
    """

    def __init__(self, switches: Sequence[SwitchSite], maps: Mapping[str, Map], programs: Mapping[str, int],
                 classes: int, sizes: Sizes, objects: Sequence[Object] = ()) -> None:
        self.switches, self.maps, self.classes, self.sizes = tuple(switches), dict(maps), classes, sizes
        self.programs, self._objects = dict(programs), list(objects)
        self.ports = self.maps["ports"].array(layout.PORT)
        self.queues = self.maps["queues"].array(layout.QUEUE)
        self.drops = self.maps["drops"].array(layout.DROPS)
        self.site = {port.ifindex: port for switch in self.switches for port in switch.ports}

    @property
    def handles(self) -> dict:
        """What `open_chip` needs in another process, as plain data for JSON."""
        return {"maps": {name: each.id for name, each in self.maps.items()},
                "programs": {name: program_id(fd) for name, fd in self.programs.items()},
                "classes": self.classes,
                "sizes": [self.sizes.rules, self.sizes.groups, self.sizes.buckets]}

    def queue(self, ifindex: int, traffic_class: int = 0) -> np.void:
        """The live QUEUE record of one class of one port."""
        return self.queues[ifindex * self.classes + traffic_class]

    def observe(self, ifindex: int) -> None:
        """Bring sent, dropped and held of the port's queues up to the kernel's present numbers.

        Raises EmulatorError if a queue is gone or was replaced since the last look.
        """
        found, _ = test_run(self.programs["observe"], _PROBE_FRAME, ifindex)
        if found != self.classes:
            what = "was replaced" if found == 0xFFFFFFFF else f"has {found} queues, not {self.classes}"
            raise EmulatorError(f"The shaping of {self.site[ifindex].name} {what} behind the switch's back.")

    def set_rate(self, ifindex: int, rate_bps: float) -> None:
        """Tell the programs that a port now sends at another rate; its shaper is changed elsewhere."""
        self.ports[ifindex]["bytes_per_ns_q32"] = round(rate_bps / 8e9 * 2**32)
        self.ports[ifindex]["ns_per_byte_q16"] = round(8e9 / rate_bps * 2**16)

    def set_bit_error_rate(self, ifindex: int, received: float = 0.0, sent: float = 0.0) -> None:
        """Lose packets of the port's link as if each bit flipped with this chance, in either direction.

        `received` strikes after the packet used the link, `sent` before it is queued, so for a link
        between two switches set `received` at each end and leave `sent` to links to hosts.
        """
        for rate in (received, sent):
            check_bit_errors(rate, int(self.ports[ifindex]["largest_frame"]))
        self.ports[ifindex]["loss_in_q48"] = round(received * 8 * 2**48)
        self.ports[ifindex]["loss_out_q48"] = round(sent * 8 * 2**48)

    def pause(self, ifindex: int, traffic_class: int) -> None:
        """Hold the packets of a class (at most one more leaves); no-op if it is paused already.

        Raises EmulatorError if the ports were not shaped as pausable.
        """
        port, bit = self.ports[ifindex], 1 << traffic_class
        if not int(port["paused"]) & bit:
            port["paused"] |= np.uint32(bit)  # first, so that no gap is judged while the gate is shut
            self._gate.pause(ifindex, traffic_class, int(port["limit_bytes"][traffic_class]),
                             int(port["largest_frame"]))

    def resume(self, ifindex: int, traffic_class: int) -> bool:
        """Let a paused class send again; no-op if it is not paused. True where that took a KICK frame."""
        kicked = False
        port, bit = self.ports[ifindex], 1 << traffic_class
        if int(port["paused"]) & bit:
            self.observe(ifindex)
            self._gate.resume(ifindex, traffic_class, int(port["limit_bytes"][traffic_class]))
            if self.queue(ifindex, traffic_class)["held_packets"]:
                self.emit(ifindex, KICK, traffic_class)
                kicked = True
            port["paused"] &= ~np.uint32(bit)
        return kicked

    @cached_property
    def _gate(self) -> Gate:
        return Gate()

    def emit(self, ifindex: int, frame: bytes, traffic_class: int | None = None) -> None:
        """Send `frame` out of a port through its queue, as if it was forwarded.

        The class is the one given, else by DSCP. Raises ValueError for a frame that is no Ethernet frame or
        larger than the port's. Only one process may send frames of more than 2 kB.
        """
        largest = int(self.ports[ifindex]["largest_frame"])
        if not ETHERNET_BYTES <= len(frame) <= largest:
            raise ValueError(f"a frame of {len(frame)} bytes cannot be sent: {self.site[ifindex].name} takes "
                             f"{ETHERNET_BYTES} to {largest} bytes.")
        priority = 0 if traffic_class is None else layout.QUEUE_CHOSEN | traffic_class
        first, rest = frame[:_RUN_BYTES], frame[_RUN_BYTES:]
        if rest:
            self._rest["bytes"][0, :len(rest)] = np.frombuffer(rest, np.uint8)
        try:
            status, _ = test_run(self.programs["emit"], first, ifindex, priority, mark=len(rest))
        except MachineLacks as error:
            raise ValueError(f"a frame of {len(frame)} bytes cannot be sent: {error}") from error
        if status == _NOT_SENT:
            raise ValueError(f"a frame of {len(frame)} bytes cannot be sent: the kernel lacks the memory.")

    @cached_property
    def _rest(self) -> np.ndarray:
        return self.maps["rest"].array(layout.REST)

    def close(self) -> None:
        """Let go of maps and programs; programs on ports stay until their namespace goes."""
        if "_gate" in self.__dict__:
            self._gate.close()
        for each in self._objects:
            each.close()
        self._objects.clear()


def install(switches: Sequence[SwitchSite], queueing: Queueing, mtu: int, telemetry: bool = True,
            sizes: Sizes = Sizes()) -> Chip:
    """Load the programs and put them on every port of `switches`, whose queues are already shaped.

    Call it in the namespace of the ports. Until tables are put in force every packet is dropped.
    Raises MachineLacks where the kernel refuses the programs, EmulatorError where a port is not shaped.
    """
    ports = [port for switch in switches for port in switch.ports]
    count = max(port.ifindex for port in ports) + 1
    classes = len(queueing.classes)
    settings = np.zeros((), layout.SETTINGS)
    settings["classes"], settings["telemetry"] = classes, telemetry
    settings["netns"] = os.stat("/proc/self/ns/net").st_ino
    settings["ports"], settings["samples"], settings["sample_gap_ns"] = count, _SAMPLES, SAMPLE_GAP_NS
    n, cpus = len(switches), os.sysconf("SC_NPROCESSORS_CONF")
    settings["rule_counts"], settings["bucket_counts"] = n * sizes.rules, n * sizes.buckets
    settings["crossings"] = queueing.pausable
    constant = settings.tobytes()
    forward = open_object(object_path("forward"), settings=constant, max_entries={
        "ports": count, "drops": count, "switches": n, "flowlets": n * layout.FLOWLET_SLOTS,
        "groups": n * sizes.groups + 1, "rule_counts": cpus * n * sizes.rules,
        "bucket_counts": cpus * n * sizes.buckets,
        "rules": 2 * n * sizes.rules})
    objects, maps = [forward], {name: forward.map(name) for name in (
        "ports", "drops", "switches", "groups", "rule_counts", "bucket_counts", "rules", "packet_ins")}
    queue = open_object(object_path("queue"), settings=constant, reuse=maps, max_entries={
        "queues": count * classes, "samples": _SAMPLES,
        "crossings": count * layout.MAX_CLASSES * layout.INGRESS_PORTS if queueing.pausable else 1})
    objects.append(queue)
    maps |= {name: queue.map(name) for name in ("queues", "samples", "sample_head", "crossings", "rest")}
    if telemetry:
        watch = open_object(object_path("telemetry"), settings=constant, reuse=maps,
                            max_entries={"departures": count})
        objects.append(watch)
        maps["departures"] = watch.map("departures")
    programs = {"forward": forward.program("forward")} | {
        name: queue.program(name) for name in ("queue", "observe", "emit")}
    chip = Chip(switches, maps, programs, classes, sizes, objects)
    for index, switch in enumerate(switches):
        for port in switch.ports:
            chip.ports[port.ifindex] = _port_record(index, port, queueing, mtu)
    for port in ports:
        tc_hook(port.ifindex)
    for port in ports:
        tc_attach(port.ifindex, programs["forward"], INGRESS)
        tc_attach(port.ifindex, programs["queue"], EGRESS)
        chip.observe(port.ifindex)
    if telemetry:
        watch.attach("dequeued")
    return chip


def open_chip(switches: Sequence[SwitchSite], handles: Mapping) -> Chip:
    """The chip that another process installed; call it in the namespace of the ports."""
    maps = {name: Map.open(name, number) for name, number in handles["maps"].items()}
    programs = {name: open_program(number) for name, number in handles["programs"].items()}
    return Chip(switches, maps, programs, handles["classes"], Sizes(*handles["sizes"]))


def _port_record(switch_index: int, port: PortSite, queueing: Queueing, mtu: int) -> np.ndarray:
    record = np.zeros((), layout.PORT)
    record["in_use"], record["switch_index"], record["number"] = 1, switch_index, port.number
    record["bytes_per_ns_q32"] = round(port.rate_bps / 8e9 * 2**32)
    record["ns_per_byte_q16"] = round(8e9 / port.rate_bps * 2**16)
    record["largest_frame"] = mtu + ETHERNET_BYTES
    record["mark_bytes"][:len(queueing.classes)] = [each.mark_bytes or 0 for each in queueing.classes]
    record["limit_bytes"][:len(queueing.classes)] = limits(queueing, port.limit_bytes, mtu + ETHERNET_BYTES)
    record["class_of_dscp"] = queueing.class_of_dscp
    return record
