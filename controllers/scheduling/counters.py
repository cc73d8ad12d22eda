"""The byte counts of pair rules out of flow descriptions (OpenFlow 1.5.1, 7.3.5.2: ofp_flow_desc).

Descriptions, because Open vSwitch does not know the shorter flow statistics of 1.5 (OFPMP_FLOW_STATS; 3.1
answers OFPBRC_BAD_MULTIPART). Read from the bytes: there are as many rules as pairs of hosts.
"""
from __future__ import annotations

import socket
import struct
from collections.abc import Iterable, Iterator, Mapping

_HEAD_BYTES = 24  # length, table, priority, timeouts, flags, importance, cookie
_TLV = struct.Struct("!HBB")
_LENGTHS = struct.Struct("!HH")
_OXM_BASIC, _OXS_BASIC = 0x8000, 0x8002
_IPV4_SRC, _IPV4_DST, _BYTE_COUNT = 11, 12, 5

Addresses = tuple[str, str]
"""(IPv4 source, IPv4 destination)"""


def pair_bytes(described: Iterable[bytes]) -> dict[Addresses, int]:
    """Bytes counted by each rule that matches two whole addresses; others are left out.

    `described`: one ofp_flow_desc each. A rule counted as -1 (the switch does not know) counts 0.
    """
    found: dict[Addresses, int] = {}
    for each in described:
        _, match_bytes = _LENGTHS.unpack_from(each, _HEAD_BYTES)
        fields = dict(_tlvs(each, _HEAD_BYTES + 4, _HEAD_BYTES + match_bytes, _OXM_BASIC))
        source, destination = fields.get(_IPV4_SRC, b""), fields.get(_IPV4_DST, b"")
        if len(source) != 4 or len(destination) != 4:
            continue
        at = _HEAD_BYTES + -(-match_bytes // 8) * 8
        _, stats_bytes = _LENGTHS.unpack_from(each, at)
        counts = dict(_tlvs(each, at + 4, at + stats_bytes, _OXS_BASIC))
        count = int.from_bytes(counts.get(_BYTE_COUNT, b""), "big")
        found[socket.inet_ntoa(source), socket.inet_ntoa(destination)] = 0 if count == 2**64 - 1 else count
    return found


def _tlvs(data: bytes, at: int, end: int, wanted: int) -> Iterator[tuple[int, bytes]]:
    """(field number, value) of the OXM or OXS fields between two offsets; value and mask where it has one,
    but for a mask that takes the whole field, as a rule for /32 may be written.
    """
    while at + _TLV.size <= end:
        kind, tag, size = _TLV.unpack_from(data, at)
        at += _TLV.size
        value = data[at:at + size]
        at += size
        if kind == wanted:
            if tag & 1 and value[size // 2:] == b"\xff" * (size // 2):
                value = value[:size // 2]
            yield tag >> 1, value


def named(counts: Mapping[Addresses, int], names: Mapping[str, str]) -> dict[tuple[str, str], int]:
    """The same by host names; `names` maps addresses to them."""
    return {(names[a], names[b]): count for (a, b), count in counts.items() if a in names and b in names}
