"""A whole connection in both versions: os-ken's messages in, os-ken's reading of the answers out."""
from __future__ import annotations

import pytest
from tests.agent.osken import BOTH, FRAME, Peer, connect, errors, group_add, selection_words

from emulator.asic.openflow.constants import V13, V15
from emulator.asic.pipeline import Count, PipelineBucket, PipelineGroup


@BOTH
def test_the_features_are_told(version: int) -> None:
    peer, _, _ = connect(version)
    features, config, echo = peer.ask(
        peer.ofproto_parser.OFPFeaturesRequest(peer), peer.ofproto_parser.OFPGetConfigRequest(peer),
        peer.ofproto_parser.OFPEchoRequest(peer, data=b"abc"))
    assert (features.datapath_id, features.n_tables, features.n_buffers) == (1, 1, 0)
    assert (config.flags, config.miss_send_len) == (0, 128)
    assert echo.data == b"abc"


@BOTH
def test_a_flow_reaches_the_pipeline_and_comes_back(version: int) -> None:
    peer, datapath, _ = connect(version)
    parser, ofp = peer.ofproto_parser, peer.ofproto
    match = {"eth_type": 0x800, "ipv4_dst": ("10.0.1.0", "255.255.255.0"), "ip_proto": 6, "tcp_dst": 80,
             "ip_dscp": 0, "in_port": 1}
    actions = [parser.OFPActionSetQueue(3), parser.OFPActionSetField(eth_dst="02:00:00:00:00:09"),
               peer.out(2)]
    answers = peer.ask(peer.flow(7, match, actions, cookie=5, idle_timeout=9, hard_timeout=99, flags=1),
                       parser.OFPBarrierRequest(peer))
    assert [type(answer).__name__ for answer in answers] == ["OFPBarrierReply"]
    rule, = datapath.tables[1].rules
    assert rule.priority == 7
    assert (rule.match.in_port, rule.match.eth_type, rule.match.ipv4_dst, rule.match.ip_proto,
            rule.match.l4_dst, rule.match.dscp) == (1, 0x800, (0x0A000100, 24), 6, 80, 0)
    assert (rule.actions.output, rule.actions.queue) == (2, 3)
    assert datapath.inject(1, 1, FRAME) == [(2, bytes.fromhex("020000000009") + FRAME[6:])]
    request = parser.OFPFlowStatsRequest if version == V13 else parser.OFPFlowDescStatsRequest
    reply, = peer.ask(request(peer, 0, 0xFF, ofp.OFPP_ANY, ofp.OFPG_ANY, 0, 0, parser.OFPMatch()))
    entry, = reply.body
    assert dict(entry.match.items()) == match
    assert (entry.cookie, entry.priority, entry.flags) == (5, 7, 1)
    assert (entry.idle_timeout, entry.hard_timeout) == (9, 99)
    assert [action.type for action in entry.instructions[0].actions] == [
        ofp.OFPAT_SET_QUEUE, ofp.OFPAT_SET_FIELD, ofp.OFPAT_OUTPUT]
    packets, size = ((entry.packet_count, entry.byte_count) if version == V13
                     else (entry.stats["packet_count"], entry.stats["byte_count"]))
    assert (packets, size) == (1, len(FRAME))
    aggregate, = peer.ask(parser.OFPAggregateStatsRequest(peer, 0, 0xFF, ofp.OFPP_ANY, ofp.OFPG_ANY, 0, 0,
                                                          parser.OFPMatch()))
    body = aggregate.body
    assert ((body.flow_count, body.packet_count) if version == V13
            else (body.stats["flow_count"], body.stats["packet_count"])) == (1, 1)


def test_flow_stats_of_15_are_the_short_form() -> None:
    peer, _, _ = connect(V15)
    peer.send(peer.flow(7, {}, [peer.out(2)]))
    reply, = peer.ask(peer.ofproto_parser.OFPFlowStatsRequest(
        peer, 0, 0, peer.ofproto.OFPP_ANY, peer.ofproto.OFPG_ANY, 0, 0, peer.ofproto_parser.OFPMatch()))
    assert [(entry.priority, entry.stats["packet_count"]) for entry in reply.body] == [(7, 0)]


