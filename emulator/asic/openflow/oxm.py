"""Matches: OXM fields (OpenFlow 1.3.5 and 1.5.1, section 7.2.3) to PipelineMatch and back.

The fields are those the pipeline can look at. Everything else is refused with the code that the
standard has for it: an unknown field, a mask that is no prefix, a missing prerequisite.
"""
from __future__ import annotations

import struct
from dataclasses import dataclass

from emulator.asic.openflow.errors import BadMatch, Refused
from emulator.asic.openflow.wire import round_up, unpack
from emulator.asic.pipeline import PipelineMatch

MATCH_HEADER = struct.Struct("!HH")
OXM_HEADER = struct.Struct("!HBB")  # class, field << 1 | has_mask, length of value and mask
BASIC_CLASS = 0x8000
MATCH_TYPE_OXM = 1

IPV4 = 0x0800
TCP, UDP = 6, 17

IN_PORT, ETH_DST, ETH_SRC, ETH_TYPE = 0, 3, 4, 5
IP_DSCP, IP_PROTO, IPV4_SRC, IPV4_DST = 8, 10, 11, 12
TCP_SRC, TCP_DST, UDP_SRC, UDP_DST = 13, 14, 15, 16


@dataclass(frozen=True)
class Field:
    """Where a field lands in PipelineMatch, its width, and the protocol it needs beside it."""

    attribute: str
    size_bytes: int
    needs_ipv4: bool = False
    needs_proto: int | None = None

    @property
    def full_mask(self) -> int:
        return (1 << 8 * self.size_bytes) - 1


FIELDS = {
    IN_PORT: Field("in_port", 4),
    ETH_TYPE: Field("eth_type", 2),
    IP_DSCP: Field("dscp", 1, needs_ipv4=True),
    IP_PROTO: Field("ip_proto", 1, needs_ipv4=True),
    IPV4_SRC: Field("ipv4_src", 4, needs_ipv4=True),
    IPV4_DST: Field("ipv4_dst", 4, needs_ipv4=True),
    TCP_SRC: Field("l4_src", 2, needs_proto=TCP),
    TCP_DST: Field("l4_dst", 2, needs_proto=TCP),
    UDP_SRC: Field("l4_src", 2, needs_proto=UDP),
    UDP_DST: Field("l4_dst", 2, needs_proto=UDP),
}
MASKABLE = (IPV4_SRC, IPV4_DST)


def decode_match(data: bytes, offset: int) -> tuple[PipelineMatch, int]:
    """The ofp_match at `offset` and the offset behind it with its padding."""
    kind, length = unpack(MATCH_HEADER, data, offset, BadMatch.BAD_LEN)
    if kind != MATCH_TYPE_OXM:
        raise Refused(BadMatch.BAD_TYPE, f"match type {kind} is not OXM (1)")
    end = offset + round_up(length)
    if length < MATCH_HEADER.size or end > len(data):
        raise Refused(BadMatch.BAD_LEN, f"match of {length} bytes with {len(data) - offset} left")
    return decode_fields(data[offset + MATCH_HEADER.size:offset + length]), end


