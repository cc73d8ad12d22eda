"""Open vSwitch in the sandbox: transaction, tables, gate, captures, Mininet's API."""
from __future__ import annotations

import shutil
from dataclasses import replace

import pytest

from emulator import machine
from emulator.errors import BadInput, EmulatorError
from emulator.fabric.build import Fabric, shapes
from emulator.fabric.veths import ends
from emulator.fabric.ovs import parse_lookups, parse_output
from emulator.fabric.ovs_database import operations
from emulator.fabric.pcap import check_ports
from emulator.fabric.spec import FabricSpec, Port
from tests.fabric.graphs import fat_tree

needs_ovs = pytest.mark.skipif(machine._which("ovs-vswitchd") is None, reason="needs Open vSwitch")


def imagined(spec: FabricSpec) -> Fabric:
    """The fabric that `build` would return, without a kernel."""
    shape_of = shapes(spec)
    ports = tuple(Port(name, node, number, ifindex, None if node in spec.graph.switch else node,
                       shape_of[link.index].rate_bps, shape_of[link.index].limit_bytes, link.index, peer)
                  for name, node, number, ifindex, link, peer in ends(spec.graph.links))
    return Fabric(spec, ports, (), tuple(switch.name for switch in spec.graph.switches), "netdev")


SPEC = FabricSpec(fat_tree(4), 10e6, 1500, 60_000, "ovs", "netdev", 1)


def test_the_transaction_has_every_port_with_its_number_and_no_shaper_of_its_own():
    wanted = operations(imagined(SPEC), "tcp:127.0.0.1:6653")
    rows = {table: [op["row"] for op in wanted if op["table"] == table]
            for table in ("Interface", "Port", "Bridge", "QoS")}
    assert len(rows["Interface"]) == len(rows["Port"]) == 80 and len(rows["Bridge"]) == 20
    assert rows["QoS"] == [{"type": "linux-noop"}]
    assert all(row["qos"] == ["named-uuid", "noop0"] for row in rows["Port"])
    numbers = {row["name"]: row["ofport_request"] for row in rows["Interface"]}
    assert numbers["e0_0-eth1"] == 1 and numbers["c3-eth4"] == 4
    ids = {dict(row["other_config"][1])["datapath-id"] for row in rows["Bridge"]}
    assert len(ids) == 20
    assert all(row["fail_mode"] == "secure" for row in rows["Bridge"])


def test_two_switches_with_one_id_are_refused():
    graph = SPEC.graph
    twin = replace(graph.switches[1], dpid=graph.switches[0].dpid)
    spec = replace(SPEC, graph=replace(graph, switches=(graph.switches[0], twin, *graph.switches[2:])))
    with pytest.raises(BadInput, match="c0 and c1 have the same datapath id"):
        operations(imagined(spec), "tcp:127.0.0.1:6653")


@pytest.mark.parametrize("actions, port", [
    ("drop", None), ("l1-eth3", "l1-eth3"), ("set(eth(dst=02:00:0a:00:00:02)),l1-eth1", "l1-eth1"),
    ('"l1-eth2"', "l1-eth2"), ("set(eth(src=0:0,dst=0:1),ipv4(dst=10.0.0.1)),e0_0-eth1", "e0_0-eth1")])
def test_the_output_of_a_trace(actions, port):
    assert parse_output(f"Flow: x\nMegaflow: y\nDatapath actions: {actions}\n") == port


def test_a_trace_without_an_end_is_an_error():
    with pytest.raises(EmulatorError, match="no datapath actions"):
        parse_output("Bad openflow flow syntax")


def test_lookups_are_read():
    found = parse_lookups("netdev@ovs-netdev:\n  lookups: hit:5 missed:2 lost:1\n",
                          "datapath_drop_upcall_error  0.0/sec  0.000/sec  0.0000/sec   total: 7\n"
                          "netdev_sent   0.0/sec   0.2/sec   0.1/sec   total: 9\n")
    assert (found.hit, found.missed, found.lost, found.drops) == (5, 2, 1, {"datapath_drop_upcall_error": 7})


def test_an_unknown_port_gets_the_nearest_name():
    with pytest.raises(BadInput, match='"e0_0-eth5".*"e0_0-eth'):
        check_ports(imagined(SPEC).port, ["h1-eth0", "e0_0-eth5"])


