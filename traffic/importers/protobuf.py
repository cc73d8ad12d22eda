"""The wire format of protocol buffers, as far as a strict reader of a few known fields needs it.

(protobuf.dev, Encoding.) No package and no generated code: a trace needs six fields of one message.
Every fault is a ValueError whose text says what is wrong at which byte.
"""
from __future__ import annotations

from collections.abc import Iterator

VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5
_FIXED = {FIXED64: 8, FIXED32: 4}


def varint(data: memoryview, at: int, end: int) -> tuple[int, int]:
    """(value below 2^64, position after it) of the varint at `at`."""
    value = 0
    for count in range(10):
        if at + count >= end:
            raise ValueError(f"byte {at}: a number is cut off")
        byte = data[at + count]
        value |= (byte & 0x7F) << (7 * count)
        if byte < 0x80:
            if value >= 1 << 64:
                break
            return value, at + count + 1
    raise ValueError(f"byte {at}: a number is longer than 64 bits")


def messages(data: memoryview) -> Iterator[tuple[int, int]]:
    """(start, end) of each message of a length-delimited file."""
    at = 0
    while at < len(data):
        length, start = varint(data, at, len(data))
        if start + length > len(data):
            raise ValueError(f"byte {at}: a message of {length} bytes is cut off after {len(data) - start}")
        yield start, start + length
        at = start + length


def fields(data: memoryview, at: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """(field, wire type, value, end) of each field of a message between two positions.

    value is the number of a varint; of all others where their bytes begin, `end` where they end.
    """
    while at < end:
        began = at
        key, at = varint(data, at, end)
        field, wire = key >> 3, key & 7
        if not field:
            raise ValueError(f"byte {began}: field number 0")
        if wire == VARINT:
            value, at = varint(data, at, end)
            yield field, wire, value, at
            continue
        if wire == LENGTH:
            length, at = varint(data, at, end)
        elif wire in _FIXED:
            length = _FIXED[wire]
        else:
            raise ValueError(f"byte {began}: wire type {wire} is none that is in use")
        if at + length > end:
            raise ValueError(f"byte {began}: field {field} is cut off")
        yield field, wire, at, at + length
        at += length


def signed(value: int) -> int:
    """An int32 or int64, which are sent as 64 bits in two's complement."""
    return value - (1 << 64) if value >= 1 << 63 else value
