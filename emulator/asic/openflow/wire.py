"""Framing: the header, padding, and unpacking that never reads past the end of a message.

Why a codec of its own. os-ken 4.2 decodes FlowMod and GroupMod but no multipart request or
packet-out, encodes few replies, and loops for ever on an instruction of length 0 (tried, 1.3 and 1.5).
c65of 1.0.5 has both directions of 1.3 only and wants Python 3.11 (Ubuntu 22.04 has 3.10).
python-openflow ended in 2021 with 1.3. The subset needed here is small, the same in both versions
but for ports, buckets and statistics, and must survive any bytes; os-ken's codec serves the tests
as an independent witness.
"""
from __future__ import annotations

import struct
from collections.abc import Iterator
from enum import IntEnum

from emulator.asic.openflow.errors import BadRequest, Refused

HEADER = struct.Struct("!BBHI")
HEADER_BYTES = HEADER.size
MAX_BODY_BYTES = 0xFFFF - HEADER_BYTES
TLV = struct.Struct("!HH")


def message(version: int, kind: int, xid: int, body: bytes = b"") -> bytes:
    """One OpenFlow message; the body must fit (at most 65527 bytes)."""
    return HEADER.pack(version, kind, HEADER_BYTES + len(body), xid) + body


def unpack(layout: struct.Struct, data: bytes, offset: int = 0,
           code: IntEnum = BadRequest.BAD_LEN) -> tuple:
    """`layout` at `offset`; Refused with `code` when `data` ends before it."""
    if offset + layout.size > len(data):
        raise Refused(code, f"needs {layout.size} bytes at offset {offset} of {len(data)}")
    return layout.unpack_from(data, offset)


def round_up(length: int) -> int:
    """OpenFlow aligns nearly everything to 8 bytes."""
    return (length + 7) & ~7


def padded(data: bytes) -> bytes:
    """`data` with zeros up to a multiple of 8 bytes."""
    return data + bytes(round_up(len(data)) - len(data))


def tlvs(data: bytes, code: IntEnum, aligned: bool) -> Iterator[tuple[int, bytes]]:
    """(type, whole element without padding) of a list of {u16 type, u16 length} elements.

    `aligned`: lengths must be multiples of 8 themselves (actions, instructions); otherwise an
    element is followed by padding to 8 bytes that its length does not count (properties, hello
    elements). Refused with `code` for a length below 4, past the end, or misaligned.
    """
    offset = 0
    while offset < len(data):
        kind, length = unpack(TLV, data, offset, code)
        end = offset + length
        if length < TLV.size or end > len(data) or (aligned and length % 8):
            raise Refused(code, f"element of type {kind} has length {length} "
                                f"with {len(data) - offset} bytes left")
        yield kind, data[offset:end]
        offset = end if aligned else min(round_up(end), len(data))