@pytest.mark.root
@needs_ovs
def test_a_fabric_is_proven_and_still_shaped(play):
    out = play("proven", "scenes_ovs")
    assert out["proof"] == {"udp": 4, "tcp": 4, "silent": []}
    assert out["path"] == ["h1-eth0", "l1-eth3", "s1-eth2", "l2-eth1"]
    assert out["dropped"] is None
    assert out["lookups"]["hit"] > 0 and out["lookups"]["lost"] == 0
    assert out["faults"] == [] and out["qos"] == ["linux-noop"]
    assert out["ids"] == ["0000000000000100", "0000000000000101", "0000000000000200"]
    assert out["room"][0] >= out["needed"]


@pytest.mark.root
@needs_ovs
def test_what_is_broken_is_named(play):
    out = play("broken", "scenes_ovs")
    assert "h1 to h3" in out["no_table"] and "Look first at switch s1" in out["no_table"]
    assert "Switch s1 drops packets from h1 to h3" in out["trace"]
    assert "l1-eth3 is down" in out["no_link"]
    assert out["again"]["tcp"] == out["host_again"]["tcp"] == 1
    assert "ovs-vswitchd was killed by signal 9" in out["dead"]


@pytest.mark.root
@needs_ovs
def test_a_failed_start_says_why_and_leaves_no_daemon(play):
    out = play("refused", "scenes_ovs")
    assert "s1-eth1" in out["said"] and "ovs-vswitchd said at last" in out["said"]
    assert out["left"] == 0


@pytest.mark.root
@needs_ovs
def test_one_flow_gets_the_rate_of_the_wire(play):
    out = play("goodput", "scenes_ovs")
    assert out["lost"] == 0
    # 1448 of 1514 bytes are payload; above it nothing may be, below it a busy machine may be
    assert 0.8 < out["got_bps"] / (out["rate_bps"] * 1448 / 1514) < 1.01


@pytest.mark.root
@needs_ovs
@pytest.mark.skipif(shutil.which("tcpdump") is None, reason="needs tcpdump")
def test_captures_are_files_that_tcpdump_reads(play):
    out = play("captured", "scenes_ovs")
    assert 'no port "h1-eth1"' in out["unknown"]
    for result, size in zip(out["results"], out["sizes"], strict=True):
        read = out["read"][result["port"]].splitlines()
        assert len(read) == result["packets"] == 13 and result["full"] and size <= 20_100
        assert any("10.0.0.2.20000 > 10.0.1.2.4991: UDP" in line for line in read)


COMMANDS = """nodes
links
net
h2 echo two of $(hostname -I | wc -w)
l1 echo three
bogus
switch s1 stop
link h1 h2 down
link h1 l1 down
h1 cat /sys/class/net/lo/operstate
link h1 l1 up
dpctl dump-flows
exit
nodes"""


@pytest.mark.root
@needs_ovs
@pytest.mark.skipif(machine._which("ping") is None, reason="needs ping (package iputils-ping)")
def test_pingall_on_the_command_line(play):
    printed = play("mininet", "scenes_ovs", commands="h1 ping -c1 h4\npingall\n")["printed"]
    assert "64 bytes from 10.0.1.3" in printed and "0% dropped (12/12 received)" in printed


@pytest.mark.root
@needs_ovs
def test_mininets_api_and_command_line(play):
    out = play("mininet", "scenes_ovs", commands=COMMANDS)
    assert out["address"] == "10.0.0.2" and "10.0.0.2/8" in out["cmd"]
    assert out["opened_before"] == [] and out["opened"] == ["h1"]
    assert "s1-eth1" in out["switch"] and out["there"] == ["10.0.1.2"]
    assert "fixed once it stands" in out["refused"]
    printed = out["printed"]
    assert printed.count("available nodes are") == 1, "'exit' must end the command line"
    for words in ("h1 h2 h3 h4 l1 l2 s1", "h1-eth0<->l1-eth1 (OK OK)", "s1 s1-eth1:l1-eth3 s1-eth2:l2-eth3",
                  "two of 1", "three", "Unknown command: bogus", "s1 cannot be stopped by hand",
                  "no link between h1 and h2", "nw_dst=10.0.1.3"):
        assert words in printed, (words, printed)
    assert out["left"] == 0, "a shell outlived its network"
