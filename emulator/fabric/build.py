"""From a FabricSpec to hosts, links and queues in the kernel, in bulk (design decision 2).

Switch ports live in the sandbox's own namespace, each host in a namespace of its own. A host has its
/8 address, one route through the gateway address and one permanent neighbour, the gateway: every packet
leaves with the gateway's MAC and the last switch puts the host's own there. So a host needs one
neighbour entry, however large the fabric, and nobody ever asks by ARP.
"""
from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from emulator import netns
from emulator.errors import BadInput, EmulatorError
from emulator.fabric import link as shaping
from emulator.fabric import rtnl
from emulator.fabric.ethtool import offloads_off
from emulator.fabric.spec import FabricSpec, HostSite, Port
from emulator.fabric.veths import ends, make_links, send
from emulator.netlink import Message, Netlink
from topologies.graph import GATEWAY_IP, GATEWAY_MAC, interface

NETWORK, PREFIX = "10.0.0.0", 8
MAX_NAME = 15  # IFNAMSIZ without its zero
LOOPBACK = 1

PLAIN_SWITCHES = ("ovs",)  # a switch of another kind shapes its ports itself (weights, marks, pauses)

# Written in each host's namespace. Congestion control is not here: it is set on each socket.
HOST_SETTINGS = {
    "ipv6/conf/all/disable_ipv6": "1", "ipv6/conf/default/disable_ipv6": "1",
    "ipv4/conf/all/rp_filter": "0", "ipv4/conf/default/rp_filter": "0",
    "ipv4/tcp_slow_start_after_idle": "0",  # a step of a collective starts with the window of the last
    "ipv4/tcp_no_metrics_save": "1",  # a connection learns nothing from the one before: runs repeat
    "ipv4/tcp_mtu_probing": "0",
    "ipv4/tcp_orphan_retries": "1",  # a socket that outlives its process ends, and so does its namespace
}

# TCP takes a packet for lost once another, sent later, has arrived and a quarter of the least round trip has
# passed (RACK, RFC 8985; net/ipv4/tcp_recovery.c: tcp_rack_reo_wnd). On a real fabric that is many packet
# times. Here the least round trip is that of an idle kernel, a hundredth of one packet time, and all that is
# overtaken would be sent again. Without memory of the least round trip the quarter is of the present one, and
# the kernel's other bound, an eighth of the smoothed round trip, decides.
FOR_REORDERING = {"ipv4/tcp_min_rtt_wlen": "0"}


@dataclass(frozen=True)
class Fabric:
    """A fabric that stands: what was asked for, every port of every link, every host's place."""

    spec: FabricSpec
    ports: tuple[Port, ...]
    hosts: tuple[HostSite, ...]
    switches: tuple[str, ...]
    datapath: str

    @cached_property
    def port(self) -> dict[str, Port]:
        """Port by interface name, such as 'h1-eth0'."""
        return {port.name: port for port in self.ports}

    @cached_property
    def site(self) -> dict[str, HostSite]:
        """HostSite by host name."""
        return {site.name: site for site in self.hosts}

    @cached_property
    def switch_ports(self) -> tuple[Port, ...]:
        """The ports that belong to switches, all in the sandbox's own namespace."""
        return tuple(port for port in self.ports if port.netns is None)

    @cached_property
    def shaped_ports(self) -> tuple[Port, ...]:
        """The ports whose queues `build` made: not those of switches, or of hosts, that get their own."""
        plain = self.spec.switch in PLAIN_SWITCHES
        return tuple(port for port in self.ports if (self.spec.plain_hosts if port.netns else plain))


def shapes(spec: FabricSpec) -> dict[int, shaping.Shape]:
    """The shape of both ends of each link, by link index; raises BadInput for what cannot be built."""
    known = {speed: shaping.shape(spec.rate_bps * speed, spec.mtu, spec.buffer_bytes)
             for speed in {link.speed for link in spec.graph.links}}
    return {link.index: known[link.speed] for link in spec.graph.links}


