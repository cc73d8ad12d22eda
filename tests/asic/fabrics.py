"""Small bpf fabrics for root tests: built in the sandbox that calls, with tables by hand."""
from __future__ import annotations

import ipaddress
import socket
from dataclasses import dataclass, replace

from emulator import netns
from emulator.asic.assemble import assemble
from emulator.asic.chip import Chip
from emulator.asic.datapath import BpfDatapath
from emulator.asic.pipeline import (PipelineActions, PipelineBucket, PipelineGroup, PipelineMatch,
                                    PipelineRule, PipelineTables)
from emulator.asic.queueing import Queueing, one_queue
from emulator.fabric import rtnl
from emulator.fabric.build import Fabric, build
from emulator.fabric.spec import FabricSpec
from emulator.fabric.verify import wait_until_verified
from topologies.graph import Graph, Host, Link, Switch

SO_RCVBUFFORCE = 33
UP = 1  # the group of uplinks


@dataclass
class Lab:
    """A fabric with its switches, ready to forward."""

    fabric: Fabric
    chip: Chip
    datapath: BpfDatapath

    def dpid(self, name: str) -> int:
        return self.fabric.spec.graph.switch[name].dpid

    def ifindex(self, name: str) -> int:
        return self.fabric.port[name].ifindex


def udp(host: str, port: int = 0) -> socket.socket:
    """A UDP socket of `host`, bound to `port`, with a time limit on every call."""
    with netns.entered(host):
        made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        made.bind(("0.0.0.0", port))
        made.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 8 << 20)
        made.settimeout(2)
        return made


def number(ip: str) -> int:
    return int(ipaddress.IPv4Address(ip))


def tables(graph: Graph, switch: Switch, uplinks: PipelineGroup = PipelineGroup(UP, ())) -> PipelineTables:
    """Leaf: its hosts by /32, all else to the uplinks, chosen as `uplinks` says. Spine: a /24 a leaf."""
    rules, up = [], []
    for port, (peer, _) in sorted(graph.neighbours[switch.name].items()):
        if peer in graph.host:
            host = graph.host[peer]
            rules.append(PipelineRule(len(rules), 100, PipelineMatch(ipv4_dst=(number(host.ip), 32)),
                                      PipelineActions(output=port, eth_dst=rtnl.mac_bytes(host.mac))))
        elif graph.switch[peer].tier > switch.tier:
            up.append(PipelineBucket(port))
        else:
            net = next(number(host.ip) & 0xFFFFFF00 for host in graph.hosts if host.rack == peer)
            rules.append(PipelineRule(len(rules), 50, PipelineMatch(ipv4_dst=(net, 24)),
                                      PipelineActions(output=port)))
    if not up:
        return PipelineTables(tuple(rules), ())
    rules.append(PipelineRule(len(rules), 1, PipelineMatch(ipv4_dst=(number("10.0.0.0"), 8)),
                              PipelineActions(group=UP)))
    group = replace(uplinks, buckets=uplinks.buckets or tuple(up))
    return PipelineTables(tuple(rules), (group,))


def lab(graph: Graph, rate_bps: float = 50e6, mtu: int = 1500, buffer_bytes: int = 60_000,
        queueing: Queueing = one_queue(), telemetry: bool = True,
        uplinks: PipelineGroup = PipelineGroup(UP, ()), tables_of=None) -> Lab:
    """Built, assembled, verified, with tables in force."""
    fabric = build(FabricSpec(graph, rate_bps, mtu, buffer_bytes, "bpf", "bpf", 1))
    chip = assemble(fabric, queueing, telemetry)
    wait_until_verified(fabric)
    datapath = BpfDatapath(chip)
    for switch in graph.switches:
        datapath.replace_tables(switch.dpid, tables_of(graph, switch) if tables_of
                                else tables(graph, switch, uplinks))
    return Lab(fabric, chip, datapath)


def chain(length: int) -> Graph:
    """h1 - s1 - s2 - ... - h2; port 1 of a switch goes left, port 2 right."""
    hosts = (Host("h1", 0, "10.0.0.2", "02:00:0a:00:00:02", "s1"),
             Host("h2", 1, "10.0.1.2", "02:00:0a:00:01:02", f"s{length}"))
    switches = tuple(Switch(f"s{i}", 0x100 + i, 0, "edge", 0) for i in range(1, length + 1))
    links = [Link(0, "h1", 0, "s1", 1, 1.0, "host-edge"), Link(1, "h2", 0, f"s{length}", 2, 1.0, "host-edge")]
    links += [Link(i + 1, f"s{i}", 2, f"s{i + 1}", 1, 1.0, "chain") for i in range(1, length)]
    return Graph(f"chain {length}", hosts, switches, tuple(links))


def chain_tables(graph: Graph, switch: Switch) -> PipelineTables:
    """Each host by /32, its MAC set at the last switch."""
    def towards(host: Host, port: int, rule: int) -> PipelineRule:
        mac = rtnl.mac_bytes(host.mac) if host.rack == switch.name else None
        return PipelineRule(rule, 10, PipelineMatch(ipv4_dst=(number(host.ip), 32)),
                            PipelineActions(output=port, eth_dst=mac))

    return PipelineTables((towards(graph.hosts[0], 1, 1), towards(graph.hosts[1], 2, 2)), ())