def decode_fields(data: bytes) -> PipelineMatch:
    """A list of OXM fields without padding."""
    values: dict[str, object] = {}
    seen: set[int] = set()
    offset = 0
    while offset < len(data):
        oxm_class, tag, length = unpack(OXM_HEADER, data, offset, BadMatch.BAD_LEN)
        number, masked = tag >> 1, tag & 1
        if oxm_class != BASIC_CLASS or number not in FIELDS:
            raise Refused(BadMatch.BAD_FIELD, f"no match on OXM field {number} of class {oxm_class:#x}")
        field = FIELDS[number]
        offset += OXM_HEADER.size
        if length != field.size_bytes * (1 + masked) or offset + length > len(data):
            raise Refused(BadMatch.BAD_LEN, f"OXM field {number} has length {length}")
        if number in seen:
            raise Refused(BadMatch.DUP_FIELD, f"OXM field {number} stands twice")
        seen.add(number)
        value = int.from_bytes(data[offset:offset + field.size_bytes], "big")
        mask = (int.from_bytes(data[offset + field.size_bytes:offset + length], "big")
                if masked else field.full_mask)
        offset += length
        if value & ~mask:
            raise Refused(BadMatch.BAD_WILDCARDS, f"OXM field {number} has value bits outside its mask")
        if mask == 0:
            continue  # matches everything, as if the field were not there
        if number in MASKABLE:
            prefix = _prefix_length(mask)
            if prefix is None:
                raise Refused(BadMatch.BAD_MASK, f"mask {mask:#010x} of an address is not a prefix")
            values[field.attribute] = (value, prefix)
        elif mask != field.full_mask:
            raise Refused(BadMatch.BAD_MASK, f"OXM field {number} cannot be masked")
        else:
            values[field.attribute] = value
    match = PipelineMatch(**values)
    _check(match, seen)
    return match


def _prefix_length(mask: int) -> int | None:
    inverse = mask ^ 0xFFFFFFFF
    return 32 - inverse.bit_length() if inverse & (inverse + 1) == 0 else None


def _check(match: PipelineMatch, seen: set[int]) -> None:
    for number in seen:
        field = FIELDS[number]
        if field.needs_proto is not None and match.ip_proto != field.needs_proto:
            raise Refused(BadMatch.BAD_PREREQ, f"OXM field {number} needs ip_proto={field.needs_proto}")
        if field.needs_ipv4 and match.eth_type is None:
            raise Refused(BadMatch.BAD_PREREQ, f"OXM field {number} needs eth_type=0x0800")
        if field.needs_ipv4 and match.eth_type != IPV4:
            # Valid OpenFlow for IPv6, but the pipeline parses IPv4 headers only.
            raise Refused(BadMatch.BAD_VALUE, f"no IP fields under eth_type {match.eth_type:#06x}")
    if match.dscp is not None and match.dscp > 63:
        raise Refused(BadMatch.BAD_VALUE, f"ip_dscp {match.dscp} is above 63")


def _oxm(number: int, value: int, mask: int | None = None) -> bytes:
    size = FIELDS[number].size_bytes
    body = value.to_bytes(size, "big") + (b"" if mask is None else mask.to_bytes(size, "big"))
    return OXM_HEADER.pack(BASIC_CLASS, number << 1 | (mask is not None), len(body)) + body


def encode_fields(match: PipelineMatch) -> bytes:
    """OXM fields, prerequisites first, without padding."""
    out = []
    if match.in_port is not None:
        out.append(_oxm(IN_PORT, match.in_port))
    if match.eth_type is not None:
        out.append(_oxm(ETH_TYPE, match.eth_type))
    if match.dscp is not None:
        out.append(_oxm(IP_DSCP, match.dscp))
    if match.ip_proto is not None:
        out.append(_oxm(IP_PROTO, match.ip_proto))
    for number, prefix in ((IPV4_SRC, match.ipv4_src), (IPV4_DST, match.ipv4_dst)):
        if prefix is not None:
            address, length = prefix
            mask = None if length == 32 else 0xFFFFFFFF << 32 - length & 0xFFFFFFFF
            out.append(_oxm(number, address, mask))
    udp = match.ip_proto == UDP
    if match.l4_src is not None:
        out.append(_oxm(UDP_SRC if udp else TCP_SRC, match.l4_src))
    if match.l4_dst is not None:
        out.append(_oxm(UDP_DST if udp else TCP_DST, match.l4_dst))
    return b"".join(out)


def encode_match(match: PipelineMatch) -> bytes:
    """An ofp_match with its padding."""
    fields = encode_fields(match)
    length = MATCH_HEADER.size + len(fields)
    return MATCH_HEADER.pack(MATCH_TYPE_OXM, length) + fields + bytes(round_up(length) - length)
