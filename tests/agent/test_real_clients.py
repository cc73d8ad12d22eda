"""The agent's process against Open vSwitch's own client and a real os-ken app, in a network namespace."""
from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.agent import rig

ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.root, pytest.mark.skipif(
    shutil.which("ovs-ofctl") is None, reason="needs ovs-ofctl (openvswitch-switch)")]
VERSIONS = pytest.mark.parametrize("name", ["OpenFlow13", "OpenFlow15"])


@pytest.fixture(scope="module")
def seen(tmp_path_factory) -> dict:
    folder = tmp_path_factory.mktemp("agent")
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{Path(__file__).parent}"}
    command = ["unshare", "--net", "--fork", "--kill-child", sys.executable, rig.__file__, str(folder)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@VERSIONS
def test_both_switches_find_the_controller_and_obey(seen: dict, name: str) -> None:
    here = seen[name]
    assert here["barriers"] == [1, 2]
    assert [(fact["dpid"], fact["port"], fact["frame"]) for fact in here["packet_in"]] == [(2, 1, rig.FRAME)]
    assert [(fact["dpid"], fact["port"], fact["state"]) for fact in here["port"]] == [(1, 3, 1)]


@VERSIONS
def test_tables_stay_while_the_controller_is_away(seen: dict, name: str) -> None:
    here = seen[name]
    assert "priority=100,ip,nw_dst=10.0.1.0/24 actions=group:1" in here["flows_without_controller"]
    assert "priority=0 actions=CONTROLLER:65509" in here["flows_without_controller"]
    method = "selection_method=hash,selection_method_param=1," if name == "OpenFlow15" else ""
    assert f"group_id=1,type=select,{method}bucket=" in here["groups"]


@VERSIONS
def test_a_new_controller_is_found_and_told_what_is_refused(seen: dict, name: str) -> None:
    bad_port = [(fact["dpid"], fact["type"], fact["code"]) for fact in seen[name]["errors"]]
    assert sorted(bad_port) == [(1, 2, 4), (2, 2, 4)]


@VERSIONS
def test_ovs_ofctl_reads_the_switch(seen: dict, name: str) -> None:
    said = seen[name]["clients"]
    assert "dpid:0000000000000002" in said["show"] and "4(s2-eth4): addr:02:00:00:00:02:04" in said["show"]
    assert "speed: 1000 Mbps now" in said["show"]
    assert "4 ports" in said["dump-ports"]
    assert "port  4: rx pkts=0, bytes=0, drop=0, errs=?" in said["dump-ports"]
    assert "port 1 queue 2: bytes=1000, pkts=12, errors=2" in said["queue-stats"]
    assert "active=3" in said["dump-tables"] or "active=2" in said["dump-tables"]
    assert "arbitrary mask: ip_{src,dst}" in said["table-features"]
    assert "Hardware: eBPF switch" in said["desc"]


@VERSIONS
def test_ovs_ofctl_writes_it(seen: dict, name: str) -> None:
    said = seen[name]["clients"]
    assert said["group"] == said["flow"] == said["mod"] == said["del"] == said["del-groups"] == ""
    if name == "OpenFlow15":
        assert ("group_id=7,type=select,selection_method=hash,selection_method_param=77,"
                "bucket=bucket_id:0,weight:3,actions=output:1,bucket=bucket_id:1,") in said["groups"]
    else:
        assert "group_id=7,type=select,bucket=weight:3,actions=output:1,bucket=" in said["groups"]
    assert "bucket1:packet_count=0" in said["group-stats"]
    assert "priority=9,tcp,nw_dst=10.0.0.0/16,tp_dst=80 actions=output:4" in said["flows"]
    assert "priority" not in said["flows-left"] and "group_id" not in said["groups-left"]


@VERSIONS
def test_ovs_ofctl_is_told_what_is_refused(seen: dict, name: str) -> None:
    said = seen[name]["clients"]
    assert "OFPGMFC_BAD_TYPE" in said["group-all"]
    assert ("OFPBRC_BAD_VENDOR" if name == "OpenFlow13" else "OFPBRC_BAD_TYPE") in said["bundle"]


def test_the_end_of_the_agent_is_reported_and_its_successor_listens(seen: dict) -> None:
    assert seen["failure_while_running"] is None
    assert "was killed by signal 9; the switches forwarded on" in seen["failure_when_killed"]
    assert "dpid:0000000000000002" in seen["show_after_restart"]
    assert seen["left"] == ["agent.json", "agent.log", "events"]
