"""Routings on real fabrics: where the bytes of each really went."""
from __future__ import annotations

import os
import shutil
from math import sqrt

import pytest

from emulator.asic.libbpf import supported
from tests.commands import measure, rows

pytestmark = [pytest.mark.root,
              pytest.mark.skipif(os.geteuid() != 0, reason="needs root: runs whole experiments")]
on_bpf = pytest.mark.skipif(os.geteuid() == 0 and supported() is not None, reason="needs the bpf switch")


def counted(out) -> dict[tuple[str, str], int]:
    """(from, to) -> bytes that crossed the link."""
    return {(row["source"], row["destination"]): int(row["counted_bytes"])
            for row in rows(out / "link_bytes.csv")}


@on_bpf
def test_valiant_takes_a_third_group_on_the_way(tmp_path):
    """Three groups in a ring, each sends to the next: on minimal ways the links back carry acknowledgements
    alone, 66 bytes for two segments.
    """
    out = tmp_path / "out"
    summary = measure(out, "--topology", "dragonfly:p=2,a=1,h=2,g=3", "--routing", "valiant", "--workload",
                      "pattern:stride=2,bytes=100kB,flows=16", "--rate", "5mbit", "--switch", "bpf", "--quiet")
    assert summary["workload"]["stuck"] == [] and summary["flows"]["count"] == 6 * 16
    crossed = counted(out)
    for back in (("r1_0", "r0_0"), ("r2_0", "r1_0"), ("r0_0", "r2_0")):
        assert crossed[back] > 0.2 * 200e3, (back, crossed)


@on_bpf
def test_both_scopes_together_place_elephants_beside_adaptive_switches(tmp_path):
    summary = measure(tmp_path / "out", "--topology", "leaf-spine:leaves=2,spines=2,hosts=2", "--routing",
                      "adaptive:scope=both,period=200ms", "--workload", "pattern:stride=2,bytes=700kB",
                      "--rate", "5mbit", "--switch", "bpf", "--quiet")
    moves = summary["routing"]["moves"]
    assert len({(move["source"], move["destination"]) for move in moves if move["what"] == "placed"}) == 4
    assert summary["links"]["uplink_jain"] >= 0.95 and summary["workload"]["stuck"] == []


@pytest.mark.skipif(not shutil.which("ovs-vswitchd"), reason="needs Open vSwitch")
@pytest.mark.long
def test_wcmp_divides_on_open_vswitch(tmp_path):
    """64 flows a leaf, 1:4; a share of one half, as under ECMP, is 6 standard deviations away."""
    out = tmp_path / "out"
    summary = measure(out, "--topology", "leaf-spine:leaves=2,spines=2,hosts=2,slow=1,slow_factor=0.25",
                      "--routing", "wcmp", "--workload", "pattern:stride=2,bytes=32kB,flows=32", "--rate",
                      "1mbit", "--switch", "ovs", "--quiet")
    assert summary["workload"]["stuck"] == []
    crossed = counted(out)
    for leaf in ("l1", "l2"):
        share = crossed[leaf, "s1"] / (crossed[leaf, "s1"] + crossed[leaf, "s2"])
        assert abs(share - 0.2) <= 5 * sqrt(0.2 * 0.8 / 64), (leaf, share)
