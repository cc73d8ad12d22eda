"""Small bpf fabrics for root tests: built in the sandbox that calls, with tables by hand."""
from __future__ import annotations

import ipaddress
from dataclasses import dataclass, replace

from emulator.asic.assemble import assemble
from emulator.asic.chip import Chip
from emulator.asic.datapath import BpfDatapath
from emulator.asic.pipeline import (PipelineActions, PipelineBucket, PipelineGroup, PipelineMatch, PipelineRule,
                                    PipelineTables)
from emulator.asic.queueing import Queueing, one_queue
from emulator.fabric import rtnl
from emulator.fabric.build import Fabric, build
from emulator.fabric.spec import FabricSpec
from emulator.fabric.verify import wait_until_verified
from topologies.graph import Graph, Switch

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


def number(ip: str) -> int:
    return int(ipaddress.IPv4Address(ip))


def tables(graph: Graph, switch: Switch, uplinks: PipelineGroup = PipelineGroup(UP, ())) -> PipelineTables:
    """Leaf: its hosts by /32, all else to the group of uplinks, chosen as `uplinks` says. Spine: a /24 each."""
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
        uplinks: PipelineGroup = PipelineGroup(UP, ())) -> Lab:
    """Built, assembled, verified, with tables in force."""
    fabric = build(FabricSpec(graph, rate_bps, mtu, buffer_bytes, "bpf", "bpf", 1))
    chip = assemble(fabric, queueing, telemetry)
    wait_until_verified(fabric)
    datapath = BpfDatapath(chip)
    for switch in graph.switches:
        datapath.replace_tables(switch.dpid, tables(graph, switch, uplinks))
    return Lab(fabric, chip, datapath)
