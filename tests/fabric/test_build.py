"""Hosts, links and queues as the kernel reports them."""
from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from emulator.errors import BadInput
from emulator.fabric.build import check
from emulator.fabric.spec import FabricSpec
from tests.fabric.graphs import fat_tree, leaf_spine
from tests.fabric.scenes import TAMPERINGS, small


def test_a_long_name_is_refused_before_anything_is_made():
    graph = leaf_spine()
    link = replace(graph.links[-1], b="a-spine-with-a-long-name")
    switch = replace(graph.switches[-1], name="a-spine-with-a-long-name")
    graph = replace(graph, links=(link,), switches=(*graph.switches, switch))
    with pytest.raises(BadInput, match="more than 15 characters"):
        check(replace(small(), graph=graph))


def test_a_foreign_address_and_a_second_link_are_refused():
    graph = leaf_spine()
    foreign = replace(graph.hosts[0], ip="192.168.0.1")
    with pytest.raises(BadInput, match="192.168.0.1"):
        check(replace(small(), graph=replace(graph, hosts=(foreign, *graph.hosts[1:]))))
    second = replace(graph.links[0], index=99, a_port=1, b="s1", b_port=9)
    with pytest.raises(BadInput, match="h1 has 2 links"):
        check(replace(small(), graph=replace(graph, links=(*graph.links, second))))


def test_fat_tree_names_fit():
    check(FabricSpec(fat_tree(16), 10e6, 1500, 60_000, "ovs", "netdev", 1))


@pytest.mark.root
def test_host_and_port_as_planned(play):
    out = play("built")
    address, = [entry for entry in json.loads(out["address"]) if entry["ifname"] == "h1-eth0"]
    assert [(a["local"], a["prefixlen"]) for a in address["addr_info"]] == [("10.0.0.2", 8)]
    assert address["address"] == "02:00:0a:00:00:02" and address["mtu"] == 1500
    assert out["route"].split()[:3] == ["10.0.0.0/8", "via", "10.255.255.254"] and "onlink" in out["route"]
    assert out["neighbour"].split()[:5] == ["10.255.255.254", "dev", "h1-eth0", "lladdr", "02:00:00:00:00:01"]
    for queue in (out["host_queue"], out["switch_queue"]):
        assert "rate 10Mbit ceil 10Mbit" in queue and "burst 3027b" in queue and "quantum 1514" in queue
    assert "bfifo 10: parent 1:1 limit 60000b" in out["leaf"]
    for feature in ("tx-checksumming", "scatter-gather", "generic-segmentation-offload",
                    "generic-receive-offload"):
        assert out["offloads"].count(f"\n{feature}: off") == 2, out["offloads"]
    assert out["settings"] == ["0", "1", "2"]
    assert out["ipv6"] == ""
    assert len(set(out["indexes"])) == len(out["indexes"]) == 12
    assert out["links"] == 1 + 8 and out["hosts"] == ["h1", "h2", "h3", "h4"]


@pytest.mark.root
def test_every_tampering_is_noticed(play):
    found = play("tampered")
    for command, words in TAMPERINGS.items():
        assert any(words in fault for fault in found[command]), (command, found[command])


@pytest.mark.root
def test_netlink_and_tc_leave_the_same(play):
    for rate, texts in play("same_as_tc").items():
        bursts = [[int(number) for number in re.findall(r"burst (\d+)b", text)] for text in texts]
        tick_bytes = float(rate) / 8 * 1e-6  # tc cuts the time of a burst to whole microseconds
        for one, other in zip(*bursts, strict=True):
            assert abs(one - other) <= 1 + tick_bytes, f"at {rate} b/s"
        by_tc, ours = (re.sub(r"burst \d+b", "burst", text) for text in texts)
        assert ours == by_tc, f"at {rate} b/s"


@pytest.mark.root
def test_a_whole_fat_tree_is_there(play):
    out = play("large", k=8)
    assert out == {"hosts": 128, "ports": 768, "links": 1 + 768 - 128}


@pytest.mark.root
def test_namespaces_have_names_and_are_left_again(play):
    out = play("namespaces")
    assert out["names"] == ["one"] and out["twice"] == "/run/netns/one"
    assert out["there"] == out["exec"] != out["home"] == out["back"]
    assert out["links"] == ["lo"]
