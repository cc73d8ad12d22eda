"""The controller against real Open vSwitch, each scenario in namespaces that die with it."""
from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from controllers.routing import plan_tables
from topologies.catalog import resolve_topology

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: runs Open vSwitch in its own namespaces"),
    pytest.mark.skipif(not shutil.which("ovs-vswitchd"),
                       reason="needs Open vSwitch: sudo apt-get install openvswitch-switch")]

GRAPH = resolve_topology("leaf-spine:leaves=3,spines=2,hosts=1")
REFUSED, LACKS = "refused", 3


def scenario(*words: str) -> dict:
    done = subprocess.run(
        ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", sys.executable,
         "-B", Path(__file__).with_name("ovs_scenario.py"), *words],
        capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def ecmp() -> dict:
    return scenario("ecmp")


def test_the_later_version_is_spoken_and_nothing_is_refused(ecmp):
    assert ecmp["versions"] == ["1.5"]
    assert ecmp["errors"] == [] and ecmp["packet_ins"] == 0


def test_groups_hash_with_the_planned_seed_of_each_switch(ecmp):
    params = {}
    for leaf, text in ecmp["groups"].items():
        assert "selection_method=hash," in text
        assert "fields(ip_src,ip_dst,nw_proto,tcp_src,tcp_dst,udp_src,udp_dst)" in text
        params[leaf] = int(re.search(r"selection_method_param=(\d+)", text)[1])
    planned = plan_tables(GRAPH, "ecmp", 1)
    assert params == {leaf: planned[GRAPH.switch[leaf].dpid].groups[0].selection.param for leaf in params}
    assert len(set(params.values())) == 3


def test_rules_rewrite_at_the_last_hop_and_drop_the_rest(ecmp):
    flows = ecmp["flows"]
    assert "nw_dst=10.0.1.2 actions=set_field:02:00:0a:00:01:02->eth_dst,output:1" in flows
    assert "nw_dst=10.0.2.0/23 actions=group:1" in flows
    assert "priority=0 actions=drop" in flows


def test_flows_spread_evenly_and_not_alike_on_two_switches(ecmp):
    """60 flows over 2 uplinks: 30 ± 4 standard deviations; polarised switches would agree on all 60."""
    assert 15 <= sum(ecmp["l1"]) <= 45 and 15 <= sum(ecmp["l2"]) <= 45
    agreed = sum(a == b for a, b in zip(ecmp["l1"], ecmp["l2"], strict=True))
    assert 15 <= agreed <= 45, f"l1 and l2 agree on {agreed} of 60 flows"


def test_a_dead_uplink_is_reported_and_every_switch_goes_around_it(ecmp):
    """l2 has both uplinks, but the way to l1 over s1 ends there; l3's hosts are reached by either."""
    assert ["l1", 2, False] in ecmp["events"] and ["s1", 1, False] in ecmp["events"]
    assert ecmp["repair"]["avoided"] == ["l1-s1"]
    assert "nw_dst=10.0.2.0/23 actions=output:3" in ecmp["without_s1"]["l1"]
    assert "nw_dst=10.0.1.0/24 actions=output:3" in ecmp["without_s1"]["l2"].replace("10.0.1.2 ", "10.0.1.0/24 ")
    assert "nw_dst=10.0.3.2 actions=group:" in ecmp["without_s1"]["l2"].replace("10.0.3.0/24 ", "10.0.3.2 ")
    assert set(ecmp["l1_again"]) == {0, 1}


def test_a_controller_that_returns_adopts_what_is_right_and_mends_what_is_not():
    seen = scenario("adopt")
    assert seen["errors"] == []
    assert all(seen["same"].values()), seen["same"]
    assert seen["youngest_s"] > 1.0 and seen["rules"] == 3, "l1's rules were installed again"
    assert "switch l1 holds its tables already" in seen["log"]
    assert "switch l2 holds its tables already" not in seen["log"]


def test_a_switch_that_reconnects_gets_its_tables_again(ecmp):
    assert ecmp["unready"] == ["l1 (disconnected)"]
    assert ecmp["connections"] == 2


def test_a_selection_method_that_the_switch_lacks_is_one_clear_sentence():
    seen = scenario("attempt", "spray", "OpenFlow15")
    assert seen["status"] == LACKS
    assert 'refuses group 1 (selection method "spray"): OFPBPC_BAD_VALUE' in seen[REFUSED]
    assert "another --routing" in seen[REFUSED] and "\n" not in seen[REFUSED]


@pytest.mark.parametrize("routing, protocols, says", [
    ("single", "OpenFlow13", None), ("ecmp", "OpenFlow13", "speaks OpenFlow 1.3 and no later"),
    ("ecmp", "OpenFlow10", "1.3 (4) or 1.5 (6) is needed")])
def test_older_versions_carry_what_they_can(routing, protocols, says):
    seen = scenario("attempt", routing, protocols)
    if says is None:
        assert seen == {"ready": True}
    else:
        assert seen["status"] == LACKS and says in seen[REFUSED]


def test_missing_switches_and_a_taken_port_are_named():
    seen = scenario("nobody")
    assert "l1 (never connected)" in seen["alone"]
    assert "Address already in use" in seen["second"]
    assert {line.split()[3] for line in seen["listening"].splitlines()} == {"127.0.0.1:6653"}


def test_the_controller_dies_with_whoever_started_it():
    assert scenario("orphan") == {"ended": True, "signal": 9, "listening": ""}
