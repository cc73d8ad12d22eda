"""The `bpf` switches of a run: put on the fabric, given to their agent, asked for paths and losses.

The counterpart of emulator/fabric/ovs.py; `emulator.session` uses either through the same few methods.
"""
from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path

from controllers.external import external_address
from controllers.routing import plan_tables
from controllers.tables import Group, SwitchTables
from controllers.walk import TCP, UDP, Forwarding, Packet
from emulator.asic.agentprocess import AgentProcess, start_agent
from emulator.asic.assemble import assemble, faults, sites
from emulator.asic.biterrors import BIT_ERROR, lost_packets, set_everywhere
from emulator.asic.chip import Chip, PortSite, SwitchSite, open_chip
from emulator.asic.datapath import BpfDatapath
from emulator.asic.groupcounts import fed_by_groups_alone, group_packets
from emulator.asic.hashing import Flow, group_seed, hashed_member
from emulator.asic.hosts import host_faults, reweigh_hosts, send, shape_hosts
from emulator.asic.layout import CAUSES
from emulator.asic.queueing import Queueing
from emulator.asic.pauserprocess import Pauser, start_pauser
from emulator.asic.recorder import Recorder
from emulator.asic.shaper import class_messages
from emulator.asic.sizes import sizes_for
from emulator.classes import ClassTable
from emulator.errors import BadInput, EmulatorError
from emulator.fabric.build import Fabric
from emulator.fabric.spec import ETHERNET_BYTES
from emulator.fabric.switches import openflow_target
from emulator.fabric.verify import verify_links, wait_until_verified

LOG_LINES = 200
# frames of our own; copies to the controller; what `--loss` asked for, which bit_errors tells
_NO_LOSS = ("kick", "packet_ins_lost", BIT_ERROR)


class BpfSwitches:
    """All `bpf` switches of `fabric`, forwarding under the controller at the agent's other end."""

    def __init__(self, fabric: Fabric, chip: Chip, queueing: Queueing, agent: AgentProcess,
                 tables: Mapping[int, SwitchTables] | None, classes: ClassTable | None = None) -> None:
        """tables: what our controller installs, None under another. classes: where `queueing` came from."""
        self.classes = classes
        self.bit_error_rate = 0.0
        self._pauser: Pauser | None = None
        self.fabric, self.chip, self.queueing, self._agent = fabric, chip, queueing, agent
        self._forwarding = None if tables is None else Forwarding(fabric.spec.graph, tables)
        self._by_groups = fed_by_groups_alone((tables or {}).values())

    def path(self, source: str, destination: str, protocol: str, source_port: int,
             destination_port: int) -> tuple[str, ...]:
        """The interfaces that send a packet from host to host, by the tables that the controller read
        back and the switch's own hash; empty where packets of a flow take several paths, or where
        another controller decides.
        """
        if self._forwarding is None:
            return ()
        host = self.fabric.spec.graph.host
        number = {"tcp": TCP, "udp": UDP}[protocol]
        packet = Packet(host[source].ip, host[destination].ip, source_port, destination_port, number)
        try:
            walk = self._forwarding.walk(packet, source, _choose)
        except _ManyPaths:
            return ()
        if not walk.delivered:
            raise EmulatorError(f"Packets from {source} to {destination}: {walk.ended}.")
        ports = {(port.link, port.node): port.name for port in self.fabric.ports}
        return tuple(ports[direction] for direction in walk.directions)

    def group_packets(self) -> Mapping[str, int]:
        """Interface -> packets that select groups sent out of it since the start, where only they do."""
        return group_packets(self.chip, self._by_groups)

    def losses(self) -> dict[str, int]:
        """Packets that the switches refused, by cause, since the start: none of them is a queue's."""
        rows = list(self.chip.site)
        totals = self.chip.drops["packets"][rows].sum(axis=0)
        return {f"refused by bpf switches: {cause}": int(total)
                for cause, total in zip(CAUSES, totals, strict=True) if cause not in _NO_LOSS}

    def set_bit_error_rate(self, rate: float) -> None:
        """Lose packets of every link, both ways, as if each bit flipped with this chance."""
        set_everywhere(self.chip, self.fabric, rate)
        self.bit_error_rate = rate

    def bit_errors(self) -> dict[str, int]:
        """Switch port -> packets of its link lost to bit errors since the start."""
        return lost_packets(self.chip)

    def link_faults(self) -> list[str]:
        """A sentence for each port that is not as it was built."""
        of_hosts = [] if self.fabric.spec.plain_hosts else host_faults(self.fabric, self.queueing)
        return verify_links(self.fabric) + faults(self.fabric, self.queueing) + of_hosts

    def change_class(self, name: str, weight: int) -> None:
        """Give a class another weight on every port of the fabric, while traffic runs.

        Raises BadInput where there is no such class or weight.
        """
        if self.classes is None:
            raise BadInput("This fabric has no classes; start it with --classes default.")
        spec = self.fabric.spec
        table = self.classes.with_weight(name, weight)
        number, before = table.number(name), self.queueing.classes
        changed = replace(self.queueing, classes=(*before[:number], replace(before[number], weight=weight),
                                                  *before[number + 1:]))
        for port in self.fabric.switch_ports:
            send(class_messages(port.ifindex, port.rate_bps, port.limit_bytes, spec.mtu, changed), port.name)
        reweigh_hosts(self.fabric, changed)
        self.classes, self.queueing = table, changed

    def class_counts(self) -> list[tuple[int, int]]:
        """(bytes sent, packets dropped) of each class over all switch ports, by the kernel's count now."""
        for ifindex in self.chip.site:
            self.chip.observe(ifindex)
        counts = []
        for number in range(self.chip.classes):
            queues = [self.chip.queue(ifindex, number) for ifindex in self.chip.site]
            sent, dropped = (sum(int(q[name]) for q in queues) for name in ("sent_bytes", "dropped_packets"))
            counts.append((sent, dropped))
        return counts

    def record(self) -> Recorder:
        """Start recording every queue, packet by packet."""
        return Recorder(self.chip, self._pauser)

    def watch(self, pauser: Pauser) -> None:
        """Let `pauser` keep lossless classes from overflowing, to the end of the switches."""
        self._pauser = pauser

    def failure(self) -> str | None:
        """None while the agent and the pauser live, else a sentence."""
        return self._agent.failure() or (self._pauser.failure() if self._pauser else None)

    def log_tail(self) -> str:
        """The end of the agent's log."""
        return self._agent.tail(LOG_LINES)

    def stop(self) -> None:
        """End the agent and let go of the programs; the ports keep them until the sandbox ends."""
        if self._pauser:
            self._pauser.stop()
        self._agent.stop()
        self.chip.close()