def check(spec: FabricSpec) -> None:
    """Raise BadInput for names, addresses or shapes that the kernel would refuse."""
    graph = spec.graph
    for node, links in graph.neighbours.items():
        for port in links:
            if len(interface(node, port)) > MAX_NAME:
                raise BadInput(f"The interface name {interface(node, port)} has more than {MAX_NAME} "
                               f"characters; give node {node} a shorter name.")
    for link in graph.links:
        if link.a in graph.host and link.b in graph.host:
            raise BadInput(f"Link {link.index} joins two hosts, {link.a} and {link.b}, without a switch.")
    for host in graph.hosts:
        if len(graph.neighbours[host.name]) != 1:
            raise BadInput(f"Host {host.name} has {len(graph.neighbours[host.name])} links; hosts have one.")
        if not host.ip.startswith("10.") or host.ip == GATEWAY_IP:
            raise BadInput(f"Host {host.name} has the address {host.ip}; addresses are within 10.0.0.0/8, "
                           f"without the gateway's {GATEWAY_IP}.")
    shapes(spec)


def build(spec: FabricSpec) -> Fabric:
    """Build hosts, links and queues; call it inside a fresh sandbox. Switches are attached afterwards,
    then `verify.wait_until_verified` looks whether all is as planned.

    Raises BadInput before anything is made, EmulatorError with the kernel's sentence afterwards.
    """
    check(spec)
    graph = spec.graph
    _demand_fresh_namespace()
    for host in graph.hosts:
        netns.create(host.name)
        with netns.entered(host.name):
            _settings(spec)
    make_links(graph, spec.mtu, delayed=spec.delay_s > 0)
    shape_of = shapes(spec)
    ports = tuple(Port(name, node, number, ifindex, None if node in graph.switch else node,
                       shape_of[link.index].rate_bps, shape_of[link.index].limit_bytes, link.index, peer)
                  for name, node, number, ifindex, link, peer in ends(graph.links))
    access = {port.node: port.name for port in ports if port.netns}
    sites = tuple(HostSite(host.name, host.name, host.ip, access[host.name]) for host in graph.hosts)
    fabric = Fabric(spec, ports, sites, tuple(switch.name for switch in graph.switches), spec.datapath)
    offloads_off([port.name for port in fabric.switch_ports])
    with Netlink() as netlink:
        if spec.switch in PLAIN_SWITCHES:
            send(netlink, [message for port in fabric.switch_ports
                           for message in queue_messages(port.ifindex, shape_of[port.link])],
                 "the queues of switches")
        send(netlink, [rtnl.link_state(port.ifindex, up=True) for port in fabric.switch_ports],
             "the ports of switches")
    for site in fabric.hosts:
        port = fabric.port[site.interface]
        with netns.entered(site.netns), Netlink() as netlink:
            offloads_off([port.name])
            queue = queue_messages(port.ifindex, shape_of[port.link]) if spec.plain_hosts else []
            address = _host_messages(port.ifindex, site.ip, spec.quickack)
            send(netlink, [*queue, *address], f"host {site.name}")
    return fabric


def _demand_fresh_namespace() -> None:
    """Never build among somebody's interfaces: in a fresh sandbox only the loopback is up."""
    with Netlink() as netlink:
        for name, (_, flags, _) in rtnl.links(netlink).items():
            if name != "lo" and flags & rtnl.IFF_UP:
                raise EmulatorError(f"A fabric is built in a fresh sandbox, but here {name} is up already.")


def _settings(spec: FabricSpec) -> None:
    wanted = {**HOST_SETTINGS, "ipv4/tcp_ecn": "1" if spec.ecn else "2"}
    if spec.reorders:
        wanted |= FOR_REORDERING
    for name, value in wanted.items():
        path = Path("/proc/sys/net", name)
        if name.startswith("ipv6/") and not path.exists():
            continue  # this kernel has no IPv6, which is what we want
        path.write_text(value)


def queue_messages(ifindex: int, made: shaping.Shape) -> list[Message]:
    """HTB root, class and leaf of one link end."""
    return [rtnl.qdisc(ifindex, shaping.ROOT, shaping.H_ROOT, shaping.htb_root()),
            rtnl.traffic_class(ifindex, shaping.CLASS, shaping.ROOT, shaping.htb_class(made)),
            rtnl.qdisc(ifindex, shaping.LEAF, shaping.CLASS, shaping.leaf(made))]


def _host_messages(ifindex: int, ip: str, quickack: bool) -> list[Message]:
    return [rtnl.link_state(LOOPBACK, up=True), rtnl.link_state(ifindex, up=True),
            rtnl.address(ifindex, ip, PREFIX), rtnl.route(ifindex, NETWORK, PREFIX, GATEWAY_IP, ip, quickack),
            rtnl.neighbour(ifindex, GATEWAY_IP, rtnl.mac_bytes(GATEWAY_MAC))]
