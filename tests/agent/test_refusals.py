"""What the switch does not do, and who may not do it: the OFPT_ERROR of each case, by os-ken's reading."""
from __future__ import annotations

import pytest
from tests.agent.osken import BOTH, Peer, connect, errors, group_add

from emulator.asic.openflow.constants import V13, V15

FIVE_TUPLE = bytes.fromhex("80001604ffffffff80001804ffffffff80001a02ffff80001c02ffff80001e02ffff80002002ffff")


@pytest.mark.parametrize(("method", "param", "fields", "code"), [
    ("hash", 1, FIVE_TUPLE, None), ("hash", 1, FIVE_TUPLE[:16], 1), ("dp_hash", 1, FIVE_TUPLE, 1),
    ("hash", 1, FIVE_TUPLE.replace(b"\xff", b"\xf0"), 1), ("flowlet", 1, b"", 1), ("magic", 1, b"", 1),
    ("spray", 2 << 32, b"", 1)])
def test_a_selection_the_switch_lacks_is_refused(method: str, param: int, fields: bytes,
                                                 code: int | None) -> None:
    peer, datapath, _ = connect(V15)
    answers = peer.ask(group_add(peer, 1, [1, 2], method, param, fields))
    assert [(kind, number) for _, kind, number in errors(answers)] == ([] if code is None else [(6, code)])
    assert len(datapath.tables[1].groups) == (code is None)


@BOTH
def test_what_the_datapath_lacks_is_blamed_on_its_own_message(version: int) -> None:
    peer, datapath, _ = connect(version)
    dscp63 = {"eth_type": 0x800, "ip_dscp": 63}  # this fake cannot match it
    messages = [peer.flow(1, {}, [peer.out(1)]), peer.flow(2, dscp63, [peer.out(2)]),
                peer.flow(3, {}, [peer.out(3)]), peer.ofproto_parser.OFPBarrierRequest(peer)]
    answers = peer.ask(*messages)
    assert errors(answers) == [(messages[1].xid, 5, 0)]
    assert type(answers[-1]).__name__ == "OFPBarrierReply"
    assert [rule.priority for rule in datapath.tables[1].rules] == [3, 1]


def test_a_mode_the_datapath_lacks_takes_only_its_users_along() -> None:
    peer, datapath, _ = connect(V15, modes=("hash",))
    to_group = [peer.ofproto_parser.OFPActionGroup(number) for number in (1, 2)]
    messages = [group_add(peer, 1, [1, 2], "spray", 0), group_add(peer, 2, [1, 2], "hash", 5),
                peer.flow(1, {}, to_group[:1]), peer.flow(2, {}, to_group[1:])]
    assert errors(peer.ask(*messages)) == [(messages[0].xid, 6, 1), (messages[2].xid, 2, 9)]
    assert [group.id for group in datapath.tables[1].groups] == [2]
    assert [rule.priority for rule in datapath.tables[1].rules] == [2]


@BOTH
def test_a_queue_that_ports_do_not_have_is_refused(version: int) -> None:
    """Without --classes a port has queue 0, and no rule or bucket may ask for another."""
    peer, datapath, _ = connect(version, queues=1)
    parser, ofp = peer.ofproto_parser, peer.ofproto

    def queued(queue: int):
        return [parser.OFPActionSetQueue(queue), peer.out(1)]

    def group(number: int, queue: int):
        bucket = (parser.OFPBucket(weight=1, actions=queued(queue)) if version == V13
                  else parser.OFPBucket(1, queued(queue), []))
        return parser.OFPGroupMod(peer, ofp.OFPGC_ADD, ofp.OFPGT_SELECT, number, buckets=[bucket])

    messages = [peer.flow(1, {}, queued(0)), peer.flow(2, {}, queued(5)), group(1, 0), group(2, 5)]
    bad_queue = (2, ofp.OFPBAC_BAD_QUEUE)
    assert errors(peer.ask(*messages)) == [(messages[1].xid, *bad_queue), (messages[3].xid, *bad_queue)]
    assert [rule.priority for rule in datapath.tables[1].rules] == [1]
    assert [group.id for group in datapath.tables[1].groups] == [1]


@BOTH
def test_a_frame_that_no_port_takes_is_refused(version: int) -> None:
    """As when a controller sends back a packet-in that the ports of the other end cannot take."""
    peer, datapath, _ = connect(version)
    parser, ofp = peer.ofproto_parser, peer.ofproto

    def packet_out(frame: bytes):
        in_port = 1 if version == V13 else parser.OFPMatch(in_port=1)
        return parser.OFPPacketOut(peer, ofp.OFP_NO_BUFFER, in_port, [peer.out(2)], frame)

    large = packet_out(bytes(9014))
    assert errors(peer.ask(large, packet_out(bytes(60)))) == [(large.xid, 1, ofp.OFPBRC_BAD_PACKET)]
    assert datapath.sent == [(1, 2, bytes(60))], "what came behind it is still carried out"


