"""Whatever a peer sends, the session answers or ends, and the switch goes on."""
from __future__ import annotations

import struct

import pytest
from tests.agent.fake_datapath import FakeDatapath
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.agent.osken import Peer, selection_words

from emulator.asic.openflow.constants import V13, V15
from emulator.asic.openflow.session import Session
from emulator.asic.openflow.wire import HEADER
from emulator.asic.switch import Switch

# A message of each of these kinds gets an answer when it is in order, so something must come back
# whatever its body is; of the others (FLOW_MOD, HELLO, …) only faulty ones do.
ANSWERED = (2, 4, 5, 7, 18, 20, 22, 24, 26, 28, 29, 30, 33, 34)
SILENT = (0, 1, 3, 9, 13, 14, 15, 16, 17)
HEADERS = st.builds(lambda kind, body, xid: (kind, body, xid), st.integers(0, 40), st.binary(max_size=120),
                    st.integers(0, 2**32 - 1))


def switch() -> Switch:
    return Switch(1, FakeDatapath())


def greeted(version: int) -> Session:
    session = Session(switch(), False, "a test")
    session.receive(struct.pack("!BBHIHHI", version, 0, 16, 1, 1, 8, 1 << version))
    session.out.clear()
    return session


def split(data: bytes) -> list[tuple[int, int, int, bytes]]:
    """(version, type, xid, body) of what a session sent; it must frame properly itself."""
    found = []
    while data:
        version, kind, length, xid = HEADER.unpack_from(data)
        assert 8 <= length <= len(data)
        found.append((version, kind, xid, data[8:length]))
        data = data[length:]
    return found


def still_serves(session: Session) -> bool:
    """The session answers an echo, unless it has said that it ends."""
    if session.closing is not None:
        return True
    session.out.clear()
    session.receive(HEADER.pack(session.version, 2, 8, 77))
    return split(bytes(session.out))[-1][1:3] == (3, 77)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.binary(max_size=200), max_size=6))
def test_noise_before_a_hello(pieces: list[bytes]) -> None:
    session = Session(switch(), False, "a test")
    for piece in pieces:
        session.receive(piece)
    split(bytes(session.out))


@settings(max_examples=200, deadline=None)
@given(st.sampled_from((V13, V15)), st.binary(min_size=8, max_size=300))
def test_noise_after_it(version: int, noise: bytes) -> None:
    session = greeted(version)
    session.receive(bytes((version,)) + noise[1:])
    split(bytes(session.out))


@settings(max_examples=200, deadline=None)
@given(st.sampled_from((V13, V15)), st.lists(HEADERS, min_size=1, max_size=4))
def test_framed_messages_with_any_body_are_answered(version: int, messages) -> None:
    session = greeted(version)
    for kind, body, xid in messages:
        session.out.clear()
        session.receive(HEADER.pack(version, kind, 8 + len(body), xid) + body)
        answers = split(bytes(session.out))
        assert all(answer[0] == version and answer[2] == xid for answer in answers)
        if kind not in SILENT:
            assert answers, f"no answer to a message of type {kind}"
    assert still_serves(session)


def valid_messages(version: int) -> list[bytes]:
    """One of each thing that the agent carries out, as os-ken writes it."""
    peer = Peer(version, switch())
    parser, ofp = peer.ofproto_parser, peer.ofproto
    match = {"in_port": 1, "eth_type": 0x800, "ipv4_dst": ("10.0.1.0", "255.255.255.0"), "ip_proto": 17,
             "udp_dst": 4791}
    mac = parser.OFPActionSetField(eth_dst="02:00:00:00:00:09")
    everything = (0, 0xFF, ofp.OFPP_ANY, ofp.OFPG_ANY, 0, 0, parser.OFPMatch())
    if version == V13:
        group = parser.OFPGroupMod(peer, 0, 1, 5, [parser.OFPBucket(1, actions=[mac, peer.out(1)]),
                                                   parser.OFPBucket(3, actions=[peer.out(2)])])
        rest = [parser.OFPPacketOut(peer, ofp.OFP_NO_BUFFER, 1, [peer.out(2)], bytes(60)),
                parser.OFPRoleRequest(peer, 2, 1), parser.OFPQueueGetConfigRequest(peer, 1)]
    else:
        weight = parser.OFPGroupBucketPropWeight(type_=0, weight=3, length=8)
        watch = parser.OFPGroupBucketPropWatch(type_=1, watch=2, length=8)
        method = parser.OFPGroupPropExperimenter(type_=0xFFFF, experimenter=0x154D, exp_type=1,
                                                 data=selection_words("hash", 9))
        group = parser.OFPGroupMod(peer, 0, 1, 5, buckets=[
            parser.OFPBucket(0, [mac, peer.out(1)], [weight]),
            parser.OFPBucket(1, [peer.out(2)], [weight, watch])], properties=[method])
        in_port = parser.OFPMatch(in_port=1)
        rest = [parser.OFPPacketOut(peer, ofp.OFP_NO_BUFFER, in_port, [peer.out(2)], bytes(60)),
                parser.OFPRoleRequest(peer, 2, 0, 1), parser.OFPFlowDescStatsRequest(peer, *everything)]
    actions = [parser.OFPActionSetQueue(1), mac, parser.OFPActionGroup(5)]
    messages = [group, peer.flow(9, match, actions, flags=1), parser.OFPFlowStatsRequest(peer, *everything),
                parser.OFPAggregateStatsRequest(peer, *everything),
                parser.OFPPortStatsRequest(peer, 0, 1), parser.OFPQueueStatsRequest(peer, 0, 1, 1),
                parser.OFPGroupStatsRequest(peer, 0, 5), *rest]
    data = []
    for message in messages:
        message.xid = 5
        message.serialize()
        data.append(bytes(message.buf))
    return data


