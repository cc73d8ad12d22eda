"""Any Mininet Topo as a Graph: what it leaves open is filled in, what cannot be emulated is refused.

Filled in where absent: addresses as Mininet counts them (10.0.0.1 on), MACs from the address,
datapath ids from 1, tiers by the distance from the nearest host, link speeds from `bw`.
"""
from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from emulator.errors import BadInput
from topologies.check import checked
from topologies.graph import Graph, Host, Link, Switch

if TYPE_CHECKING:
    from mininet.topo import Topo

# Mininet options that change what a link or a host does and that a Graph does not carry.
LINK_OPTIONS_REFUSED = ("delay", "jitter", "loss", "max_queue_size", "speedup", "enable_ecn", "enable_red",
                        "latency_ms", "intfName1", "intfName2")
HOST_OPTIONS_REFUSED = ("cpu", "cores", "privateDirs")
ROLES = ("edge", "aggregation", "core")


def graph_from_topo(topo: Topo, name: str, notes: tuple[str, ...] = ()) -> Graph:
    """The Graph of `topo`; hosts in Mininet's natural order of names (h1, h2, … h10), links hosts first.

    Switch(tier, role, pod) come from the node options of the same names, Link(speed, tier) from the
    link options; `speed` is a multiple of the host links' rate, else `bw` over the hosts' `bw`.
    A switch of no pod has pod -1. Raises BadInput with one sentence for everything that cannot be.
    """
    host_names, switch_names = topo.hosts(), topo.switches()
    infos = [info for _, _, info in topo.links(withInfo=True)]
    _refuse_dropped_options(topo, host_names, infos)
    tiers = _distances(host_names, switch_names, infos)
    switches = sorted(_switches(topo, switch_names, tiers), key=lambda switch: switch.tier)
    rank = {node: i for i, node in enumerate([*host_names, *(switch.name for switch in switches)])}
    tier = {switch.name: switch.tier for switch in switches} | dict.fromkeys(host_names, -1)
    role = {switch.name: switch.role for switch in switches} | dict.fromkeys(host_names, "host")
    speeds = _speeds(infos, set(host_names))
    ends = []
    for info, speed in zip(infos, speeds, strict=True):
        a, b = (info["node1"], info["port1"]), (info["node2"], info["port2"])
        if (tier[b[0]], rank[b[0]]) < (tier[a[0]], rank[a[0]]):
            a, b = b, a
        ends.append((*a, *b, speed, str(info.get("tier", f"{role[a[0]]}-{role[b[0]]}"))))
    ends.sort(key=lambda end: (rank[end[0]], end[1]))
    links = tuple(Link(i, *end) for i, end in enumerate(ends))
    racks = {link.a: link.b for link in links if tier[link.a] == -1}
    return checked(Graph(name, _hosts(topo, host_names, racks), tuple(switches), links, notes))


def _refuse_dropped_options(topo: Topo, hosts: Sequence[str], infos: Sequence[Mapping]) -> None:
    for info in infos:
        for option in LINK_OPTIONS_REFUSED:
            if info.get(option) not in (None, False, 0):
                raise BadInput(f"the link {info['node1']}-{info['node2']} sets {option}={info[option]!r}, "
                               f"which a topology does not carry here; use the options of the run instead.")
    for host in hosts:
        for option in HOST_OPTIONS_REFUSED:
            if topo.nodeInfo(host).get(option):
                raise BadInput(f"host {host} sets {option}, which a topology does not carry here.")


def _distances(hosts: Sequence[str], switches: Sequence[str], infos: Sequence[Mapping]) -> dict[str, int]:
    """Links between each switch and the nearest host, less one; a switch no host reaches is refused later."""
    adjacent: dict[str, list[str]] = {node: [] for node in (*hosts, *switches)}
    for info in infos:
        adjacent[info["node1"]].append(info["node2"])
        adjacent[info["node2"]].append(info["node1"])
    distance = dict.fromkeys(hosts, -1)
    frontier = list(hosts)
    while frontier:
        reached = []
        for node in frontier:
            for other in adjacent[node]:
                if other not in distance:
                    distance[other] = distance[node] + 1
                    reached.append(other)
        frontier = reached
    return distance


def _switches(topo: Topo, names: Sequence[str], tiers: Mapping[str, int]) -> list[Switch]:
    given = {name: _dpid(name, topo.nodeInfo(name)["dpid"]) for name in names
             if topo.nodeInfo(name).get("dpid") is not None}
    taken = set(given.values())
    free = (number for number in range(1, len(names) + len(taken) + 1) if number not in taken)
    switches = []
    for name in names:
        options = topo.nodeInfo(name)
        tier, pod = options.get("tier", tiers.get(name, 0)), options.get("pod", -1)
        if not isinstance(tier, int) or tier < 0:
            raise BadInput(f"switch {name} has tier={tier!r}; a tier is a whole number from 0.")
        if not isinstance(pod, int):
            raise BadInput(f"switch {name} has pod={pod!r}; a pod is a whole number.")
        dpid = given[name] if name in given else next(free)
        switches.append(Switch(name, dpid, tier, str(options.get("role", ROLES[min(tier, 2)])), pod))
    return switches


def _dpid(name: str, text: object) -> int:
    """Mininet's spelling: up to 16 hexadecimal digits, colons allowed."""
    digits = str(text).replace(":", "")
    if not re.fullmatch(r"[0-9a-fA-F]{1,16}", digits) or int(digits, 16) == 0:
        raise BadInput(f'switch {name} has dpid "{text}"; it must be 1 to 16 hexadecimal digits, not zero.')
    return int(digits, 16)


def _hosts(topo: Topo, names: Sequence[str], racks: Mapping[str, str]) -> tuple[Host, ...]:
    hosts = []
    for i, name in enumerate(names):
        options = topo.nodeInfo(name)
        text = str(options.get("ip") or ipaddress.IPv4Address(0x0A000001 + i))
        try:
            ip = ipaddress.IPv4Interface(text).ip
        except ValueError:
            raise BadInput(f'host {name} has ip="{text}", which is not an IPv4 address.') from None
        mac = str(options.get("mac") or "02:00:" + ":".join(f"{byte:02x}" for byte in ip.packed)).lower()
        hosts.append(Host(name, i, str(ip), mac, racks.get(name, "")))
    return tuple(hosts)


def _speeds(infos: Sequence[Mapping], hosts: set[str]) -> list[float]:
    """Each link's rate over that of the host links: `speed`, else `bw` over the hosts' `bw`, else 1."""
    base = 1.0
    if any("speed" not in info and info.get("bw") is not None for info in infos):
        host_bw = {info.get("bw") for info in infos if {info["node1"], info["node2"]} & hosts}
        if len(host_bw) != 1 or any("speed" not in info and info.get("bw") is None for info in infos):
            raise BadInput("where a link has bw= every link needs it, and all host links the same; "
                           "or give speed= (a multiple of the host links' rate) instead.")
        base = host_bw.pop()
    speeds = []
    for info in infos:
        where = f'{info["node1"]}-{info["node2"]}'
        try:
            speed = float(info["speed"] if "speed" in info else info.get("bw", base) / base)
        except (TypeError, ValueError, ZeroDivisionError):
            raise BadInput(f"the link {where} has a speed or bw that is not a positive number.") from None
        if not 1e-4 <= speed <= 1e4:
            raise BadInput(f"the link {where} has {speed:g} times the host links' rate; "
                           f"0.0001 to 10000 is allowed.")
        speeds.append(speed)
    return speeds