@BOTH
def test_roles_are_those_of_one_switch(version: int) -> None:
    first, _, switch = connect(version)
    second = Peer(version, switch)

    def role(peer: Peer, name: str, generation: int):
        arguments = (generation,) if version == V13 else (0, generation)  # 1.5 has a short id
        request = peer.ofproto_parser.OFPRoleRequest(peer, getattr(peer.ofproto, name), *arguments)
        return peer.ask(request)[-1]

    assert role(first, "OFPCR_ROLE_NOCHANGE", 0).role == first.ofproto.OFPCR_ROLE_EQUAL
    assert role(first, "OFPCR_ROLE_MASTER", 5).role == first.ofproto.OFPCR_ROLE_MASTER
    assert role(second, "OFPCR_ROLE_MASTER", 6).generation_id == 6
    first.read()  # 1.5 tells the old master
    assert errors(first.ask(first.flow(1, {}, [first.out(1)])))[0][1:] == (1, 10)
    stale = role(first, "OFPCR_ROLE_MASTER", 5)
    assert (stale.type, stale.code) == (11, 0)


@BOTH
@pytest.mark.parametrize(("name", "wanted"), [
    ("OFPMeterMod", (12, 10)), ("OFPExperimenter", (1, 3)), ("OFPMeterStatsRequest", (1, 2)),
    ("OFPTableMod", (8, 1)), ("OFPPortMod", (7, 0)), ("OFPSetConfig", (10, 0)),
    ("OFPMatchOther", (4, 6)), ("OFPMask", (4, 8)), ("OFPPrerequisite", (4, 9)), ("OFPOrder", (2, 11)),
    ("OFPTwoOutputs", (2, 7)), ("OFPQueue", (2, 8)), ("OFPSetVlan", (2, 13)), ("OFPGoto", (3, 2)),
    ("OFPBuffer", (1, 8)), ("OFPPushVlan", (2, 0))])
def test_the_unsupported_is_named(version: int, name: str, wanted: tuple[int, int]) -> None:
    peer, datapath, _ = connect(version)
    parser, ofp = peer.ofproto_parser, peer.ofproto
    mac = parser.OFPActionSetField(eth_dst="02:00:00:00:00:09")
    messages = {
        "OFPMeterMod": lambda: parser.OFPMeterMod(peer, meter_id=1),
        "OFPExperimenter": lambda: parser.OFPExperimenter(peer, 1, 2, b""),
        "OFPMeterStatsRequest": lambda: parser.OFPMeterStatsRequest(peer, 0, ofp.OFPM_ALL),
        "OFPTableMod": lambda: (parser.OFPTableMod(peer, 0, 4) if version == V13
                                else parser.OFPTableMod(peer, 0, 4, [])),
        "OFPPortMod": lambda: parser.OFPPortMod(peer, port_no=9, hw_addr="02:00:00:00:01:01",
                                                config=1, mask=1),
        "OFPSetConfig": lambda: parser.OFPSetConfig(peer, flags=1, miss_send_len=0),
        "OFPMatchOther": lambda: peer.flow(1, {"eth_dst": "02:00:00:00:00:01"}),
        "OFPMask": lambda: peer.flow(1, {"eth_type": 0x800, "ipv4_dst": ("10.0.0.1", "255.0.0.255")}),
        "OFPPrerequisite": lambda: peer.flow(1, {"eth_type": 0x800, "tcp_dst": 80}),
        "OFPOrder": lambda: peer.flow(1, {}, [peer.out(1), mac]),
        "OFPTwoOutputs": lambda: peer.flow(1, {}, [peer.out(1), peer.out(2)]),
        "OFPQueue": lambda: peer.flow(1, {}, [parser.OFPActionSetQueue(8)]),
        "OFPSetVlan": lambda: peer.flow(1, {}, [parser.OFPActionSetField(vlan_vid=0x1001)]),
        "OFPPushVlan": lambda: peer.flow(1, {}, [parser.OFPActionPushVlan(0x8100)]),
        "OFPGoto": lambda: parser.OFPFlowMod(peer, match=parser.OFPMatch(),
                                             instructions=[parser.OFPInstructionGotoTable(1)]),
        "OFPBuffer": lambda: peer.flow(1, {}, [peer.out(1)], buffer_id=5)}
    message = messages[name]()
    assert errors(peer.ask(message)) == [(message.xid, *wanted)]
    assert datapath.tables[1].rules == ()