VALID = {version: valid_messages(version) for version in (V13, V15)}


@pytest.mark.parametrize("version", [V13, V15])
def test_the_valid_ones_are_valid(version: int) -> None:
    session = greeted(version)
    session.receive(b"".join(VALID[version]))
    assert all(kind != 1 for _, kind, _, _ in split(bytes(session.out)))
    assert len(session.switch.tables.flows) == len(session.switch.tables.groups) == 1


@settings(max_examples=150, deadline=None)
@given(st.data(), st.sampled_from((V13, V15)))
def test_mutated_messages(data, version: int) -> None:
    session = greeted(version)
    for original in VALID[version]:
        message = bytearray(original)
        for _ in range(data.draw(st.integers(0, 2))):
            place = data.draw(st.integers(8, len(message) - 1))
            message[place] = data.draw(st.integers(0, 255))
        shorter = data.draw(st.integers(8, len(message)))
        end = data.draw(st.sampled_from((len(message), len(message), shorter)))
        del message[end:]
        message[2:4] = struct.pack("!H", len(message))
        session.receive(bytes(message))
    pipeline = session.switch.datapath.tables[1]
    assert pipeline == session.switch.tables.pipeline()
    ports = session.switch.tables.ports
    assert all(rule.actions.output is None or rule.actions.output in ports for rule in pipeline.rules)
    groups = {group.id for group in pipeline.groups}
    assert all(rule.actions.group is None or rule.actions.group in groups for rule in pipeline.rules)
    assert still_serves(session)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from((V13, V15)), st.lists(st.integers(1, 400), max_size=12))
def test_messages_arrive_in_any_pieces(version: int, cuts: list[int]) -> None:
    whole, pieces = greeted(version), greeted(version)
    data = b"".join(VALID[version])
    whole.receive(data)
    for cut in cuts:
        pieces.receive(data[:cut])
        data = data[cut:]
    pieces.receive(data)
    kinds = [[answer[1:3] for answer in split(bytes(session.out))] for session in (whole, pieces)]
    assert kinds[0] == kinds[1]
    assert whole.switch.tables.pipeline() == pieces.switch.tables.pipeline()


@pytest.mark.parametrize("version", [V13, V15])
def test_the_largest_message_is_taken(version: int) -> None:
    session = greeted(version)
    body = bytes(0xFFFF - 8)
    session.receive(HEADER.pack(version, 2, 0xFFFF, 9) + body)
    assert split(bytes(session.out)) == [(version, 3, 9, body)]


@pytest.mark.parametrize(("hello", "agreed"), [
    (struct.pack("!BBHIHHI", 6, 0, 16, 1, 1, 8, 1 << 4), V13),
    (struct.pack("!BBHIHHI", 5, 0, 16, 1, 1, 8, 1 << 4 | 1 << 5 | 1 << 6), V15),
    (struct.pack("!BBHI", 4, 0, 8, 1), V13), (struct.pack("!BBHI", 9, 0, 8, 1), V15),
    (struct.pack("!BBHI", 1, 0, 8, 1), None), (struct.pack("!BBHI", 5, 0, 8, 1), None),
    (struct.pack("!BBHIHHI", 6, 0, 16, 1, 1, 8, 1 << 5), None), (struct.pack("!BBHI", 4, 5, 8, 1), None)])
def test_the_version_is_agreed(hello: bytes, agreed: int | None) -> None:
    session = Session(switch(), False, "a test")
    session.out.clear()
    session.receive(hello)
    assert session.version == agreed
    assert (session.closing is None) == (agreed is not None)
    answers = split(bytes(session.out))
    assert [kind for _, kind, _, _ in answers] == ([] if agreed else [1])
