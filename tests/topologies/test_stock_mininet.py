"""The Topo files under stock `mn`, with real switches, in namespaces that die with it."""
from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: runs Mininet in its own namespaces"),
    pytest.mark.skipif(not (shutil.which("mn") and shutil.which("ovs-vswitchd")),
                       reason="needs Mininet: sudo apt-get install mininet openvswitch-switch")]

TESTS = Path(__file__).parents[1]


@pytest.mark.parametrize("file, topo, link, links", [
    ("fat_tree", "fattree,2", "default",
     "(a0_0, c1) (a1_0, c1) (e0_0, a0_0) (e1_0, a1_0) (h1, e0_0) (h2, e1_0)"),
    ("leaf_spine", "leafspine,2,1,1", "tc", "(h1, l1) (h2, l2) (l1, s1) (l2, s1)"),
    ("star", "star,3", "tc", "(h1, s1) (h2, s1) (h3, s1)"),
    ("random_regular", "randomregular,3,2,1", "tc", "(h1, x1) (h2, x2) (h3, x3) (x1, x2) (x1, x3) (x2, x3)")])
def test_mn_builds_it(file, topo, link, links):
    """Link options that Mininet does not know (speed, tier) must not disturb its links, shaped or not."""
    done = subprocess.run(
        ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", sys.executable,
         "-B", TESTS / "controllers" / "ovs_scenario.py", "mininet",
         "--custom", TESTS.parent / "topologies" / f"{file}.py", "--topo", topo, "--link", link,
         "--switch", "ovs,datapath=user", "--controller", "none", "--test", "none"],
        capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout.splitlines()[-1])
    assert seen["status"] == 0, seen["said"]
    assert links in seen["said"]
