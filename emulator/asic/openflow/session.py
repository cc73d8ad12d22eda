"""One OpenFlow connection of one switch, without its socket: bytes in, bytes out.

Every message gets what it asks for or the OFPT_ERROR that says why not; nothing that a peer sends
may end the process or go unanswered.
"""
from __future__ import annotations

import logging
import struct
from collections.abc import Callable
from enum import IntEnum

from emulator.asic.flowtable import FlowEntry
from emulator.asic.openflow import flows, groups, packets, ports
from emulator.asic.openflow.constants import V13, V15, VERSIONS, Message, PacketInReason, Removed, Role
from emulator.asic.openflow.errors import (
    AsyncConfigFailed, BadRequest, HelloFailed, MeterModFailed, QueueOpFailed, Refused, SwitchConfigFailed,
    TableModFailed)
from emulator.asic.openflow.hello import encode_hello, negotiate
from emulator.asic.openflow.multipart import ALL_QUEUES, answer, asked_queues
from emulator.asic.openflow.packetout import send_packet
from emulator.asic.openflow.roles import change_role
from emulator.asic.openflow.wire import HEADER, HEADER_BYTES, MAX_BODY_BYTES, message, unpack
from emulator.asic.pipeline import Count, PortState
from emulator.asic.switch import Switch

_LOG = logging.getLogger(__name__)
_FEATURES = struct.Struct("!QIBB2xII")
_NAMES = {int(kind): kind.name for kind in Message}
_CONFIG = struct.Struct("!HH")
_TABLE_MOD = struct.Struct("!B3xI")
_PORT_NUMBER = struct.Struct("!I4x")
_ERROR = struct.Struct("!HH")
_ERROR_DATA_BYTES = 64
# FLOW_STATS, TABLE_STATS, PORT_STATS, GROUP_STATS, QUEUE_STATS
_CAPABILITIES = 1 | 2 | 4 | 8 | 64
_MISS_SEND_LEN = 128
# A peer that reads nothing loses packet-ins before it costs memory.
_PACKET_IN_BACKLOG_BYTES = 1 << 20