class _ManyPaths(Exception):
    """A group chooses anew for each packet or flowlet: there is no one path."""


def _choose(group: Group, packet: Packet) -> int:
    if group.selection.method != "hash":
        raise _ManyPaths
    flow = Flow(int(ipaddress.IPv4Address(packet.ipv4_src)), int(ipaddress.IPv4Address(packet.ipv4_dst)),
                packet.ip_proto, packet.l4_src, packet.l4_dst)
    member = hashed_member(flow, group_seed(group.selection.param, 0),
                           tuple(bucket.weight for bucket in group.buckets))
    if member is None:
        raise EmulatorError(f"Group {group.id} has no member with a weight.")
    return member


def start(fabric: Fabric, queueing: Queueing, routing: str, controller_port: int, run_dir: Path,
          classes: ClassTable | None = None) -> BpfSwitches:
    """Programs on all switch ports of a built fabric, and an agent that connects them to the controller.

    Raises BadInput for queues that cannot be, MachineLacks where the kernel refuses the programs.
    """
    frame = fabric.spec.mtu + ETHERNET_BYTES
    ours = external_address(routing) is None
    # what another controller will install is not known: it gets the room that ECMP would
    tables = plan_tables(fabric.spec.graph, routing if ours else "ecmp", fabric.spec.seed)
    chip = assemble(fabric, queueing, sizes=sizes_for(tables.values()))
    if not fabric.spec.plain_hosts:
        shape_hosts(fabric, queueing)
    wait_until_verified(fabric)
    argument = {"handles": chip.handles, "switches": [_as_json(site) for site in sites(fabric)]}
    listen = {switch.dpid: openflow_target(fabric.spec, switch.name) for switch in fabric.spec.graph.switches}
    agent = start_agent("emulator.asic.switches:open_datapath", argument, ("127.0.0.1", controller_port),
                        listen, run_dir)
    made = BpfSwitches(fabric, chip, queueing, agent, tables if ours else None, classes)
    if queueing.pausable:
        made.watch(start_pauser(fabric, queueing, classes.pause_thresholds(
            fabric.spec.graph, fabric.spec.rate_bps, fabric.spec.buffer_bytes, frame, fabric.spec.delay_s),
            argument, run_dir))
    return made


def open_datapath(argument: dict) -> BpfDatapath:
    """In the agent's process: the datapath over the maps that `start` made."""
    switches = [SwitchSite(site["dpid"], site["seed"], tuple(
        PortSite(**{**port, "mac": bytes.fromhex(port["mac"])}) for port in site["ports"]))
        for site in argument["switches"]]
    return BpfDatapath(open_chip(switches, argument["handles"]))


def _as_json(site: SwitchSite) -> dict:
    return {"dpid": site.dpid, "seed": site.seed,
            "ports": [{**asdict(port), "mac": port.mac.hex()} for port in site.ports]}
