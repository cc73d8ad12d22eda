"""os-ken's codec as an independent witness: requests from it, replies read by it."""
from __future__ import annotations

from types import ModuleType

from os_ken.ofproto import (ofproto_parser, ofproto_v1_3, ofproto_v1_3_parser, ofproto_v1_5,
                            ofproto_v1_5_parser)

from emulator.asic.openflow.constants import V13, V15
from emulator.asic.openflow.session import Session
from emulator.asic.switch import Switch


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