class Session:
    """A connection: `receive` takes what the peer sent, `out` collects what to send it.

    `service` is True for a connection that somebody opened to us (ovs-ofctl): as in Open vSwitch it
    hears of events only once it has set a miss_send_len. `closing` holds the reason once the
    connection must end after `out` has gone.
    """

    def __init__(self, switch: Switch, service: bool, peer: str) -> None:
        self.switch = switch
        self.peer = peer
        self.out = bytearray()
        self.version: int | None = None
        self.closing: str | None = None
        self.role: int = Role.EQUAL
        self.miss_send_len = 0 if service else _MISS_SEND_LEN
        self.packet_ins_lost = 0
        self._service = service
        self._in = bytearray()
        self._xid = 0
        self.out += message(max(VERSIONS), Message.HELLO, 0, encode_hello())

    def receive(self, data: bytes) -> None:
        """Carry out what has arrived; what it changed is in force on return."""
        self._in += data
        offset = 0
        while self.closing is None and len(self._in) - offset >= HEADER_BYTES:
            version, kind, length, xid = HEADER.unpack_from(self._in, offset)
            if length < HEADER_BYTES:
                self._end(version, xid, bytes(self._in[offset:offset + HEADER_BYTES]),
                          Refused(BadRequest.BAD_LEN, f"a message of {length} bytes"))
                break
            if len(self._in) - offset < length:
                break
            self._take(version, kind, xid, bytes(self._in[offset:offset + length]))
            offset += length
        del self._in[:offset]
        self.switch.commit()

    def _take(self, version: int, kind: int, xid: int, whole: bytes) -> None:
        try:
            if self.version is None:
                self._greet(version, kind, whole[HEADER_BYTES:])
                return
            if version != self.version:
                raise Refused(BadRequest.BAD_VERSION, f"wire version {version}, agreed was {self.version}")
            self._dispatch(kind, xid, whole)
        except Refused as refusal:
            if self.version is None:
                self._end(version, xid, whole, refusal)
            else:
                self.refuse(xid, whole, refusal)

    def _greet(self, version: int, kind: int, body: bytes) -> None:
        if kind != Message.HELLO:
            raise Refused(HelloFailed.INCOMPATIBLE, f"message {kind} before any HELLO")
        self.version = negotiate(version, body)
        self.switch.listeners.append(self)

    def close(self) -> None:
        """The connection is gone: the switch tells it nothing more."""
        if self in self.switch.listeners:
            self.switch.listeners.remove(self)

    def _dispatch(self, kind: int, xid: int, whole: bytes) -> None:
        handler = _HANDLERS.get(kind)
        if handler is None:
            raise Refused(BadRequest.BAD_TYPE, f"no message of type {kind}")
        if self.role == Role.SLAVE and kind in _FOR_MASTERS:
            raise Refused(BadRequest.IS_SLAVE, f"{Message(kind).name} from a slave")
        handler(self, xid, whole)

    def send(self, kind: Message, xid: int, body: bytes = b"") -> None:
        assert self.version is not None
        self.out += message(self.version, kind, xid, body)

    def probe(self) -> None:
        """Ask the peer for a sign of life."""
        self.send(Message.ECHO_REQUEST, self._next_xid())

    def refuse(self, xid: int, whole: bytes, refusal: Refused) -> None:
        """Answer a message with an OFPT_ERROR."""
        name = _NAMES.get(whole[1], f"type {whole[1]}")
        _LOG.warning("switch %016x refuses %s from %s: %s (%s.%s)", self.switch.dpid, name, self.peer,
                     refusal, type(refusal.code).__name__, refusal.code.name)
        self.send(Message.ERROR, xid, _ERROR.pack(refusal.type, refusal.code) + whole[:_ERROR_DATA_BYTES])

    def _end(self, version: int, xid: int, whole: bytes, refusal: Refused) -> None:
        """An error after which the byte stream means nothing any more."""
        self.closing = str(refusal)
        data = str(refusal).encode() if isinstance(refusal.code, HelloFailed) else whole
        self.out += message(self.version or min(version, max(VERSIONS)), Message.ERROR, xid,
                            _ERROR.pack(refusal.type, refusal.code) + data[:_ERROR_DATA_BYTES])

    def _next_xid(self) -> int:
        self._xid = (self._xid + 1) & 0x7FFFFFFF
        return self._xid

    # What the switch tells of its own accord

    def _hears_events(self) -> bool:
        return not self._service or self.miss_send_len > 0

    def packet_in(self, in_port: int, reason: PacketInReason, cookie: int, frame: bytes) -> None:
        if self.role == Role.SLAVE or not self._hears_events():
            return
        if len(self.out) > _PACKET_IN_BACKLOG_BYTES:
            self.packet_ins_lost += 1
            return
        body = packets.encode_packet_in(self.version, in_port, reason, cookie, frame)
        self.send(Message.PACKET_IN, 0, body)

    def flow_removed(self, entry: FlowEntry, reason: Removed, count: Count) -> None:
        if self.role != Role.SLAVE and self._hears_events():
            self.send(Message.FLOW_REMOVED, 0,
                      flows.encode_flow_removed(self.version, entry, reason, count, self.switch.clock()))

    def port_status(self, port: PortState) -> None:
        if self._hears_events():
            self.send(Message.PORT_STATUS, 0, ports.encode_port_status(self.version, port))

    # Messages

    def _ignore(self, xid: int, whole: bytes) -> None:
        """A second HELLO, an answer to our probe."""

    def _error(self, xid: int, whole: bytes) -> None:
        _LOG.warning("switch %016x: %s reports an error: %s", self.switch.dpid, self.peer, whole[8:72].hex())

    def _echo(self, xid: int, whole: bytes) -> None:
        self.send(Message.ECHO_REPLY, xid, whole[HEADER_BYTES:])

    def _experimenter(self, xid: int, whole: bytes) -> None:
        raise Refused(BadRequest.BAD_EXPERIMENTER, "no experimenter messages")

    def _features(self, xid: int, whole: bytes) -> None:
        _no_body(whole)
        self.send(Message.FEATURES_REPLY, xid, _FEATURES.pack(self.switch.dpid, 0, 1, 0, _CAPABILITIES, 0))

    def _get_config(self, xid: int, whole: bytes) -> None:
        _no_body(whole)
        self.send(Message.GET_CONFIG_REPLY, xid, _CONFIG.pack(0, self.miss_send_len))

    def _set_config(self, xid: int, whole: bytes) -> None:
        config_flags, miss_send_len = unpack(_CONFIG, whole, HEADER_BYTES)
        if config_flags:
            raise Refused(SwitchConfigFailed.BAD_FLAGS, f"fragment handling {config_flags:#x}")
        self.miss_send_len = miss_send_len

    def _packet_out(self, xid: int, whole: bytes) -> None:
        self.switch.commit()
        send_packet(self.switch, packets.decode_packet_out(whole[HEADER_BYTES:], self.version), self)

    def _flow_mod(self, xid: int, whole: bytes) -> None:
        mod = flows.decode_flow_mod(whole[HEADER_BYTES:], self.version)
        self.switch.apply(mod, self._refuser(xid, whole))

    def _group_mod(self, xid: int, whole: bytes) -> None:
        mod = groups.decode_group_mod(whole[HEADER_BYTES:], self.version)
        self.switch.apply(mod, self._refuser(xid, whole))

    def _refuser(self, xid: int, whole: bytes) -> Callable[[Refused], None]:
        return lambda refusal: self.refuse(xid, whole, refusal)

    def _port_mod(self, xid: int, whole: bytes) -> None:
        ports.check_port_mod(whole[HEADER_BYTES:], self.version, self.switch.datapath.ports(self.switch.dpid))

    def _table_mod(self, xid: int, whole: bytes) -> None:
        table, config = unpack(_TABLE_MOD, whole, HEADER_BYTES)
        if table not in (0, 0xFF):
            raise Refused(TableModFailed.BAD_TABLE, f"table {table} of a pipeline that has table 0")
        if config or len(whole) > HEADER_BYTES + _TABLE_MOD.size:
            raise Refused(TableModFailed.BAD_CONFIG, f"table configuration {config:#x}")

    def _meter_mod(self, xid: int, whole: bytes) -> None:
        raise Refused(MeterModFailed.OUT_OF_METERS, "this switch has no meters")

    def _set_async(self, xid: int, whole: bytes) -> None:
        code: IntEnum = BadRequest.BAD_TYPE if self.version == V13 else AsyncConfigFailed.UNSUPPORTED
        raise Refused(code, "which events are told cannot be chosen")

    def _multipart(self, xid: int, whole: bytes) -> None:
        self.switch.commit()
        for body in answer(self.switch, self.version, whole[HEADER_BYTES:]):
            self.send(Message.MULTIPART_REPLY, xid, body)

    def _barrier(self, xid: int, whole: bytes) -> None:
        _no_body(whole)
        self.switch.commit()
        self.send(Message.BARRIER_REPLY, xid)

    def _queue_get_config(self, xid: int, whole: bytes) -> None:
        if self.version == V15:
            raise Refused(BadRequest.BAD_TYPE, "QUEUE_GET_CONFIG became multipart QUEUE_DESC in 1.4")
        port, = unpack(_PORT_NUMBER, whole, HEADER_BYTES)
        found = asked_queues(self.switch, port, ALL_QUEUES)
        body = _PORT_NUMBER.pack(port) + b"".join(ports.encode_packet_queue(queue) for queue in found)
        if len(body) > MAX_BODY_BYTES:
            raise Refused(QueueOpFailed.BAD_PORT, f"{len(found)} queues fit no message: ask port by port")
        self.send(Message.QUEUE_GET_CONFIG_REPLY, xid, body)

    def _role(self, xid: int, whole: bytes) -> None:
        self.send(Message.ROLE_REPLY, xid, change_role(self, whole[HEADER_BYTES:]))


