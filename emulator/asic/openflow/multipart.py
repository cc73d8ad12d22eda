"""Multipart requests: what a switch says of itself."""
from __future__ import annotations

import struct
from collections.abc import Callable, Iterable

from emulator import __version__
from emulator.asic.openflow import flows, groups, ports
from emulator.asic.openflow.constants import (
    ALL_TABLES, UNKNOWN_COUNT, V13, GroupId, Multipart, Port)
from emulator.asic.openflow.errors import (
    BadRequest, QueueOpFailed, Refused, TableFeaturesFailed)
from emulator.asic.openflow.tablefeatures import encode_table_features
from emulator.asic.openflow.wire import unpack
from emulator.asic.flowtable import FlowEntry, selected
from emulator.asic.pipeline import Count, QueueState
from emulator.asic.switch import UNKNOWN, Switch

_HEADER = struct.Struct("!HH4x")
_MORE = 1
_PART_BYTES = 60000
_DESC = struct.Struct("!256s256s256s32s256s")
_TABLE_STATS = struct.Struct("!B3xIQQ")
_TABLE_DESC = struct.Struct("!HBxI")
_ONE_NUMBER = struct.Struct("!I4x")
_PORT_AND_QUEUE = struct.Struct("!II")
ALL_QUEUES = 0xFFFFFFFF

Answer = Callable[[Switch, int, bytes], Iterable[bytes]]


def answer(switch: Switch, version: int, body: bytes) -> list[bytes]:
    """The bodies of the replies to a multipart request; Refused for what the switch does not tell."""
    kind, flags = unpack(_HEADER, body)
    if flags & _MORE:
        raise Refused(BadRequest.MULTIPART_BUFFER_OVERFLOW, "requests in several parts are not taken")
    known = _ANSWERS.get(kind)
    if known is None or (version == V13 and kind in _ONLY_15):
        raise Refused(BadRequest.BAD_MULTIPART, f"no multipart request of type {kind}")
    items = known(switch, version, body[_HEADER.size:])
    bodies = list(_parts(items))
    last = len(bodies) - 1
    return [_HEADER.pack(kind, _MORE if number < last else 0) + part for number, part in enumerate(bodies)]


def _parts(items: Iterable[bytes]) -> Iterable[bytes]:
    """Items joined into parts that fit a message; at least one, which may be empty."""
    part = bytearray()
    for item in items:
        if part and len(part) + len(item) > _PART_BYTES:
            yield bytes(part)
            part = bytearray()
        part += item
    yield bytes(part)


def _nothing(body: bytes) -> None:
    if body:
        raise Refused(BadRequest.BAD_LEN, f"{len(body)} bytes in a request without content")


def _desc(switch: Switch, version: int, body: bytes) -> Iterable[bytes]:
    _nothing(body)
    texts = ("AI fabric emulator", "eBPF switch", f"emulator {__version__}", f"{switch.dpid:016x}",
             f"switch {switch.dpid:016x}")
    yield _DESC.pack(*(text.encode() for text in texts))


def _asked_entries(switch: Switch, body: bytes) -> list[tuple[FlowEntry, Count]]:
    request = flows.decode_flow_stats_request(body)
    if request.table_id not in (0, ALL_TABLES):
        raise Refused(BadRequest.BAD_TABLE_ID, f"table {request.table_id} of a pipeline that has table 0")
    counts = switch.datapath.rule_counts(switch.dpid)
    return [(entry, counts.get(entry.id, UNKNOWN)) for entry in selected(switch.tables, request).values()]


def _flow(switch: Switch, version: int, body: bytes) -> Iterable[bytes]:
    encode = flows.encode_flow_stats_13 if version == V13 else flows.encode_flow_desc_15
    return [encode(entry, count, switch.clock()) for entry, count in _asked_entries(switch, body)]


def _flow_stats(switch: Switch, version: int, body: bytes) -> Iterable[bytes]:
    return [flows.encode_flow_stats_15(entry, count, switch.clock())
            for entry, count in _asked_entries(switch, body)]


def _aggregate(switch: Switch, version: int, body: bytes) -> Iterable[bytes]:
    found = [count for _, count in _asked_entries(switch, body)]
    total = UNKNOWN if UNKNOWN in found else Count(sum(c.packets for c in found), sum(c.bytes for c in found))
    return [flows.encode_aggregate(version, len(found), total)]


def _table(switch: Switch, version: int, body: bytes) -> Iterable[bytes]:
    """Lookups and matches are not counted as such, which -1 says."""
    _nothing(body)
    yield _TABLE_STATS.pack(0, len(switch.tables.flows), UNKNOWN_COUNT, UNKNOWN_COUNT)


