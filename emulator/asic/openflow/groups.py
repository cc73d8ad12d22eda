"""GROUP_MOD and group statistics. Buckets, and all that hangs on them, differ between 1.3 and 1.5.

The selection property is Open vSwitch's (experimenter 0x154d; lib/ofp-group.c, `struct
ntr_group_prop_selection_method`): pad, a name of 16 bytes, a 64-bit parameter, the fields to hash as
OXM whose payload is a mask.
"""
from __future__ import annotations

import struct
from collections.abc import Sequence

from emulator.asic.flowtable import Bucket, GroupEntry
from emulator.asic.grouptable import SUPPORTED_TYPES, GroupMod
from emulator.asic.openflow.actions import (
    MAX_INSTRUCTION_BYTES, Output, SetMac, SetQueue, ToGroup, decode_actions)
from emulator.asic.openflow.constants import (
    NTR_EXPERIMENTER, NTR_SELECTION_METHOD, UNKNOWN_COUNT, V13, V15, ActionType, BucketId, GroupCommand,
    GroupId, GroupType, Port)
from emulator.asic.openflow.errors import BadAction, BadProperty, BadRequest, GroupModFailed, Refused
from emulator.asic.openflow.flows import split_duration
from emulator.asic.openflow.oxm import (
    BASIC_CLASS, IP_PROTO, IPV4_DST, IPV4_SRC, OXM_HEADER, TCP_DST, TCP_SRC, UDP_DST, UDP_SRC)
from emulator.asic.openflow.wire import padded, tlvs, unpack
from emulator.asic.pipeline import Count, PipelineBucket
from emulator.asic.selection import Choice, decode_selection
from emulator.errors import BadInput

_GROUP_MOD_13 = struct.Struct("!HBxI")
_GROUP_MOD_15 = struct.Struct("!HBxIH2xI")
_BUCKET_13 = struct.Struct("!HHII4x")
_BUCKET_15 = struct.Struct("!HHI")
_PROPERTY_WORD = struct.Struct("!HHI")
_PROPERTY_WEIGHT = struct.Struct("!HHH2x")
_PROPERTY_SELECTION = struct.Struct("!HHII4x16sQ")
_GROUP_STATS = struct.Struct("!H2xII4xQQII")
_GROUP_DESC_15 = struct.Struct("!HBxIH6x")
_GROUP_FEATURES = struct.Struct("!II4I4I")

_PROPERTY_EXPERIMENTER = 0xFFFF
_BUCKET_WEIGHT, _BUCKET_WATCH_PORT, _BUCKET_WATCH_GROUP = 0, 1, 2
_FIVE_TUPLE = {IPV4_SRC, IPV4_DST, TCP_SRC, TCP_DST, UDP_SRC, UDP_DST}
_FEATURE_SELECT_WEIGHT, _FEATURE_SELECT_LIVENESS = 1, 2


def decode_group_mod(data: bytes, version: int) -> GroupMod:
    """The body of an OFPT_GROUP_MOD. In a delete only the group's id is looked at."""
    if version == V13:
        command, kind, number = unpack(_GROUP_MOD_13, data)
        array, rest, command_bucket = data[_GROUP_MOD_13.size:], b"", BucketId.ALL
        if command in (GroupCommand.INSERT_BUCKET, GroupCommand.REMOVE_BUCKET):
            raise Refused(GroupModFailed.BAD_COMMAND, f"group command {command} in OpenFlow 1.3")
    else:
        command, kind, number, length, command_bucket = unpack(_GROUP_MOD_15, data)
        end = _GROUP_MOD_15.size + length
        if end > len(data):
            raise Refused(BadRequest.BAD_LEN, f"buckets of {length} bytes in a message of {len(data)}")
        array, rest = data[_GROUP_MOD_15.size:end], data[end:]
    if command in (GroupCommand.DELETE, GroupCommand.REMOVE_BUCKET):
        return GroupMod(command, number, kind, command_bucket_id=command_bucket)
    if kind not in SUPPORTED_TYPES and command != GroupCommand.INSERT_BUCKET:
        raise Refused(GroupModFailed.BAD_TYPE, f"group type {kind}: only select, indirect and "
                                               "fast failover (a packet is never copied)")
    buckets = _decode_buckets(array, version)
    choice, method, param, fields = _decode_properties(rest, kind)
    return GroupMod(command, number, kind, buckets, command_bucket, choice, method, param, fields)


