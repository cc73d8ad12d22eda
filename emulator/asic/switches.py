"""The `bpf` switches of a run: put on the fabric, given to their agent, asked for paths and losses.

The counterpart of emulator/fabric/ovs.py; `emulator.session` uses either through the same few methods.
"""
from __future__ import annotations

import ipaddress
from dataclasses import asdict
from pathlib import Path

from controllers.external import external_address
from controllers.routing import plan_tables
from controllers.tables import Group
from controllers.walk import TCP, UDP, Forwarding, Packet
from emulator.asic.agentprocess import AgentProcess, start_agent
from emulator.asic.assemble import assemble, faults, sites
from emulator.asic.chip import Chip, PortSite, SwitchSite, open_chip
from emulator.asic.datapath import BpfDatapath
from emulator.asic.hashing import Flow, group_seed, hashed_member
from emulator.asic.layout import CAUSES
from emulator.asic.queueing import Queueing
from emulator.asic.recorder import Recorder
from emulator.errors import EmulatorError
from emulator.fabric.build import Fabric
from emulator.fabric.switches import openflow_target
from emulator.fabric.verify import verify_links, wait_until_verified

_NO_LOSS = ("kick", "packet_ins_lost")  # frames of our own; copies to the controller


class BpfSwitches:
    """All `bpf` switches of `fabric`, forwarding under the controller at the agent's other end."""

    def __init__(self, fabric: Fabric, chip: Chip, queueing: Queueing, agent: AgentProcess, routing: str) -> None:
        self.fabric, self.chip, self.queueing, self._agent = fabric, chip, queueing, agent
        graph, seed = fabric.spec.graph, fabric.spec.seed
        ours = external_address(routing) is None
        self._forwarding = Forwarding(graph, plan_tables(graph, routing, seed)) if ours else None

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

    def losses(self) -> dict[str, int]:
        """Packets that the switches refused, by cause, since the start: none of them is a queue's."""
        rows = list(self.chip.site)
        totals = self.chip.drops["packets"][rows].sum(axis=0)
        return {f"refused by bpf switches: {cause}": int(total)
                for cause, total in zip(CAUSES, totals, strict=True) if cause not in _NO_LOSS}

    def link_faults(self) -> list[str]:
        """A sentence for each port that is not as it was built."""
        return verify_links(self.fabric) + faults(self.fabric, self.queueing)

    def record(self) -> Recorder:
        """Start recording every queue, packet by packet."""
        return Recorder(self.chip)

    def failure(self) -> str | None:
        """None while the agent lives, else a sentence."""
        return self._agent.failure()

    def log_tail(self) -> str:
        """The end of the agent's log."""
        return self._agent.tail()

    def stop(self) -> None:
        """End the agent and let go of the programs; the ports keep them until the sandbox ends."""
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


def start(fabric: Fabric, queueing: Queueing, routing: str, controller_port: int, run_dir: Path) -> BpfSwitches:
    """Programs on all switch ports of a built fabric, and an agent that connects them to the controller.

    Raises BadInput for queues that cannot be, MachineLacks where the kernel refuses the programs.
    """
    chip = assemble(fabric, queueing)
    wait_until_verified(fabric)
    argument = {"handles": chip.handles, "switches": [_as_json(site) for site in sites(fabric)]}
    listen = {switch.dpid: openflow_target(fabric.spec, switch.name) for switch in fabric.spec.graph.switches}
    agent = start_agent("emulator.asic.switches:open_datapath", argument, ("127.0.0.1", controller_port),
                        listen, run_dir)
    return BpfSwitches(fabric, chip, queueing, agent, routing)


def open_datapath(argument: dict) -> BpfDatapath:
    """In the agent's process: the datapath over the maps that `start` made."""
    switches = [SwitchSite(site["dpid"], site["seed"], tuple(
        PortSite(**{**port, "mac": bytes.fromhex(port["mac"])}) for port in site["ports"]))
        for site in argument["switches"]]
    return BpfDatapath(open_chip(switches, argument["handles"]))


def _as_json(site: SwitchSite) -> dict:
    return {"dpid": site.dpid, "seed": site.seed,
            "ports": [{**asdict(port), "mac": port.mac.hex()} for port in site.ports]}