def _no_body(whole: bytes) -> None:
    if len(whole) != HEADER_BYTES:
        raise Refused(BadRequest.BAD_LEN, f"a message of {len(whole)} bytes that has no content")


_HANDLERS: dict[int, Callable[[Session, int, bytes], None]] = {
    Message.HELLO: Session._ignore, Message.ERROR: Session._error, Message.ECHO_REQUEST: Session._echo,
    Message.ECHO_REPLY: Session._ignore, Message.EXPERIMENTER: Session._experimenter,
    Message.FEATURES_REQUEST: Session._features, Message.GET_CONFIG_REQUEST: Session._get_config,
    Message.SET_CONFIG: Session._set_config, Message.PACKET_OUT: Session._packet_out,
    Message.FLOW_MOD: Session._flow_mod, Message.GROUP_MOD: Session._group_mod,
    Message.PORT_MOD: Session._port_mod, Message.TABLE_MOD: Session._table_mod,
    Message.MULTIPART_REQUEST: Session._multipart, Message.BARRIER_REQUEST: Session._barrier,
    Message.QUEUE_GET_CONFIG_REQUEST: Session._queue_get_config, Message.ROLE_REQUEST: Session._role,
    Message.SET_ASYNC: Session._set_async, Message.METER_MOD: Session._meter_mod}
_FOR_MASTERS = (Message.PACKET_OUT, Message.FLOW_MOD, Message.GROUP_MOD, Message.PORT_MOD, Message.TABLE_MOD,
                Message.METER_MOD)
