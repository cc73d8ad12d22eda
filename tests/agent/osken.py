"""os-ken's codec as an independent witness: requests from it, replies read by it."""
from __future__ import annotations

from types import ModuleType

import pytest
from tests.agent.fake_datapath import FakeDatapath
from os_ken.ofproto import (ofproto_parser, ofproto_v1_3, ofproto_v1_3_parser, ofproto_v1_5,
                            ofproto_v1_5_parser)

from emulator.asic.openflow.constants import V13, V15
from emulator.asic.openflow.session import Session
from emulator.asic.switch import Switch

BOTH = pytest.mark.parametrize("version", [V13, V15])
FRAME = bytes.fromhex("020000000002" "020000000001" "0800" "45000028000000004006" "0000" "0a000001" "0a000102"
                      "1f900050" "0000000000000000500000000000" "0000")


class Clock:
    now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


def connect(version: int, **fake):
    """A greeted peer, the fake datapath and the switch between them."""
    datapath = FakeDatapath(**fake)
    switch = Switch(1, datapath, Clock())
    datapath.watch(lambda dpid, port, frame: switch.packet_in(port, frame),
                   lambda dpid, port: switch.port_status(port))
    return Peer(version, switch), datapath, switch


class Peer:
    """A controller's end in one version, without a socket; stands in for os-ken's Datapath too."""

    def __init__(self, version: int, switch: Switch, service: bool = False) -> None:
        self.ofproto: ModuleType = {V13: ofproto_v1_3, V15: ofproto_v1_5}[version]
        self.ofproto_parser: ModuleType = {V13: ofproto_v1_3_parser, V15: ofproto_v1_5_parser}[version]
        self.session = Session(switch, service, "a test")
        self._xid = 100
        hello = self.ofproto_parser.OFPHello(self, elements=[
            self.ofproto_parser.OFPHelloElemVersionBitmap([version])])
        self.send(hello)
        self.read()

    def send(self, *messages) -> list[int]:
        """Send os-ken messages in one piece; their xids."""
        data = bytearray()
        for message in messages:
            self._xid += 1
            message.xid = self._xid
            message.serialize()
            data += message.buf
        self.session.receive(bytes(data))
        return [message.xid for message in messages]

    def read(self) -> list:
        """What the switch has sent, decoded by os-ken."""
        data, found = bytes(self.session.out), []
        self.session.out.clear()
        while data:
            version, kind, length, xid = ofproto_parser.header(data)
            message = ofproto_parser.msg(self, version, kind, length, xid, data[:length])
            assert message is not None, f"os-ken cannot read message {kind}: {data[:length].hex()}"
            found.append(message)
            data = data[length:]
        return found

    def ask(self, *messages) -> list:
        self.send(*messages)
        return self.read()

    def flow(self, priority=100, match=None, actions=(), **fields):
        """A FlowMod with apply-actions."""
        parser = self.ofproto_parser
        instructions = [parser.OFPInstructionActions(self.ofproto.OFPIT_APPLY_ACTIONS, list(actions))]
        return parser.OFPFlowMod(self, priority=priority, match=parser.OFPMatch(**(match or {})),
                                 instructions=instructions if actions else [], **fields)

    def out(self, port: int):
        return self.ofproto_parser.OFPActionOutput(port)


def selection_words(method: str, param: int, fields: bytes = b"") -> list[int]:
    """The data of OFPGroupPropExperimenter for a selection method."""
    data = bytes(4) + method.encode().ljust(16, b"\0") + param.to_bytes(8, "big") + fields
    data += bytes(-len(data) % 4)
    return [int.from_bytes(data[i:i + 4], "big") for i in range(0, len(data), 4)]


def errors(messages) -> list[tuple[int, int, int]]:
    """(xid, type, code) of each OFPT_ERROR among them."""
    return [(message.xid, message.type, message.code) for message in messages
            if type(message).__name__ == "OFPErrorMsg"]


def group_add(peer: Peer, number: int, ports, method: str | None = None, param: int = 0, fields: bytes = b"",
              command: int | None = None):
    """A GroupMod of a select group whose buckets weigh 1, 2, …, with a selection method if given."""
    ofp, parser = peer.ofproto, peer.ofproto_parser
    command = ofp.OFPGC_ADD if command is None else command
    if ofp.OFP_VERSION == V13:
        buckets = [parser.OFPBucket(weight=1 + i, actions=[peer.out(port)]) for i, port in enumerate(ports)]
        return parser.OFPGroupMod(peer, command, ofp.OFPGT_SELECT, number, buckets)
    buckets = [parser.OFPBucket(i, [peer.out(port)], [parser.OFPGroupBucketPropWeight(
        type_=ofp.OFPGBPT_WEIGHT, weight=1 + i, length=8)]) for i, port in enumerate(ports)]
    properties = [] if method is None else [parser.OFPGroupPropExperimenter(
        type_=0xFFFF, experimenter=0x154D, exp_type=1, data=selection_words(method, param, fields))]
    return parser.OFPGroupMod(peer, command, ofp.OFPGT_SELECT, number, buckets=buckets, properties=properties)