@BOTH
def test_a_group_reaches_the_pipeline_and_comes_back(version: int) -> None:
    peer, datapath, _ = connect(version)
    parser, ofp = peer.ofproto_parser, peer.ofproto
    method = None if version == V13 else "hash"
    to_group = peer.flow(1, {}, [parser.OFPActionGroup(5)])
    assert peer.ask(group_add(peer, 5, [1, 2], method, 77), to_group) == []
    group, = datapath.tables[1].groups
    assert group == PipelineGroup(5, (PipelineBucket(1, 1), PipelineBucket(2, 2)), "hash",
                                  seed=1 if version == V13 else 77)
    datapath.inject(1, 3, FRAME)
    stats, = peer.ask(parser.OFPGroupStatsRequest(peer, 0, 5))
    entry, = stats.body
    assert (entry.ref_count, entry.packet_count, len(entry.bucket_stats)) == (1, 1, 2)
    features, = peer.ask(parser.OFPGroupFeaturesStatsRequest(peer, 0))
    assert features.body.types == 0b1110


@BOTH
def test_a_group_is_described(version: int) -> None:
    """With one bucket: os-ken 4.2 reads properties of 1.5 buckets past their end (ovs-ofctl reads all)."""
    peer, _, _ = connect(version)
    parser, ofp = peer.ofproto_parser, peer.ofproto
    peer.send(group_add(peer, 5, [2], None if version == V13 else "hash", 77))
    reply, = peer.ask(parser.OFPGroupDescStatsRequest(peer, 0) if version == V13
                      else parser.OFPGroupDescStatsRequest(peer, 0, ofp.OFPG_ALL))
    entry, = reply.body
    assert (entry.group_id, entry.type) == (5, ofp.OFPGT_SELECT)
    assert [bucket.actions[0].port for bucket in entry.buckets] == [2]
    if version == V15:
        assert entry.properties[0].data == selection_words("hash", 77)


@pytest.mark.parametrize(("method", "param", "wanted"), [
    ("hash", 2**60 + 1, PipelineGroup(1, (), "hash", 2**60 + 1)),
    ("dp_hash", 3, PipelineGroup(1, (), "dp_hash", 3)),
    ("flowlet", 500 << 32 | 7, PipelineGroup(1, (), "flowlet", 7, flowlet_gap_s=500e-6)),
    ("spray", 1 << 32 | 7, PipelineGroup(1, (), "spray", 7, random_spray=True)),
    ("least-queue", 7, PipelineGroup(1, (), "least-queue", 7))])
def test_every_mode_travels_in_the_property(method: str, param: int, wanted: PipelineGroup) -> None:
    peer, datapath, _ = connect(V15)
    assert peer.ask(group_add(peer, 1, [], method, param)) == []
    assert datapath.tables[1].groups == (wanted,)


@BOTH
def test_ports_and_queues_are_told(version: int) -> None:
    peer, _, _ = connect(version, ports=3)
    parser, ofp = peer.ofproto_parser, peer.ofproto
    desc, stats, queues = peer.ask(
        parser.OFPPortDescStatsRequest(peer, 0), parser.OFPPortStatsRequest(peer, 0, 2),
        parser.OFPQueueStatsRequest(peer, 0, 3, ofp.OFPQ_ALL))
    assert [(port.port_no, port.name, port.hw_addr, port.state) for port in desc.body] == [
        (n, f"s1-eth{n}".encode(), f"02:00:00:00:01:0{n}", ofp.OFPPS_LIVE) for n in (1, 2, 3)]
    speeds = [port.curr_speed if version == V13 else port.properties[0].curr_speed for port in desc.body]
    assert speeds == [10**6] * 3
    assert [port.port_no for port in stats.body] == [2]
    assert [(queue.port_no, queue.queue_id, queue.tx_packets, queue.tx_errors) for queue in queues.body] == [
        (3, n, 30 + n, n) for n in range(8)]


@BOTH
def test_a_port_that_goes_down_is_told(version: int) -> None:
    peer, datapath, _ = connect(version)
    datapath.set_port(1, 3, False)
    status, = peer.read()
    assert (status.reason, status.desc.port_no, status.desc.state) == (
        peer.ofproto.OFPPR_MODIFY, 3, peer.ofproto.OFPPS_LINK_DOWN)


