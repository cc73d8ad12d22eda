"""What a switch says that it holds, as tables: flow and group descriptions (OpenFlow 1.5, flows in 1.3 too).

The layouts are those of the standard, sections 7.3.5.2 and 7.3.5.10 of 1.5.1. os-ken's own decoder reads
the group property of Open vSwitch in words of 32 bits, on which its list of fields does not end, and on
into the next group; `mending.py` therefore leaves descriptions as bytes, and they are taken apart here.
"""
from __future__ import annotations

import ipaddress
import struct
from collections.abc import Iterable
from typing import Any

from os_ken.ofproto import ofproto_v1_5 as ofp
from os_ken.ofproto import ofproto_v1_5_parser as parser

from controllers.tables import (TCP, UDP, Action, Bucket, FlowRule, Group, Match, Output, Selection,
                                SetEthDst, SwitchTables, ToGroup)

_FLOW = struct.Struct("!H2xBxHHHHHQ")  # length, table, priority, idle, hard, flags, importance, cookie
_GROUP = struct.Struct("!HBxIH6x")     # length, type, number, bytes of buckets
_BUCKET = struct.Struct("!HHI")        # length, bytes of actions, number
_PROPERTY = struct.Struct("!HH")
_SELECTION = struct.Struct("!HHII4x16sQ")
_ETH_TYPE_IPV4 = 0x0800
_FIELD = {(10,): "ip_proto", (11,): "ipv4_src", (12,): "ipv4_dst", (13, 15): "l4_src", (14, 16): "l4_dst"}


class Foreign(Exception):
    """The switch holds something that this controller never installs."""


def tables(dpid: int, flows: Iterable[Any], groups: Iterable[bytes]) -> SwitchTables:
    """The tables of switch `dpid` from os-ken's flow statistics (1.3) or descriptions as bytes (1.5).

    Raises Foreign for what `SwitchTables` cannot express.
    """
    rules = tuple(_described(each) if isinstance(each, bytes)
                  else _rule(each.priority, each.match, each.instructions) for each in flows)
    return SwitchTables(dpid, rules, tuple(_group(each) for each in groups))


def _described(data: bytes) -> FlowRule:
    """One ofp_flow_desc: header, match, statistics, instructions."""
    length, table, priority, idle, hard, *_ = _FLOW.unpack_from(data)
    if table or idle or hard:
        raise Foreign(f"a rule in table {table} with timeouts {idle} and {hard}")
    match = parser.OFPMatch.parser(data, _FLOW.size)
    at = _FLOW.size + -(-match.length // 8) * 8
    at += -(-struct.unpack_from("!2xH", data, at)[0] // 8) * 8
    instructions = []
    while at < length:
        instructions.append(parser.OFPInstruction.parser(data, at))
        at += instructions[-1].len
    return _rule(priority, match, instructions)


def _rule(priority: int, match: Any, instructions: Iterable[Any]) -> FlowRule:
    actions: list[Action] = []
    for instruction in instructions:
        if instruction.type != ofp.OFPIT_APPLY_ACTIONS:
            raise Foreign(f"a rule with instruction {instruction.type}")
        actions += map(_action, instruction.actions)
    return FlowRule(priority, _match(dict(match.items())), tuple(actions))


def _action(action: Any) -> Action:
    if action.type == ofp.OFPAT_OUTPUT:
        return Output(action.port)
    if action.type == ofp.OFPAT_GROUP:
        return ToGroup(action.group_id)
    if action.type == ofp.OFPAT_SET_FIELD and action.key == "eth_dst":
        return SetEthDst(action.value)
    raise Foreign(f"a rule with action {action.type}")


def _match(fields: dict[str, Any]) -> Match:
    """Fields by os-ken's names; a mask is a pair (value, mask)."""
    if fields.pop("eth_type", _ETH_TYPE_IPV4) != _ETH_TYPE_IPV4:
        raise Foreign("a rule for other packets than IPv4")
    values: dict[str, Any] = {}
    for name in ("ipv4_dst", "ipv4_src"):
        if name in fields:
            value = fields.pop(name)
            address, mask = value if isinstance(value, tuple) else (value, "255.255.255.255")
            values[name] = str(ipaddress.IPv4Network(f"{address}/{mask}"))
    values |= {name: fields.pop(name) for name in ("ip_proto", "ip_dscp") if name in fields}
    prefix = {TCP: "tcp", UDP: "udp"}.get(values.get("ip_proto", 0), "none")
    for end in ("src", "dst"):
        if f"{prefix}_{end}" in fields:
            values[f"l4_{end}"] = fields.pop(f"{prefix}_{end}")
    if fields or any(isinstance(value, tuple) for value in values.values()):
        raise Foreign(f"a rule that looks at {', '.join(fields) or 'a part of a field'}")
    return Match(**values)


def _group(data: bytes) -> Group:
    """One ofp_group_desc."""
    length, kind, number, of_buckets = _GROUP.unpack_from(data)
    if kind != ofp.OFPGT_SELECT:
        raise Foreign(f"a group of type {kind}")
    at, end = _GROUP.size, _GROUP.size + of_buckets
    buckets = []
    while at < end:
        size = _BUCKET.unpack_from(data, at)[0]
        buckets.append(_bucket(data[at:at + size]))
        at += size
    selections = [_selection(each) for each in _properties(data[end:length])]
    if len(selections) != 1:
        raise Foreign(f"a group with {len(selections)} ways to select")
    return Group(number, tuple(buckets), selections[0])


def _properties(data: bytes) -> Iterable[bytes]:
    at = 0
    while at + _PROPERTY.size <= len(data):
        size = _PROPERTY.unpack_from(data, at)[1]
        if size < _PROPERTY.size:
            raise Foreign("a property without a length")
        yield data[at:at + size]
        at += -(-size // 8) * 8


def _bucket(data: bytes) -> Bucket:
    length, of_actions, _ = _BUCKET.unpack_from(data)
    end = _BUCKET.size + of_actions
    action = _action(parser.OFPAction.parser(data, _BUCKET.size))
    weight, watched = 1, None
    for each in _properties(data[end:length]):
        kind = _PROPERTY.unpack_from(each)[0]
        if kind == ofp.OFPGBPT_WEIGHT:
            weight, = struct.unpack_from("!H", each, 4)
        elif kind == ofp.OFPGBPT_WATCH_PORT:
            watched, = struct.unpack_from("!I", each, 4)
    if not isinstance(action, Output) or watched != action.port:
        raise Foreign("a bucket that does not watch the one port it sends to")
    return Bucket(action.port, weight)


def _selection(data: bytes) -> Selection:
    kind, length, _, _, name, param = _SELECTION.unpack_from(data)
    if kind != ofp.OFPGPT_EXPERIMENTER:
        raise Foreign(f"a group with property {kind}")
    numbers, at = set(), _SELECTION.size
    while at + 4 <= length:
        tag, size = struct.unpack_from("!2xBB", data, at)
        numbers.add(tag >> 1)
        at += 4 + size
    fields = tuple(field for of_field, field in _FIELD.items() if numbers.issuperset(of_field))
    return Selection(name.rstrip(b"\0").decode("ascii", "replace"), param,
                     tuple(field for field in Selection().fields if field in fields))
