"""Few prefixes for many hosts: neighbours in address space that share their next hops become one rule.

The prefixes of a table never overlap, and none reaches further than the hosts it was made for need.
That makes strays safe: take an address that no host has, and the smallest prefix around it that
covers hosts on both sides. A switch either has no rule for the address, or a rule for all hosts of
that prefix; so all switches that forward it forward it as they would to one and the same rack, whose
own switch has rules for single hosts only. A stray packet is dropped and never circles.
"""
from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from topologies.graph import Host


@dataclass(frozen=True)
class Block:
    """The smallest prefix around some hosts, halved until all its hosts hang on one rack.

    `rack` is set where there is nothing left to halve, `halves` elsewhere.
    """

    prefix: str
    rack: str | None
    halves: tuple[Block, ...] = ()


def blocks(hosts: Sequence[Host]) -> Block:
    """The tree of blocks over all `hosts` (at least one)."""
    return _block(sorted((int(ipaddress.IPv4Address(host.ip)), host.rack) for host in hosts))


def _block(hosts: Sequence[tuple[int, str]]) -> Block:
    first, last = hosts[0][0], hosts[-1][0]
    low_bits = (first ^ last).bit_length()
    prefix = f"{ipaddress.IPv4Address(first >> low_bits << low_bits)}/{32 - low_bits}"
    if len({rack for _, rack in hosts}) == 1:
        return Block(prefix, hosts[0][1])
    middle = last >> (low_bits - 1) << (low_bits - 1)
    lower = [host for host in hosts if host[0] < middle]
    return Block(prefix, None, (_block(lower), _block(hosts[len(lower):])))


Ports = TypeVar("Ports", bound=tuple)
"""The next hops to a rack: ports, with their weights or without; compared, never looked into."""


def aggregate(tree: Block, hops: Mapping[str, Ports]) -> list[tuple[str, Ports]]:
    """[(prefix, ports)] for one switch whose next hops to each rack are `hops`, in address order.

    A rack without next hops (the switch itself, or one that is out of reach) gets no prefix.
    """
    table: list[tuple[str, Ports]] = []

    def shared(block: Block) -> Ports | None:
        """The ports that serve the whole block; None when they differ, its parts then being in the table."""
        if block.rack is not None:
            return hops.get(block.rack, ())
        lower, upper = (shared(half) for half in block.halves)
        if lower is not None and lower == upper:
            return lower
        for half, ports in zip(block.halves, (lower, upper), strict=True):
            if ports:
                table.append((half.prefix, ports))
        return None

    if ports := shared(tree):
        table.append((tree.prefix, ports))
    return table
