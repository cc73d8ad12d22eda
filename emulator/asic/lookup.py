"""The pipeline's table in plain Python: parse a frame, find the rule that takes it.

The agent uses it to tell a controller which entry sent a packet up; tests use it as the model that
a datapath must agree with.
"""
from __future__ import annotations

import struct
from collections.abc import Iterable

from emulator.asic.pipeline import PipelineActions, PipelineMatch, PipelineRule

ETH_IPV4 = 0x0800
_VLAN = (0x8100, 0x88A8)
TCP, UDP = 6, 17
_PORTED = (TCP, UDP)
_ANY_FRAGMENT = 0x3FFF  # more fragments, or an offset


def parse(frame: bytes, in_port: int) -> PipelineMatch:
    """The fields of a frame as the match that exactly fits it; None where it has no such field.

    As OpenFlow wants it, the Ethernet type is the one behind a VLAN tag, and a fragment has ports 0. An
    IPv4 header that is cut short or malformed gives the Ethernet fields only.
    """
    start = 18 if int.from_bytes(frame[12:14], "big") in _VLAN else 14
    eth_type = int.from_bytes(frame[start - 2:start], "big")
    header = frame[start:]
    if eth_type != ETH_IPV4 or len(header) < 20 or header[0] >> 4 != 4 or header[0] & 15 < 5:
        return PipelineMatch(in_port=in_port, eth_type=eth_type)
    tos, fragment, proto, source, destination = struct.unpack_from("!xB4xHxB2xII", header)
    l4 = header[4 * (header[0] & 15):]
    l4_src = l4_dst = None
    if proto in _PORTED and fragment & _ANY_FRAGMENT:
        l4_src = l4_dst = 0
    elif proto in _PORTED and len(l4) >= 4:
        l4_src, l4_dst = struct.unpack_from("!HH", l4)
    return PipelineMatch(in_port, eth_type, (destination, 32), (source, 32), proto, tos >> 2, l4_src, l4_dst)


def matches(match: PipelineMatch, packet: PipelineMatch) -> bool:
    """`match` takes `packet` (a result of `parse`)."""
    for name in ("in_port", "eth_type", "ip_proto", "dscp", "l4_src", "l4_dst"):
        wanted = getattr(match, name)
        if wanted is not None and wanted != getattr(packet, name):
            return False
    return _in_prefix(match.ipv4_src, packet.ipv4_src) and _in_prefix(match.ipv4_dst, packet.ipv4_dst)


def _in_prefix(prefix: tuple[int, int] | None, address: tuple[int, int] | None) -> bool:
    if prefix is None:
        return True
    return address is not None and (prefix[0] ^ address[0]) >> (32 - prefix[1]) == 0


def find_rule(rules: Iterable[PipelineRule], packet: PipelineMatch) -> PipelineRule | None:
    """The matching rule of highest priority; among equals, which OpenFlow leaves open, the oldest."""
    found = [rule for rule in rules if matches(rule.match, packet)]
    return min(found, key=lambda rule: (-rule.priority, rule.id), default=None)


def rewrite(actions: PipelineActions, frame: bytes) -> bytes:
    """The frame with the MACs that `actions` set."""
    return (actions.eth_dst or frame[:6]) + (actions.eth_src or frame[6:12]) + frame[12:]