def _table_features(switch: Switch, version: int, body: bytes) -> Iterable[bytes]:
    if body:
        raise Refused(TableFeaturesFailed.EPERM, "the pipeline's features cannot be changed")
    yield encode_table_features(version)


def _table_desc(switch: Switch, version: int, body: bytes) -> Iterable[bytes]:
    _nothing(body)
    yield _TABLE_DESC.pack(_TABLE_DESC.size, 0, 0)


def _port_stats(switch: Switch, version: int, body: bytes) -> Iterable[bytes]:
    up_s = switch.clock() - switch.started_s
    return [ports.encode_port_stats(version, port, up_s) for port in _asked_ports(switch, body)]


def _port_desc(switch: Switch, version: int, body: bytes) -> Iterable[bytes]:
    if not body or version == V13:  # 1.5 asks for one port or ANY, 1.3 always for all
        _nothing(body)
        body = _ONE_NUMBER.pack(Port.ANY)
    return [ports.encode_port(version, port) for port in _asked_ports(switch, body)]


def _asked_ports(switch: Switch, body: bytes) -> list:
    number, = unpack(_ONE_NUMBER, body)
    found = [port for port in switch.datapath.ports(switch.dpid) if number in (port.number, Port.ANY)]
    if not found and number != Port.ANY:
        raise Refused(BadRequest.BAD_PORT, f"no port {number}")
    return found


def asked_queues(switch: Switch, port: int, queue: int) -> list[QueueState]:
    """The queues of `port` (or ANY) with number `queue` (or ALL_QUEUES)."""
    if port != Port.ANY and port not in switch.tables.ports:
        raise Refused(QueueOpFailed.BAD_PORT, f"no port {port}")
    found = [state for state in switch.datapath.queues(switch.dpid)
             if port in (state.port, Port.ANY) and queue in (state.queue, ALL_QUEUES)]
    if not found and queue != ALL_QUEUES:
        raise Refused(QueueOpFailed.BAD_QUEUE, f"no queue {queue}")
    return found


def _queue_stats(switch: Switch, version: int, body: bytes) -> Iterable[bytes]:
    up_s = switch.clock() - switch.started_s
    return [ports.encode_queue_stats(version, queue, up_s)
            for queue in asked_queues(switch, *unpack(_PORT_AND_QUEUE, body))]


def _queue_desc(switch: Switch, version: int, body: bytes) -> Iterable[bytes]:
    return [ports.encode_queue_desc(queue)
            for queue in asked_queues(switch, *unpack(_PORT_AND_QUEUE, body))]


def _asked_groups(switch: Switch, body: bytes) -> list:
    number, = unpack(_ONE_NUMBER, body)
    return [group for group in switch.tables.groups.values() if number in (group.id, GroupId.ALL)]


def _group(switch: Switch, version: int, body: bytes) -> Iterable[bytes]:
    counts = switch.datapath.bucket_counts(switch.dpid)
    users = [entry.actions.group for entry in switch.tables.flows.values()]
    return [groups.encode_group_stats(group, users.count(group.id), counts.get(group.id), switch.clock())
            for group in _asked_groups(switch, body)]


def _group_desc(switch: Switch, version: int, body: bytes) -> Iterable[bytes]:
    if not body or version == V13:  # 1.5 asks for one group or ALL, 1.3 always for all
        _nothing(body)
        body = _ONE_NUMBER.pack(GroupId.ALL)
    return [groups.encode_group_desc(version, group) for group in _asked_groups(switch, body)]


def _group_features(switch: Switch, version: int, body: bytes) -> Iterable[bytes]:
    _nothing(body)
    yield groups.encode_group_features()


_ANSWERS: dict[int, Answer] = {
    Multipart.DESC: _desc, Multipart.FLOW: _flow, Multipart.AGGREGATE: _aggregate, Multipart.TABLE: _table,
    Multipart.PORT_STATS: _port_stats, Multipart.QUEUE_STATS: _queue_stats, Multipart.GROUP: _group,
    Multipart.GROUP_DESC: _group_desc, Multipart.GROUP_FEATURES: _group_features,
    Multipart.TABLE_FEATURES: _table_features, Multipart.PORT_DESC: _port_desc,
    Multipart.TABLE_DESC: _table_desc, Multipart.QUEUE_DESC: _queue_desc, Multipart.FLOW_STATS: _flow_stats}
_ONLY_15 = (Multipart.TABLE_DESC, Multipart.QUEUE_DESC, Multipart.FLOW_STATS)
