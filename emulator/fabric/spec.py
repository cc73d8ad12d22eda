"""What is to be built (FabricSpec) and what stands once it is built (Port, HostSite), as plain data."""
from __future__ import annotations

from dataclasses import dataclass

from topologies.graph import Graph

ETHERNET_BYTES = 14  # header counted by HTB; preamble, FCS and gap are not


@dataclass(frozen=True)
class FabricSpec:
    """A fabric to build. `rate_bps` is the wire of a host link; a link's is rate_bps * link.speed.

    `buffer_bytes` is the byte limit of each port's queue; `mtu` the IP packet size in bytes.
    `switch` is 'ovs' or 'bpf', `datapath` 'system' (kernel), 'netdev' (userspace) or 'bpf'. `ecn`: hosts
    ask for ECN on every connection (RFC 3168), not only where their congestion control needs it.
    `quickack`: hosts acknowledge every segment at once, for congestion controls that look at delays.
    `reorders`: packets of a flow may overtake each other, and hosts wait longer until they call one lost.
    `delay_s`: one-way propagation delay of every link.
    `plain_hosts`: the queues of hosts are single ones, made with the links; else whoever makes those of the
    switches makes theirs too.
    """

    graph: Graph
    rate_bps: float
    mtu: int
    buffer_bytes: int
    switch: str
    datapath: str
    seed: int
    ecn: bool = False
    quickack: bool = False
    reorders: bool = False
    delay_s: float = 0.0
    plain_hosts: bool = True


@dataclass(frozen=True)
class Port:
    """One end of one link as it stands in the kernel.

    `netns` is None for a switch port (they live in the sandbox's own namespace) and the name under
    /run/netns for a host. `peer` is the interface at the other end of the link.
    """

    name: str
    node: str
    number: int
    ifindex: int
    netns: str | None
    rate_bps: float
    limit_bytes: int
    link: int
    peer: str


@dataclass(frozen=True)
class HostSite:
    """Where a host lives: its namespace under /run/netns, its address and its interface."""

    name: str
    netns: str
    ip: str
    interface: str
