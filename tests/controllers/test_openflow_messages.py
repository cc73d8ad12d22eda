"""Tables on the wire, read back by others' decoders, and the sentences for what a switch answers."""
from __future__ import annotations

import shutil
import struct
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st
from os_ken.ofproto import ofproto_parser
from os_ken.ofproto.ofproto_protocol import ProtocolDesc

from controllers.openflow import (OXM_FIELDS, SelectionProperty, count_requests, explain, install_orders,
                                  versions_offered)
from controllers.routing import plan_tables
from controllers.tables import Selection
from emulator.errors import MachineLacks
from topologies.catalog import resolve_topology

V13, V15 = 4, 6


def wire(message) -> bytes:
    message.xid = 7
    message.serialize()
    return bytes(message.buf)


def leaf_orders(version: int, routing: str):
    graph = resolve_topology("leaf-spine:leaves=2,spines=2,hosts=1")
    tables = plan_tables(graph, routing, 1)[graph.switch["l1"].dpid]
    return tables, install_orders(ProtocolDesc(version), "l1", tables)


@given(st.sampled_from(["hash", "dp_hash", "least-queue", "a_name_of_15_ch"]), st.integers(0, 2**64 - 1),
       st.lists(st.sampled_from(sorted(OXM_FIELDS)), unique=True))
def test_the_selection_property_is_laid_out_as_open_vswitch_reads_it(method, param, fields):
    """lib/ofp-group.c: the length counts no padding, the fields are OXM whose value is the mask."""
    data = SelectionProperty(Selection(method, param, tuple(fields))).serialize()
    kind, length, experimenter, exp_type, name, value = struct.unpack_from("!HHII4x16sQ", data)
    assert (kind, experimenter, exp_type) == (0xFFFF, 0x154D, 1)
    assert (name.rstrip(b"\0").decode(), value) == (method, param)
    assert len(data) % 8 == 0 and length <= len(data) < length + 8
    numbers, offset = [], 40
    while offset < length:
        oxm_class, tag, size = struct.unpack_from("!HBB", data, offset)
        assert oxm_class == 0x8000 and data[offset + 4:offset + 4 + size] == b"\xff" * size
        numbers.append(tag >> 1)
        offset += 4 + size
    assert offset == length
    assert numbers == [number for field in fields for number, _ in OXM_FIELDS[field]]


@pytest.mark.parametrize("version", [V13, V15])
def test_rules_come_back_from_os_kens_own_decoder(version):
    tables, orders = leaf_orders(version, "single")
    protocol = ProtocolDesc(version)
    rules = []
    for order in orders[2:-1]:
        data = wire(order.message)
        message = ofproto_parser.msg(protocol, version, data[1], len(data), 7, data)
        actions = [action for instruction in message.instructions for action in instruction.actions]
        rules.append((message.priority, dict(message.match.items()).get("ipv4_dst"),
                      [getattr(action, "port", None) or action.value for action in actions]))
    assert rules == [(100, ("10.0.1.2", "255.255.255.255"), ["02:00:0a:00:01:02", 1]),
                     (100, ("10.0.2.2", "255.255.255.255"), [2]), (0, None, [])]
    assert len(rules) == len(tables.flows)


@pytest.mark.skipif(not shutil.which("ovs-ofctl"),
                    reason="needs ovs-ofctl: sudo apt-get install openvswitch-switch")
def test_open_vswitch_understands_every_message(tmp_path):
    tables, orders = leaf_orders(V15, "ecmp")
    messages = [order.message for order in orders] + count_requests(ProtocolDesc(V15))
    (tmp_path / "messages").write_bytes(b"".join(wire(message) for message in messages))
    text = subprocess.run(["ovs-ofctl", "ofp-parse", tmp_path / "messages"], capture_output=True, text=True,
                          timeout=20, check=True).stdout
    assert "error" not in text and text.count("xid=0x7") == len(messages)
    seed = tables.groups[0].selection.param
    assert (f"selection_method=hash,selection_method_param={seed},"
            f"fields(ip_src,ip_dst,nw_proto,tcp_src,tcp_dst,udp_src,udp_dst)") in text
    assert "watch_port:2,actions=output:2" in text and "watch_port:3,actions=output:3" in text
    assert "ip,nw_dst=10.0.1.2 actions=set_field:02:00:0a:00:01:02->eth_dst,output:1" in text
    assert text.index("DEL table:255") < text.index("DEL group_id") < text.index("ADD group_id") \
        < text.index("ADD priority") < text.index("BARRIER")


def test_groups_without_a_seed_are_refused_with_the_way_out():
    with pytest.raises(MachineLacks, match="l1 speaks OpenFlow 1.3.*--routing single"):
        leaf_orders(V13, "ecmp")


def error(type_: int, code: int):
    protocol = ProtocolDesc(V15)
    return protocol.ofproto_parser.OFPErrorMsg(protocol, type_, code, b"")


def test_errors_name_the_switch_the_order_and_the_code():
    ofp = ProtocolDesc(V15).ofproto
    refused = explain(error(ofp.OFPET_BAD_PROPERTY, ofp.OFPBPC_BAD_VALUE), "l1",
                      'group 1 (selection method "spray")')
    assert refused.lacks_method
    assert refused.sentence.startswith(
        'switch l1 refuses group 1 (selection method "spray"): OFPBPC_BAD_VALUE')
    assert "--routing" in refused.sentence
    other = explain(error(ofp.OFPET_BAD_ACTION, ofp.OFPBAC_BAD_OUT_GROUP), "l1", "the rule for 10.0.0.0/8")
    assert not other.lacks_method
    assert other.sentence == "switch l1 refuses the rule for 10.0.0.0/8: OFPBAC_BAD_OUT_GROUP."


def test_versions_of_a_hello_with_and_without_bitmap():
    parser = ProtocolDesc(V15).ofproto_parser
    hello = parser.OFPHello(ProtocolDesc(V15))
    hello.version = V15
    assert versions_offered(hello) == {1, 2, 3, 4, 5, 6}
    hello.elements = [parser.OFPHelloElemVersionBitmap([4, 5])]
    assert versions_offered(hello) == {4, 5}
