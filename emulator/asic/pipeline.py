"""The pipeline of one `bpf` switch as plain data, and what a datapath does with it.

The OpenFlow agent translates FlowMod/GroupMod into these types and never touches a BPF map; the
datapath (`datapath.py`) never sees an OpenFlow message. A fake Datapath serves the agent's tests.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

MODES = ("hash", "dp_hash", "flowlet", "spray", "least-queue")


@dataclass(frozen=True)
class PipelineMatch:
    """None matches anything. `ipv4_*` are (address, prefix length) as integers, host byte order."""

    in_port: int | None = None
    eth_type: int | None = None
    ipv4_dst: tuple[int, int] | None = None
    ipv4_src: tuple[int, int] | None = None
    ip_proto: int | None = None
    dscp: int | None = None
    l4_src: int | None = None
    l4_dst: int | None = None


@dataclass(frozen=True)
class PipelineActions:
    """What happens to a matching packet; all None and not to_controller drops it."""

    output: int | None = None
    group: int | None = None
    queue: int | None = None
    eth_dst: bytes | None = None
    eth_src: bytes | None = None
    to_controller: bool = False


@dataclass(frozen=True)
class PipelineRule:
    """A flow entry. `id` is the agent's own number for it; statistics come back under it."""

    id: int
    priority: int
    match: PipelineMatch
    actions: PipelineActions


@dataclass(frozen=True)
class PipelineBucket:
    """A member: port, weight (select) and the port whose liveness it depends on (None: `port`)."""

    port: int
    weight: int = 1
    watch_port: int | None = None
    eth_dst: bytes | None = None
    queue: int | None = None


@dataclass(frozen=True)
class PipelineGroup:
    """A select or fast-failover group. `mode` is one of MODES, `seed` the per-switch hash parameter.

    `flowlet_gap_s`: idle time after which a flow may move (flowlet; least-queue per flowlet if > 0).
    `fast_failover`: the first live bucket takes everything, `mode` is then ignored.
    """

    id: int
    buckets: tuple[PipelineBucket, ...]
    mode: str = "hash"
    seed: int = 0
    flowlet_gap_s: float = 0.0
    random_spray: bool = False
    fast_failover: bool = False


@dataclass(frozen=True)
class PipelineTables:
    """All tables of one switch."""

    rules: tuple[PipelineRule, ...]
    groups: tuple[PipelineGroup, ...]


@dataclass(frozen=True)
class Count:
    """Packets and bytes."""

    packets: int
    bytes: int


@dataclass(frozen=True)
class PortState:
    """A switch port for OFPMP_PORT_DESC and OFPMP_PORT_STATS."""

    number: int
    name: str
    mac: bytes
    up: bool
    rate_bps: float
    rx: Count
    tx: Count
    rx_dropped: int
    tx_dropped: int


@dataclass(frozen=True)
class QueueState:
    """A queue (class 0-7) of a port for OFPMP_QUEUE_STATS."""

    port: int
    queue: int
    tx: Count
    dropped: int


class Datapath(Protocol):
    """All `bpf` switches of one fabric. Every method takes the switch's datapath id."""

    def dpids(self) -> Sequence[int]: ...

    def replace_tables(self, dpid: int, tables: PipelineTables) -> None:
        """Put `tables` in force at once; raises ValueError with a sentence for what it cannot do."""

    def rule_counts(self, dpid: int) -> dict[int, Count]: ...

    def bucket_counts(self, dpid: int) -> dict[int, list[Count]]:
        """group id -> one Count per bucket."""

    def ports(self, dpid: int) -> list[PortState]: ...

    def queues(self, dpid: int) -> list[QueueState]: ...

    def packet_out(self, dpid: int, port: int, frame: bytes) -> None:
        """Send `frame` out of `port`; ValueError with a sentence for one that no port takes."""

    def watch(self, packet_in: Callable[[int, int, bytes], None],
              port_status: Callable[[int, PortState], None]) -> None:
        """Call packet_in(dpid, in_port, frame) and port_status(dpid, port) as they happen."""

    def descriptors(self) -> Sequence[int]:
        """File descriptors that become readable when `poll` has something to deliver, where there are any."""

    def poll(self, timeout_s: float) -> None:
        """Deliver pending events to the watchers; returns after at most `timeout_s`."""