@BOTH
def test_packets_go_up_and_down(version: int) -> None:
    peer, datapath, _ = connect(version)
    parser, ofp = peer.ofproto_parser, peer.ofproto
    peer.send(peer.flow(0, {}, [peer.out(ofp.OFPP_CONTROLLER)], cookie=1),
              peer.flow(5, {"in_port": 2}, [peer.out(ofp.OFPP_CONTROLLER)], cookie=2))
    for port, reason, cookie in ((1, 0, 1), (2, 1, 2)):
        datapath.inject(1, port, FRAME)
        told, = peer.read()
        assert (told.match["in_port"], told.reason, told.cookie, told.data) == (port, reason, cookie, FRAME)
        assert (told.buffer_id, told.total_len) == (ofp.OFP_NO_BUFFER, len(FRAME))

    def packet_out(in_port: int, *actions):
        if version == V13:
            return parser.OFPPacketOut(peer, ofp.OFP_NO_BUFFER, in_port, list(actions), FRAME)
        match = parser.OFPMatch(in_port=in_port)
        return parser.OFPPacketOut(peer, ofp.OFP_NO_BUFFER, match, list(actions), FRAME)

    assert peer.ask(packet_out(ofp.OFPP_CONTROLLER, peer.out(1),
                               parser.OFPActionSetField(eth_dst="02:00:00:00:00:09"), peer.out(2)),
                    packet_out(3, peer.out(ofp.OFPP_FLOOD))) == []
    changed = bytes.fromhex("020000000009") + FRAME[6:]
    assert datapath.sent == [(1, 1, FRAME), (1, 2, changed), (1, 1, FRAME), (1, 2, FRAME), (1, 4, FRAME)]
    answers = peer.ask(packet_out(9, peer.out(1)), packet_out(1, peer.out(77)))
    assert [error[1:] for error in errors(answers)] == [(1, 11), (2, 4)]


@BOTH
def test_a_removed_flow_is_told_with_its_counts(version: int) -> None:
    peer, datapath, _ = connect(version)
    ofp = peer.ofproto
    peer.send(peer.flow(5, {}, [peer.out(1)], cookie=3, flags=ofp.OFPFF_SEND_FLOW_REM), peer.flow(6, {}, []))
    datapath.counts[1][1] = Count(4, 400)
    told, = peer.ask(peer.flow(5, command=ofp.OFPFC_DELETE, out_port=ofp.OFPP_ANY, out_group=ofp.OFPG_ANY))
    assert (told.cookie, told.priority, told.reason) == (3, 5, ofp.OFPRR_DELETE)
    assert (told.packet_count if version == V13 else told.stats["packet_count"]) == 4


@BOTH
def test_an_idle_flow_ends(version: int) -> None:
    peer, datapath, switch = connect(version)
    peer.send(peer.flow(5, {}, [peer.out(1)], idle_timeout=2, flags=1))
    for now_s, used in ((1001.0, True), (1002.5, False), (1003.5, False)):
        switch.clock.now_s = now_s
        if used:
            datapath.inject(1, 1, FRAME)
        switch.tick()
    told, = peer.read()
    assert told.reason == peer.ofproto.OFPRR_IDLE_TIMEOUT
    assert datapath.tables[1].rules == ()


@BOTH
def test_a_batch_is_one_replacement_and_in_force_before_its_barrier(version: int) -> None:
    peer, datapath, _ = connect(version)
    flows = [peer.flow(n + 1, {}, [peer.out(1)]) for n in range(50)]
    answers = peer.ask(*flows, peer.ofproto_parser.OFPBarrierRequest(peer))
    assert len(answers) == 1 and datapath.replacements == 1
    assert len(datapath.tables[1].rules) == 50


def test_write_actions_run_as_a_set() -> None:
    peer, datapath, _ = connect(V13)
    parser, ofp = peer.ofproto_parser, peer.ofproto
    written = [peer.out(1), parser.OFPActionSetField(eth_dst="02:00:00:00:00:09")]
    peer.send(parser.OFPFlowMod(peer, match=parser.OFPMatch(), instructions=[
        parser.OFPInstructionActions(ofp.OFPIT_WRITE_ACTIONS, written)]))
    assert datapath.inject(1, 2, FRAME) == [(1, bytes.fromhex("020000000009") + FRAME[6:])]


def test_a_client_hears_no_events_until_it_asks() -> None:
    _, datapath, switch = connect(V13)
    client = Peer(V13, switch, service=True)
    datapath.set_port(1, 2, False)
    assert client.read() == []
    client.send(client.ofproto_parser.OFPSetConfig(client, 0, 128))
    datapath.set_port(1, 2, True)
    assert len(client.read()) == 1


def test_a_long_answer_comes_in_parts() -> None:
    peer, _, _ = connect(V13)
    parser, ofp = peer.ofproto_parser, peer.ofproto
    peer.send(*(peer.flow(n + 1, {}, [peer.out(1)]) for n in range(1200)))
    replies = peer.ask(parser.OFPFlowStatsRequest(peer, 0, 0xFF, ofp.OFPP_ANY, ofp.OFPG_ANY, 0, 0,
                                                  parser.OFPMatch()))
    assert [reply.flags for reply in replies] == [1] * (len(replies) - 1) + [0] and len(replies) > 1
    assert sorted(entry.priority for reply in replies for entry in reply.body) == list(range(1, 1201))
