"""Carrying out a PACKET_OUT: the agent rewrites, the datapath sends."""
from __future__ import annotations

import logging

from emulator.asic.openflow.actions import Output, SetMac
from emulator.asic.openflow.constants import PacketInReason, Port
from emulator.asic.openflow.errors import BadAction, BadRequest, Refused
from emulator.asic.openflow.packets import PacketOut
from emulator.asic.switch import Listener, Switch

_LOG = logging.getLogger(__name__)


def send_packet(switch: Switch, packet: PacketOut, sender: Listener) -> None:
    """Run the action list over the frame; nothing is sent if one of its actions is refused."""
    if packet.in_port not in switch.tables.ports and packet.in_port <= Port.MAX:
        raise Refused(BadRequest.BAD_PORT, f"in_port {packet.in_port} does not exist")
    frame = packet.frame
    outputs: list[tuple[int, bytes]] = []
    for action in packet.actions:
        if isinstance(action, SetMac):
            frame = action.mac + frame[6:] if action.attribute == "eth_dst" else (
                frame[:6] + action.mac + frame[12:])
        elif isinstance(action, Output):
            outputs += [(port, frame) for port in _ports(switch, action.port, packet.in_port)]
        else:
            raise Refused(BadAction.BAD_TYPE, f"{type(action).__name__} in a packet-out: packets of the "
                                              "controller go to a port and its default queue")
    for port, data in outputs:
        if port == Port.CONTROLLER:
            sender.packet_in(packet.in_port, PacketInReason.PACKET_OUT, 0xFFFFFFFFFFFFFFFF, data)
            continue
        try:
            switch.datapath.packet_out(switch.dpid, port, data)
        except ValueError as error:
            raise Refused(BadRequest.BAD_PACKET, str(error)) from error
        except OSError as error:  # a port that is down, a full queue: OpenFlow has no error for a lost packet
            _LOG.warning("switch %016x: a packet-out to port %d was lost: %s", switch.dpid, port, error)


def _ports(switch: Switch, port: int, in_port: int) -> list[int]:
    known = switch.tables.ports
    if port in (Port.ALL, Port.FLOOD):
        return sorted(known - {in_port})
    if port == Port.IN_PORT and in_port in known:
        return [in_port]
    if port in known or port == Port.CONTROLLER:
        return [port]
    raise Refused(BadAction.BAD_OUT_PORT, f"no port {port:#x}")
