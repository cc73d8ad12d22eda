"""Global scheduling on real fabrics of both kinds of switch: elephants are found, placed, counted, reported."""
from __future__ import annotations

import os
import shutil

import pytest

from emulator.asic.libbpf import supported
from tests.commands import measure

pytestmark = [pytest.mark.root,
              pytest.mark.skipif(os.geteuid() != 0, reason="needs root: runs whole experiments")]


def placed_evenly(summary, pairs):
    routing = summary["routing"]
    placed = {(move["source"], move["destination"]) for move in routing["moves"] if move["what"] == "placed"}
    assert len(placed) == pairs and routing["moved_back"] == 0, routing
    assert summary["links"]["uplink_jain"] >= 0.9, "hashing alone leaves .5 to .8"
    assert summary["workload"]["stuck"] == []
    packet_ins = next(check for check in summary["fidelity"]["checks"] if check["name"] == "packet-in")
    assert packet_ins["ok"]


@pytest.mark.skipif(os.geteuid() == 0 and supported() is not None, reason="needs the bpf switch")
def test_first_fit_places_stride_8_on_a_fat_tree(tmp_path):
    summary = measure(tmp_path / "out", "--topology", "fat-tree:k=4", "--routing", "gff:period=200ms", "--workload",
                      "pattern:stride=8,bytes=700kB", "--rate", "2mbit", "--switch", "bpf", "--quiet")
    placed_evenly(summary, 16)


@pytest.mark.skipif(not shutil.which("ovs-vswitchd"), reason="needs Open vSwitch")
def test_annealing_places_on_open_vswitch(tmp_path):
    summary = measure(tmp_path / "out", "--topology", "leaf-spine:leaves=2,spines=2,hosts=2", "--routing",
                      "sa:period=300ms", "--workload", "pattern:stride=2,bytes=120kB", "--rate", "0.3mbit",
                      "--switch", "ovs", "--quiet")
    placed_evenly(summary, 4)
