"""htsim's topology files: the real ones, and a sentence with file and line for each slip."""
from __future__ import annotations

import re
from pathlib import Path

import pytest

from emulator.errors import BadInput
from topologies.catalog import resolve_topology
from topologies.htsim_topo import read_topo

DATA = Path("/work/shared/data")
LEAF_SPINE = """# two tiers, 4:1
Nodes 32
Tiers 2
Podsize 32

Tier 0
Downlink_speed_Gbps 100
Radix_Down 8
Radix_Up 2
Downlink_Latency_ns 1000
Oversubscribed 4

tier 1
Downlink_speed_Gbps 100
Radix_Down 4
Downlink_Latency_ns 2000
Switch_Latency_ns 500
"""
BUNDLED = """Nodes 48
Tiers 3
Podsize 12
Tier 0
Downlink_speed_Gbps 100
Radix_Down 6
Radix_Up 3
Downlink_Latency_ns 1000
Tier 1
Downlink_speed_Gbps 200
Radix_Down 2
Radix_Up 6
Downlink_Latency_ns 1000
Tier 2
Downlink_speed_Gbps 100
Radix_Down 12
Bundle 3
Downlink_Latency_ns 600000
"""


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "fabric.topo"
    path.write_text(text)
    return path


def test_a_leaf_spine_with_its_speeds_and_delays(tmp_path):
    fabric = read_topo(written(tmp_path, LEAF_SPINE))
    graph = fabric.graph
    assert (len(graph.hosts), len(graph.switches), len(graph.links)) == (32, 6, 40)
    assert {link.tier: link.speed for link in graph.links} == {"host-leaf": 1.0, "leaf-spine": 1.0}
    assert fabric.host_rate_bps == 100e9
    assert (fabric.link_delay_s, fabric.switch_delay_s) == ((1e-6, 2e-6), (0, 5e-7))
    assert resolve_topology(str(tmp_path / "fabric.topo")) == graph


def test_bundles_are_parallel_links_and_speeds_are_those_of_the_file(tmp_path):
    """4 pods of 2 leaves and 3 spines; each spine has 2 cores of its own, by 3 links each."""
    graph = read_topo(written(tmp_path, BUNDLED)).graph
    assert sorted(switch.name for switch in graph.switches if switch.role == "core") == [
        f"c{n}" for n in range(1, 7)]
    assert graph.networkx.number_of_edges("s0_1", "c2") == graph.networkx.number_of_edges("s3_1", "c5") == 3
    assert {link.tier: link.speed for link in graph.links} == {
        "host-leaf": 1.0, "leaf-spine": pytest.approx(2.0), "spine-core": pytest.approx(1.0)}


@pytest.mark.skipif(not DATA.is_dir(), reason=f"needs the public files in {DATA}")
def test_the_public_files():
    assert len(read_topo(DATA / "uec" / "fat_tree_128_1os.topo").graph.hosts) == 128
    tiny = read_topo(DATA / "htsim" / "leaf_spine_tiny.topo").graph
    assert (len(tiny.hosts), len(tiny.switches)) == (32, 6)


@pytest.mark.parametrize("old, new, says", [
    ("Nodes 32\n", "", "header has no Nodes"), ("Nodes 32", "Nodes 0", ":2: Nodes 0 is not a multiple"),
    ("Nodes 32", "Nodes thirty", ':2: "Nodes thirty"'), ("Nodes 32", "Nodes 32 64", ':2: "Nodes 32 64"'),
    ("Nodes 32", "Nodes -32", ':2: "Nodes -32"'), ("Nodes 32", "Nodes 1000000000000", ":2:"),
    ("Tiers 2", "Tiers 4", ":3: 4 tiers"), ("Tiers 2", "Tiers 3", ":3: the header says 3 tiers"),
    ("tier 1", "Tier 0", ":13: tier 0 comes twice"), ("tier 1", "Tier 7", ":13: tier 7"),
    ("Radix_Up 2", "Radix_Upp 2", 'did you mean "radix_up"'), ("Radix_Up 2\n", "", "tier 0 has no Radix_up"),
    ("Radix_Up 2", "Radix_Down 2", ":9: Radix_Down is given twice, first in line 8"),
    ("Radix_Down 8", "Radix_Down 5", ":4: Podsize 32 is not a multiple"),
    ("Radix_Down 8", "Radix_Down 0", ":8: Radix_down must be more than 0"),
    ("Radix_Down 4", "Radix_Down 5", ":15: Radix_Down of tier 1 must join 4 leaves, so it is 4, not 5"),
    ("Oversubscribed 4", "Oversubscribed 1", ":11: Oversubscribed 1, but"),
    ("Podsize 32", "Podsize 16", ":15: Radix_Down of tier 1 must join 2 leaves"),
    ("Switch_Latency_ns 500", "Radix_Up 4", ":17: the top tier has no uplinks"),
    ("Nodes 32\nTiers 2\nPodsize 32", "Nodes 4096\nTiers 2\nPodsize 4096", "must join 512 leaves")])
def test_slips_are_named_by_file_and_line(tmp_path, old, new, says):
    assert old in LEAF_SPINE
    path = written(tmp_path, LEAF_SPINE.replace(old, new, 1))
    with pytest.raises(BadInput) as caught:
        read_topo(path)
    said = re.sub(r"(:\d+):\d+: ", r"\1: ", str(caught.value))  # without the column
    assert str(path) in said and says in said
    assert "\n" not in str(caught.value)


def test_files_that_cannot_be_read(tmp_path):
    (tmp_path / "folder.topo").mkdir()
    (tmp_path / "binary.topo").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "empty.topo").write_text("")
    for name, says in (("none", "does not exist"), ("folder", "cannot be read"), ("binary", "is not text"),
                       ("empty", "no Nodes")):
        with pytest.raises(BadInput, match=says):
            resolve_topology(str(tmp_path / f"{name}.topo"))
