"""FLOW_MOD, FLOW_REMOVED and flow statistics: the same request in both versions, OXS replies in 1.5."""
from __future__ import annotations

import struct
from dataclasses import replace

from emulator.asic.flowtable import FlowEntry, FlowMod
from emulator.asic.openflow.actions import decode_instructions
from emulator.asic.openflow.constants import NO_BUFFER, UNKNOWN_COUNT, V13, FlowCommand
from emulator.asic.openflow.errors import BadRequest, Refused
from emulator.asic.openflow.oxm import decode_match, encode_match
from emulator.asic.openflow.wire import padded, unpack
from emulator.asic.pipeline import Count

# cookie, mask, table, command, idle, hard, priority, buffer, out_port, out_group, flags, importance
_FLOW_MOD = struct.Struct("!QQBBHHHIIIHH")
_FLOW_STATS_REQUEST = struct.Struct("!B3xII4xQQ")
# length, table, duration s and ns, priority, idle, hard, flags, importance, cookie, packets, bytes
_FLOW_STATS_13 = struct.Struct("!HBxIIHHHHH2xQQQ")
_FLOW_DESC_15 = struct.Struct("!H2xBxHHHHHQ")
_FLOW_STATS_15 = struct.Struct("!H2xBBH")
_FLOW_REMOVED_13 = struct.Struct("!QHBBIIHHQQ")
_FLOW_REMOVED_15 = struct.Struct("!BBHHHQ")
_AGGREGATE_13 = struct.Struct("!QQI4x")

UNKNOWN = Count(UNKNOWN_COUNT, UNKNOWN_COUNT)


def decode_flow_mod(data: bytes, version: int) -> FlowMod:
    """The body of an OFPT_FLOW_MOD."""
    (cookie, cookie_mask, table, command, idle, hard, priority, buffer_id, out_port, out_group, flags,
     importance) = unpack(_FLOW_MOD, data)
    match, end = decode_match(data, _FLOW_MOD.size)
    mod = FlowMod(command, match, priority=priority, table_id=table, cookie=cookie, cookie_mask=cookie_mask,
                  out_port=out_port, out_group=out_group)
    if command in (FlowCommand.DELETE, FlowCommand.DELETE_STRICT):
        return mod  # buffer, flags, timeouts and instructions mean nothing in a delete
    if buffer_id != NO_BUFFER:
        raise Refused(BadRequest.BUFFER_UNKNOWN, f"buffer {buffer_id:#x}: this switch buffers no packets")
    instructions = data[end:]
    return replace(mod, actions=decode_instructions(instructions, version), instructions=instructions,
                   flags=flags, idle_timeout_s=idle, hard_timeout_s=hard,
                   importance=0 if version == V13 else importance)


def decode_flow_stats_request(data: bytes) -> FlowMod:
    """A flow or aggregate statistics request as the FlowMod that selects the same entries."""
    table, out_port, out_group, cookie, cookie_mask = unpack(_FLOW_STATS_REQUEST, data)
    match, end = decode_match(data, _FLOW_STATS_REQUEST.size)
    if end != len(data):
        raise Refused(BadRequest.BAD_LEN, f"{len(data) - end} bytes behind a statistics request")
    return FlowMod(FlowCommand.DELETE, match, table_id=table, cookie=cookie, cookie_mask=cookie_mask,
                   out_port=out_port, out_group=out_group)


def split_duration(seconds: float) -> tuple[int, int]:
    """Whole seconds and nanoseconds."""
    whole = int(seconds)
    return whole, int((seconds - whole) * 1e9)


_OXS_BASIC_CLASS = 0x8002
_OXS_DURATION, _OXS_FLOW_COUNT, _OXS_PACKET_COUNT, _OXS_BYTE_COUNT = 0, 3, 4, 5


def _oxs(number: int, value: bytes) -> bytes:
    return struct.pack("!HBB", _OXS_BASIC_CLASS, number << 1, len(value)) + value


def _stats(*fields: bytes) -> bytes:
    """An ofp_stats with its padding (1.5.1 section 7.2.4)."""
    body = b"".join(fields)
    return padded(struct.pack("!HH", 0, 4 + len(body)) + body)


def _flow_oxs(duration_s: float, count: Count) -> bytes:
    return _stats(_oxs(_OXS_DURATION, struct.pack("!II", *split_duration(duration_s))),
                  _oxs(_OXS_PACKET_COUNT, count.packets.to_bytes(8, "big")),
                  _oxs(_OXS_BYTE_COUNT, count.bytes.to_bytes(8, "big")))


def encode_flow_stats_13(entry: FlowEntry, count: Count, now_s: float) -> bytes:
    """One ofp_flow_stats of 1.3."""
    match = encode_match(entry.match)
    length = _FLOW_STATS_13.size + len(match) + len(entry.instructions)
    return _FLOW_STATS_13.pack(length, 0, *split_duration(now_s - entry.installed_s), entry.priority,
                               entry.idle_timeout_s, entry.hard_timeout_s, entry.flags, entry.importance,
                               entry.cookie, count.packets, count.bytes) + match + entry.instructions


def encode_flow_desc_15(entry: FlowEntry, count: Count, now_s: float) -> bytes:
    """One ofp_flow_desc of 1.5 (multipart FLOW_DESC)."""
    rest = (encode_match(entry.match) + _flow_oxs(now_s - entry.installed_s, count) + entry.instructions)
    return _FLOW_DESC_15.pack(_FLOW_DESC_15.size + len(rest), 0, entry.priority, entry.idle_timeout_s,
                              entry.hard_timeout_s, entry.flags, entry.importance, entry.cookie) + rest


def encode_flow_stats_15(entry: FlowEntry, count: Count, now_s: float) -> bytes:
    """One ofp_flow_stats of 1.5 (multipart FLOW_STATS); reason 0: it was asked for."""
    rest = encode_match(entry.match) + _flow_oxs(now_s - entry.installed_s, count)
    return _FLOW_STATS_15.pack(_FLOW_STATS_15.size + len(rest), 0, 0, entry.priority) + rest


def encode_aggregate(version: int, flow_count: int, total: Count) -> bytes:
    """The body of an aggregate statistics reply."""
    if version == V13:
        return _AGGREGATE_13.pack(total.packets, total.bytes, flow_count)
    return _stats(_oxs(_OXS_FLOW_COUNT, flow_count.to_bytes(4, "big")),
                  _oxs(_OXS_PACKET_COUNT, total.packets.to_bytes(8, "big")),
                  _oxs(_OXS_BYTE_COUNT, total.bytes.to_bytes(8, "big")))


def encode_flow_removed(version: int, entry: FlowEntry, reason: int, count: Count, now_s: float) -> bytes:
    """The body of an OFPT_FLOW_REMOVED."""
    match = encode_match(entry.match)
    duration_s = now_s - entry.installed_s
    if version == V13:
        return _FLOW_REMOVED_13.pack(entry.cookie, entry.priority, reason, 0, *split_duration(duration_s),
                                     entry.idle_timeout_s, entry.hard_timeout_s,
                                     count.packets, count.bytes) + match
    return _FLOW_REMOVED_15.pack(0, reason, entry.priority, entry.idle_timeout_s, entry.hard_timeout_s,
                                 entry.cookie) + match + _flow_oxs(duration_s, count)