def _decode_buckets(data: bytes, version: int) -> tuple[Bucket, ...]:
    header = _BUCKET_13 if version == V13 else _BUCKET_15
    buckets: list[Bucket] = []
    offset = 0
    while offset < len(data):
        fixed = unpack(header, data, offset, GroupModFailed.BAD_BUCKET)
        end = offset + fixed[0]
        if fixed[0] < header.size or fixed[0] % 8 or end > len(data):
            raise Refused(GroupModFailed.BAD_BUCKET, f"bucket of {fixed[0]} bytes")
        body = data[offset + header.size:end]
        if version == V13:
            _, weight, watch_port, watch_group = fixed
            buckets.append(_bucket(len(buckets), body, version, weight, watch_port, watch_group))
        else:
            buckets.append(_decode_bucket_15(fixed[2], fixed[1], body))
        offset = end
    return tuple(buckets)


def _decode_bucket_15(number: int, actions_length: int, body: bytes) -> Bucket:
    if number > BucketId.MAX:
        raise Refused(GroupModFailed.BAD_BUCKET, f"bucket id {number:#x} is reserved")
    if actions_length > len(body):
        raise Refused(GroupModFailed.BAD_BUCKET, f"{actions_length} bytes of actions in {len(body)}")
    weight, watch_port, watch_group = 1, int(Port.ANY), int(GroupId.ANY)
    for kind, item in tlvs(body[actions_length:], BadProperty.BAD_LEN, aligned=False):
        if kind == _BUCKET_WEIGHT:
            weight = unpack(_PROPERTY_WEIGHT, padded(item), 0, BadProperty.BAD_LEN)[2]
        elif kind == _BUCKET_WATCH_PORT:
            watch_port = unpack(_PROPERTY_WORD, item, 0, BadProperty.BAD_LEN)[2]
        elif kind == _BUCKET_WATCH_GROUP:
            watch_group = unpack(_PROPERTY_WORD, item, 0, BadProperty.BAD_LEN)[2]
        elif kind == _PROPERTY_EXPERIMENTER:
            raise Refused(BadProperty.BAD_EXPERIMENTER, "no experimenter properties of buckets")
        else:
            raise Refused(BadProperty.BAD_TYPE, f"no bucket property {kind}")
    return _bucket(number, body[:actions_length], V15, weight, watch_port, watch_group)


def _bucket(number: int, actions: bytes, version: int, weight: int, watch_port: int,
            watch_group: int) -> Bucket:
    """One member: rewrites and exactly one port."""
    if watch_group != GroupId.ANY:
        raise Refused(GroupModFailed.WATCH_UNSUPPORTED, "buckets can watch ports, not groups")
    if len(actions) > MAX_INSTRUCTION_BYTES:
        raise Refused(BadAction.TOO_MANY, f"{len(actions)} bytes of actions in a bucket")
    port = queue = eth_dst = None
    for action in decode_actions(actions, version):
        if isinstance(action, ToGroup):
            raise Refused(GroupModFailed.CHAINING_UNSUPPORTED, "a bucket that sends to a group")
        if isinstance(action, SetMac):
            if action.attribute != "eth_dst":
                raise Refused(BadAction.BAD_SET_TYPE, "a bucket can set eth_dst, not eth_src")
            eth_dst = action.mac
        elif isinstance(action, SetQueue):
            queue = action.queue
        elif isinstance(action, Output):
            if port is not None:
                raise Refused(BadAction.TOO_MANY, "a bucket with two outputs")
            port = action.port
    if port is None:
        raise Refused(GroupModFailed.BAD_BUCKET, "a bucket without an output")
    watch = None if watch_port == Port.ANY else watch_port
    return Bucket(number, PipelineBucket(port, weight, watch, eth_dst, queue), actions)


def _decode_properties(data: bytes, kind: int) -> tuple[Choice | None, str, int, bytes]:
    choice, method, param, fields = None, "", 0, b""
    for number, item in tlvs(data, BadProperty.BAD_LEN, aligned=False):
        if number != _PROPERTY_EXPERIMENTER:
            raise Refused(BadProperty.BAD_TYPE, f"no group property {number}")
        experimenter, exp_type = unpack(struct.Struct("!4xII"), item, 0, BadProperty.BAD_LEN)
        if experimenter != NTR_EXPERIMENTER:
            raise Refused(BadProperty.BAD_EXPERIMENTER, f"no property of experimenter {experimenter:#x}")
        if exp_type != NTR_SELECTION_METHOD:
            raise Refused(BadProperty.BAD_EXP_TYPE, f"no group property {exp_type} of {experimenter:#x}")
        if choice is not None:
            raise Refused(BadProperty.DUP_TYPE, "two selection methods")
        if kind != GroupType.SELECT:
            raise Refused(BadProperty.BAD_EXP_VALUE, "a selection method for a group that selects nothing")
        name, param = unpack(_PROPERTY_SELECTION, item, 0, BadProperty.BAD_LEN)[4:]
        fields = item[_PROPERTY_SELECTION.size:]
        method = name.split(b"\0")[0].decode("ascii", "replace")
        try:
            choice = decode_selection(method, param)
        except BadInput as error:
            raise Refused(GroupModFailed.INVALID_GROUP, str(error)) from None
        _check_fields(method, fields)
    return choice, method, param, fields


