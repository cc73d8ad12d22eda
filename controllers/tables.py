"""What a switch is told, as plain data: flow rules and select groups, free of any OpenFlow library."""
from __future__ import annotations

from dataclasses import dataclass

from topologies.graph import GATEWAY_IP as GATEWAY_IP  # both offered here beside SetEthDst, their other half
from topologies.graph import GATEWAY_MAC as GATEWAY_MAC

TCP, UDP = 6, 17  # IP protocol numbers


@dataclass(frozen=True)
class Match:
    """What a rule looks at; None matches everything.

    `ipv4_dst` and `ipv4_src` are prefixes such as '10.0.1.0/24'; `ip_proto` is 6 (TCP) or 17 (UDP)
    where ports are named; `ip_dscp` is 0 to 63. Raises ValueError for ports without their protocol,
    whose match would be another one in every switch.
    """

    ipv4_dst: str | None = None
    ipv4_src: str | None = None
    ip_proto: int | None = None
    l4_src: int | None = None
    l4_dst: int | None = None
    ip_dscp: int | None = None

    def __post_init__(self) -> None:
        if (self.l4_src, self.l4_dst) != (None, None) and self.ip_proto not in (TCP, UDP):
            raise ValueError(f"a match on ports needs ip_proto {TCP} (TCP) or {UDP} (UDP), "
                             f"not {self.ip_proto}")

    def __str__(self) -> str:
        fields = [f"{name}={value}" for name, value in vars(self).items() if value is not None]
        return " ".join(fields) or "all else"


@dataclass(frozen=True)
class SetEthDst:
    """Rewrite the destination MAC: the last hop gives a packet the host's own address."""

    mac: str


@dataclass(frozen=True)
class Output:
    """Send out of this port of the switch."""

    port: int


@dataclass(frozen=True)
class ToGroup:
    """Let group `group` choose the port."""

    group: int


Action = SetEthDst | Output | ToGroup


@dataclass(frozen=True)
class FlowRule:
    """A rule; the highest priority that matches wins; an empty `actions` drops."""

    priority: int
    match: Match
    actions: tuple[Action, ...]


@dataclass(frozen=True)
class Bucket:
    """One member of a select group: its port and its weight (> 0)."""

    port: int
    weight: int = 1


@dataclass(frozen=True)
class Selection:
    """How a select group chooses: Open vSwitch's group property (OpenFlow 1.5).

    `param` is the seed of the hash, different on every switch, else all tiers hash alike
    (polarisation). `fields` are the packet fields hashed.
    """

    method: str = "hash"
    param: int = 0
    fields: tuple[str, ...] = ("ipv4_src", "ipv4_dst", "ip_proto", "l4_src", "l4_dst")


@dataclass(frozen=True)
class Group:
    """A select group."""

    id: int
    buckets: tuple[Bucket, ...]
    selection: Selection


@dataclass(frozen=True)
class SwitchTables:
    """All that one switch is told. What no rule matches is dropped."""

    dpid: int
    flows: tuple[FlowRule, ...]
    groups: tuple[Group, ...]
