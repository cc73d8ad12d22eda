"""Ports and queues on the wire: descriptions, statistics, status. 1.4 moved details into properties."""
from __future__ import annotations

import struct

from emulator.asic.openflow.constants import UNKNOWN_COUNT, V13
from emulator.asic.openflow.errors import BadProperty, PortModFailed, Refused
from emulator.asic.openflow.flows import split_duration
from emulator.asic.openflow.wire import tlvs, unpack
from emulator.asic.pipeline import PortState, QueueState

_PORT_13 = struct.Struct("!I4x6s2x16sIIIIIIII")
_PORT_15 = struct.Struct("!IH2x6s2x16sII")
_PORT_PROPERTY_ETHERNET = struct.Struct("!HH4xIIIIII")
_PORT_STATS_13 = struct.Struct("!I4x12QII")
_PORT_STATS_15 = struct.Struct("!H2xIII8Q")
_PORT_STATS_PROPERTY_ETHERNET = struct.Struct("!HH4x4Q")
_QUEUE_STATS_13 = struct.Struct("!II3QII")
_QUEUE_STATS_15 = struct.Struct("!H6xII3QII")
_QUEUE_DESC = struct.Struct("!IIH6x")
_PORT_STATUS = struct.Struct("!B7x")
_PORT_MOD_13 = struct.Struct("!I4x6s2xIII4x")
_PORT_MOD_15 = struct.Struct("!I4x6s2xII")

_STATE_LINK_DOWN, _STATE_LIVE = 1, 4
_REASON_MODIFY = 2
_PROPERTY_ETHERNET = 0

# ofp_port_features: the full-duplex rates that have a bit of their own
_RATE_FEATURES = {10e6: 1 << 1, 100e6: 1 << 3, 1e9: 1 << 5, 10e9: 1 << 6, 40e9: 1 << 7, 100e9: 1 << 8,
                  1e12: 1 << 9}
_FEATURE_OTHER = 1 << 10


def encode_port(version: int, port: PortState) -> bytes:
    """An ofp_port. Its speed is the emulated wire's, in kb/s."""
    state = _STATE_LIVE if port.up else _STATE_LINK_DOWN
    name = port.name.encode("ascii", "replace")[:15]
    features = _RATE_FEATURES.get(port.rate_bps, _FEATURE_OTHER)
    speed_kbps = min(round(port.rate_bps / 1000), 0xFFFFFFFF)
    details = (features, 0, 0, 0, speed_kbps, speed_kbps)  # current, advertised, supported, peer
    if version == V13:
        return _PORT_13.pack(port.number, port.mac, name, 0, state, *details)
    ethernet = _PORT_PROPERTY_ETHERNET.pack(_PROPERTY_ETHERNET, _PORT_PROPERTY_ETHERNET.size, *details)
    return _PORT_15.pack(port.number, _PORT_15.size + len(ethernet), port.mac, name, 0, state) + ethernet


def encode_port_status(version: int, port: PortState) -> bytes:
    """The body of an OFPT_PORT_STATUS: ports only ever change, they neither come nor go."""
    return _PORT_STATUS.pack(_REASON_MODIFY) + encode_port(version, port)


def encode_port_stats(version: int, port: PortState, up_s: float) -> bytes:
    """One ofp_port_stats; errors are counters that the switch does not have."""
    counts = (port.rx.packets, port.tx.packets, port.rx.bytes, port.tx.bytes,
              port.rx_dropped, port.tx_dropped)
    unknown = [UNKNOWN_COUNT] * 4
    if version == V13:
        return _PORT_STATS_13.pack(port.number, *counts, *unknown[:2], *unknown, *split_duration(up_s))
    ethernet = _PORT_STATS_PROPERTY_ETHERNET.pack(
        _PROPERTY_ETHERNET, _PORT_STATS_PROPERTY_ETHERNET.size, *unknown)
    return _PORT_STATS_15.pack(_PORT_STATS_15.size + len(ethernet), port.number, *split_duration(up_s),
                               *counts, *unknown[:2]) + ethernet


def encode_queue_stats(version: int, queue: QueueState, up_s: float) -> bytes:
    """One ofp_queue_stats; tx_errors are the packets dropped by this queue."""
    rest = (queue.port, queue.queue, queue.tx.bytes, queue.tx.packets, queue.dropped, *split_duration(up_s))
    if version == V13:
        return _QUEUE_STATS_13.pack(*rest)
    return _QUEUE_STATS_15.pack(_QUEUE_STATS_15.size, *rest)


def encode_queue_desc(queue: QueueState) -> bytes:
    """One ofp_queue_desc (1.5). Its rates are not settable by OpenFlow, so no properties."""
    return _QUEUE_DESC.pack(queue.port, queue.queue, _QUEUE_DESC.size)


def encode_packet_queue(queue: QueueState) -> bytes:
    """One ofp_packet_queue (1.3), the same thing under another order of fields."""
    return struct.pack("!IIH6x", queue.queue, queue.port, 16)


def check_port_mod(data: bytes, version: int, ports: list[PortState]) -> None:
    """Refuse an OFPT_PORT_MOD that would change something: a port's state belongs to the fabric."""
    if version == V13:
        number, mac, config, mask, advertise = unpack(_PORT_MOD_13, data)
    else:
        number, mac, config, mask = unpack(_PORT_MOD_15, data)
        advertise = 0
        for kind, item in tlvs(data[_PORT_MOD_15.size:], BadProperty.BAD_LEN, aligned=False):
            if kind != _PROPERTY_ETHERNET:
                raise Refused(BadProperty.BAD_TYPE, f"no port property {kind}")
            advertise |= unpack(struct.Struct("!4xI"), item, 0, BadProperty.BAD_LEN)[0]
    port = next((port for port in ports if port.number == number), None)
    if port is None:
        raise Refused(PortModFailed.BAD_PORT, f"no port {number}")
    if port.mac != mac:
        raise Refused(PortModFailed.BAD_HW_ADDR, f"port {number} has another address")
    if config & mask:
        raise Refused(PortModFailed.BAD_CONFIG, f"port {number} is not OpenFlow's to configure ({config:#x})")
    if advertise:
        raise Refused(PortModFailed.BAD_ADVERTISE, f"port {number} advertises nothing")