def _check_fields(method: str, data: bytes) -> None:
    """The pipeline hashes the five-tuple; another set of fields would silently be another hash."""
    numbers = set()
    offset = 0
    while offset < len(data):
        oxm_class, tag, length = unpack(OXM_HEADER, data, offset, BadProperty.BAD_LEN)
        mask = data[offset + OXM_HEADER.size:offset + OXM_HEADER.size + length]
        if len(mask) != length:
            raise Refused(BadProperty.BAD_LEN, "fields to hash that end within a field")
        if oxm_class != BASIC_CLASS or tag & 1 or mask.strip(b"\xff"):
            raise Refused(GroupModFailed.INVALID_GROUP, f"cannot hash a part of OXM field {tag >> 1}")
        numbers.add(tag >> 1)
        offset += OXM_HEADER.size + length
    if numbers and (method == "dp_hash" or numbers | {IP_PROTO} != _FIVE_TUPLE | {IP_PROTO}):
        raise Refused(GroupModFailed.INVALID_GROUP,
                      f"selection method {method} over OXM fields {sorted(numbers)}: give no fields, or "
                      "(not for dp_hash) ip_src, ip_dst and the TCP and UDP ports, which the switch hashes")


def _encode_bucket(bucket: Bucket, version: int, kind: int) -> bytes:
    member, actions = bucket.member, bucket.actions
    watch = Port.ANY if member.watch_port is None else member.watch_port
    if version == V13:
        weight = member.weight if kind == GroupType.SELECT else 0
        return _BUCKET_13.pack(_BUCKET_13.size + len(actions), weight, watch, GroupId.ANY) + actions
    properties = b""
    if kind == GroupType.SELECT:
        properties += _PROPERTY_WEIGHT.pack(_BUCKET_WEIGHT, _PROPERTY_WEIGHT.size, member.weight)
    if member.watch_port is not None:
        properties += _PROPERTY_WORD.pack(_BUCKET_WATCH_PORT, _PROPERTY_WORD.size, watch)
    length = _BUCKET_15.size + len(actions) + len(properties)
    return _BUCKET_15.pack(length, len(actions), bucket.id) + actions + properties


def encode_group_desc(version: int, group: GroupEntry) -> bytes:
    """One ofp_group_desc."""
    buckets = b"".join(_encode_bucket(bucket, version, group.type) for bucket in group.buckets)
    if version == V13:
        return _GROUP_MOD_13.pack(_GROUP_MOD_13.size + len(buckets), group.type, group.id) + buckets
    properties = b""
    if group.method:
        properties = padded(_PROPERTY_SELECTION.pack(
            _PROPERTY_EXPERIMENTER, _PROPERTY_SELECTION.size + len(group.fields), NTR_EXPERIMENTER,
            NTR_SELECTION_METHOD, group.method.encode(), group.param) + group.fields)
    length = _GROUP_DESC_15.size + len(buckets) + len(properties)
    return _GROUP_DESC_15.pack(length, group.type, group.id, len(buckets)) + buckets + properties


def encode_group_stats(group: GroupEntry, references: int, counts: Sequence[Count] | None,
                       now_s: float) -> bytes:
    """One ofp_group_stats; without `counts` the counters are 'not available'."""
    unknown = Count(UNKNOWN_COUNT, UNKNOWN_COUNT)
    members = [unknown] * len(group.buckets) if counts is None else counts
    packets = UNKNOWN_COUNT if counts is None else sum(count.packets for count in counts)
    size = UNKNOWN_COUNT if counts is None else sum(count.bytes for count in counts)
    return _GROUP_STATS.pack(
        _GROUP_STATS.size + 16 * len(members), group.id, references, packets, size,
        *split_duration(now_s - group.installed_s)) + b"".join(
            struct.pack("!QQ", count.packets, count.bytes) for count in members)


def encode_group_features() -> bytes:
    """The body of a group features reply: the agent itself sets no limit on groups."""
    types = sum(1 << kind for kind in SUPPORTED_TYPES)
    actions = sum(1 << kind for kind in (ActionType.OUTPUT, ActionType.SET_QUEUE, ActionType.SET_FIELD))
    return _GROUP_FEATURES.pack(
        types, _FEATURE_SELECT_WEIGHT | _FEATURE_SELECT_LIVENESS,
        *(int(GroupId.MAX) if types >> kind & 1 else 0 for kind in range(4)),
        *(actions if types >> kind & 1 else 0 for kind in range(4)))
