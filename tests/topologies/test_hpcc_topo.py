"""HPCC's topology files: wiring and ratios come in, every slip is a sentence with file, line and column."""
from __future__ import annotations

from pathlib import Path

import pytest

from emulator.errors import BadInput
from tests.traffic.samples import TOPOLOGY
from topologies.catalog import resolve_topology
from topologies.hpcc_topo import read_hpcc_topo


def written(tmp_path: Path, text: str) -> str:
    (tmp_path / "topology.txt").write_text(text)
    return str(tmp_path / "topology.txt")


def test_wiring_and_ratios(tmp_path: Path) -> None:
    path = written(tmp_path, TOPOLOGY)
    fabric = read_hpcc_topo(path)
    assert fabric.host_rate_bps == 100e9 and fabric.links[4].delay_s == pytest.approx(1e-6)
    graph = fabric.graph
    assert [host.name for host in graph.hosts] == ["h1", "h2", "h3", "h4"], "node n is host n"
    assert [(link.a, link.b, link.speed) for link in graph.links] == [
        ("h1", "s4", 1.0), ("h2", "s4", 1.0), ("h3", "s5", 1.0), ("h4", "s5", 1.0), ("s4", "s5", 4.0),
        ("s4", "s5", 4.0)]
    assert "100 Gb/s" in graph.notes[0] and "delays of 1 us" in graph.notes[0] and "1 links" in graph.notes[1]
    assert resolve_topology(f"hpcc:{path}") == graph


@pytest.mark.parametrize("old, new, says", [
    ("6 2 6\n", "6 2 6 1 1 A100\n", ":1: the first line must be: nodes, switches, links; it has 6 words; a SimAI"),
    ("6 2 6\n", "6 2 7\n", ":1:5: it says 7 links, but the file has 6"),
    ("4 5\n", "4\n", ":2: the second line must name 2 switches"),
    ("4 5\n", "4 4\n", ":2:3: switch 4 is named twice"),
    ("4 5\n", "0 5\n", ":2: node 0 is a switch, but hosts must have the numbers 0 to 3"),
    ("0 4 100Gbps", "0 0 100Gbps", ":3:3: node 0 is linked to itself"),
    ("0 4 100Gbps", "0 9 100Gbps", ':3:3: node "9" is not a whole number from 0 to 5'),
    ("0 4 100Gbps", "0 4 fast", ':3:5: the rate "fast"'),
    ("0 4 100Gbps", "0 4 0Gbps", 'the rate "0Gbps"'),
    ("100Gbps 0.001ms 0\n", "100Gbps soon 0\n", ':3:13: the delay "soon"'),
    ("0.001ms 0\n", "0.001ms nan\n", ':3:21: error_rate "nan"'),
    ("0.001ms 0\n", "0.001ms\n", ":3: 4 columns where 5"),
    ("1 4 100Gbps", "0 4 100Gbps", "host h1 has 2 links"),
    ("4 5 400Gbps 1us 0\n4 5 400Gbps 1us 0\n", "0 1 400Gbps 1us 0\n2 3 400Gbps 1us 0\n", "h1")])
def test_slips(tmp_path: Path, old: str, new: str, says: str) -> None:
    assert old in TOPOLOGY
    path = written(tmp_path, TOPOLOGY.replace(old, new, 1))
    with pytest.raises(BadInput) as caught:
        read_hpcc_topo(path)
    assert says in str(caught.value) and "\n" not in str(caught.value) and str(caught.value).endswith(".")
