"""PACKET_OUT and PACKET_IN."""
from __future__ import annotations

import struct
from dataclasses import dataclass

from emulator.asic.openflow.actions import Action, decode_actions
from emulator.asic.openflow.constants import NO_BUFFER, V13, PacketInReason
from emulator.asic.openflow.errors import BadAction, BadRequest, Refused
from emulator.asic.openflow.oxm import decode_match, encode_match
from emulator.asic.openflow.wire import MAX_BODY_BYTES, unpack
from emulator.asic.pipeline import PipelineMatch

_PACKET_OUT_13 = struct.Struct("!IIH6x")
_PACKET_OUT_15 = struct.Struct("!IH2x")
_PACKET_IN = struct.Struct("!IHBBQ")
_ETHERNET_BYTES = 14


@dataclass(frozen=True)
class PacketOut:
    """A decoded OFPT_PACKET_OUT; `in_port` may be Port.CONTROLLER or another reserved port."""

    in_port: int
    actions: tuple[Action, ...]
    frame: bytes


def decode_packet_out(data: bytes, version: int) -> PacketOut:
    """The body of an OFPT_PACKET_OUT."""
    if version == V13:
        buffer_id, in_port, length = unpack(_PACKET_OUT_13, data)
        start = _PACKET_OUT_13.size
    else:
        buffer_id, length = unpack(_PACKET_OUT_15, data)
        match, start = decode_match(data, _PACKET_OUT_15.size)
        if match != PipelineMatch(in_port=match.in_port) or match.in_port is None:
            raise Refused(BadRequest.BAD_PORT, "a packet-out's match names in_port and nothing else")
        in_port = match.in_port
    if buffer_id != NO_BUFFER:
        raise Refused(BadRequest.BUFFER_UNKNOWN, f"buffer {buffer_id:#x}: this switch buffers no packets")
    end = start + length
    if end > len(data):
        raise Refused(BadAction.BAD_LEN, f"{length} bytes of actions in {len(data) - start}")
    frame = data[end:]
    if len(frame) < _ETHERNET_BYTES:
        raise Refused(BadRequest.BAD_PACKET, f"a frame of {len(frame)} bytes")
    return PacketOut(in_port, decode_actions(data[start:end], version), frame)


def encode_packet_in(version: int, in_port: int, reason: PacketInReason, cookie: int, frame: bytes) -> bytes:
    """The body of an OFPT_PACKET_IN with the whole frame, cut only where a message must end."""
    if version == V13 and reason == PacketInReason.PACKET_OUT:
        reason = PacketInReason.APPLY_ACTION  # 1.3 has one reason for every action
    head = (_PACKET_IN.pack(NO_BUFFER, len(frame), reason, 0, cookie)
            + encode_match(PipelineMatch(in_port=in_port)) + bytes(2))
    return head + frame[:MAX_BODY_BYTES - len(head)]
