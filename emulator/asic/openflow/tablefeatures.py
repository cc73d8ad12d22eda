"""OFPMP_TABLE_FEATURES: the one table's abilities, said from the same tables that decode them."""
from __future__ import annotations

import struct

from emulator.asic.openflow.constants import V13, ActionType, Instruction
from emulator.asic.openflow.oxm import BASIC_CLASS, ETH_DST, ETH_SRC, FIELDS, MASKABLE, OXM_HEADER
from emulator.asic.openflow.wire import TLV, padded

_FEATURES_13 = struct.Struct("!HB5x32sQQII")
_FEATURES_15 = struct.Struct("!HBBI32sQQII")
_INGRESS_TABLE = 1  # OFPTFF_INGRESS_TABLE
_NO_LIMIT = 0xFFFFFFFF  # the agent has none; a datapath that is full refuses the FlowMod

_INSTRUCTIONS, _NEXT_TABLES, _WRITE_ACTIONS, _APPLY_ACTIONS = 0, 2, 4, 6
_MATCH, _WILDCARDS, _WRITE_SETFIELD, _APPLY_SETFIELD = 8, 10, 12, 14


def _property(kind: int, body: bytes) -> bytes:
    return padded(TLV.pack(kind, TLV.size + len(body)) + body)


def _ids(kinds: tuple[int, ...]) -> bytes:
    return b"".join(TLV.pack(kind, TLV.size) for kind in kinds)


def _oxm_id(number: int, size_bytes: int, maskable: bool) -> bytes:
    return OXM_HEADER.pack(BASIC_CLASS, number << 1 | maskable, size_bytes * (1 + maskable))


def encode_table_features(version: int) -> bytes:
    """One ofp_table_features for table 0."""
    instructions = (Instruction.WRITE_ACTIONS, Instruction.APPLY_ACTIONS, Instruction.CLEAR_ACTIONS)
    actions = _ids((ActionType.OUTPUT, ActionType.SET_QUEUE, ActionType.GROUP, ActionType.SET_FIELD))
    fields = b"".join(_oxm_id(number, field.size_bytes, number in MASKABLE)
                      for number, field in FIELDS.items())
    wildcards = b"".join(_oxm_id(number, field.size_bytes, False) for number, field in FIELDS.items())
    set_fields = b"".join(_oxm_id(number, 6, False) for number in (ETH_DST, ETH_SRC))
    body = b"".join((
        _property(_INSTRUCTIONS, _ids(instructions)), _property(_NEXT_TABLES, b""),
        _property(_WRITE_ACTIONS, actions), _property(_APPLY_ACTIONS, actions),
        _property(_MATCH, fields), _property(_WILDCARDS, wildcards),
        _property(_WRITE_SETFIELD, set_fields), _property(_APPLY_SETFIELD, set_fields)))
    if version == V13:
        return _FEATURES_13.pack(_FEATURES_13.size + len(body), 0, b"pipeline", 0, 0, 0, _NO_LIMIT) + body
    return _FEATURES_15.pack(_FEATURES_15.size + len(body), 0, 0, _INGRESS_TABLE, b"pipeline", 0, 0, 0,
                             _NO_LIMIT) + body
