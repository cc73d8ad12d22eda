"""A packet as plain data and OpenFlow's definition of a match: what the BPF program is held against."""
from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from emulator.asic.hashing import Flow
from emulator.asic.lookup import ETH_IPV4, TCP, UDP
from emulator.asic.pipeline import PipelineMatch, PipelineRule

_SCALARS = ("in_port", "eth_type", "ip_proto", "dscp", "l4_src", "l4_dst")


@dataclass(frozen=True)
class Packet:
    """Header fields in host byte order; all but in_port and eth_type are 0 where there is no IPv4."""

    in_port: int
    eth_type: int = ETH_IPV4
    ipv4_src: int = 0
    ipv4_dst: int = 0
    ip_proto: int = 0
    dscp: int = 0
    l4_src: int = 0
    l4_dst: int = 0

    @property
    def flow(self) -> Flow:
        """Its 5-tuple."""
        return Flow(self.ipv4_src, self.ipv4_dst, self.ip_proto, self.l4_src, self.l4_dst)


def frame(packet: Packet, size_bytes: int = 64, eth_dst: bytes = b"\x02\0\0\0\0\x01") -> bytes:
    """An Ethernet frame with these headers, zeros for the rest (checksums too), of at least 42 bytes."""
    ethernet = eth_dst + b"\x02\0\0\0\0\x02" + struct.pack("!H", packet.eth_type)
    if packet.eth_type != ETH_IPV4:
        return ethernet.ljust(size_bytes, b"\0")
    header = struct.pack("!BBHHHBBHII", 0x45, packet.dscp << 2, max(size_bytes, 42) - 14, 0, 0, 64,
                         packet.ip_proto, 0, packet.ipv4_src, packet.ipv4_dst)
    return (ethernet + header + struct.pack("!HH", packet.l4_src, packet.l4_dst)).ljust(size_bytes, b"\0")


def matches(match: PipelineMatch, packet: Packet) -> bool:
    """Does `packet` match? IPv4 fields ask for IPv4 first, ports for TCP or UDP."""
    for name in ("ipv4_src", "ipv4_dst"):
        prefix = getattr(match, name)
        if prefix is not None:
            shift = 32 - prefix[1]
            if packet.eth_type != ETH_IPV4 or getattr(packet, name) >> shift != prefix[0] >> shift:
                return False
    for name in _SCALARS:
        wanted = getattr(match, name)
        if wanted is None:
            continue
        if name not in ("in_port", "eth_type") and packet.eth_type != ETH_IPV4:
            return False
        if getattr(packet, name) != wanted:
            return False
    return True


def winner(rules: Sequence[PipelineRule], packet: Packet) -> PipelineRule | None:
    """OpenFlow's definition of a look-up: of the rules that match, the first of highest priority."""
    return max((rule for rule in rules if matches(rule.match, packet)),
               key=lambda rule: rule.priority, default=None)
