"""Traces of other tools over a real fabric: more ranks than hosts, and flows that wait for flows."""
from __future__ import annotations

from pathlib import Path

import pytest

from tests.commands import measure, rows
from tests.traffic import samples

pytestmark = pytest.mark.root
PAIR = ("--topology", "leaf-spine:leaves=2,spines=1,hosts=1", "--switch", "bpf", "--rate", "5mbit", "--verify")


@pytest.mark.long
def test_four_ranks_of_a_simai_workload_on_two_hosts(tmp_path: Path) -> None:
    (tmp_path / "job.txt").write_text(samples.SIMAI.replace("8192", "800000"))
    workload = f"simai:{tmp_path / 'job.txt'},map=pack"
    summary = measure(tmp_path / "out", *PAIR, "--workload", workload, "--dilation", "1000")
    # tensor-parallel pairs share a host; two data-parallel pairs reduce and scatter 800 kB across the two
    assert summary["workload"]["bytes_sent"] == summary["workload"]["bytes_received"] == 2 * 800_000
    assert summary["workload"]["ranks"] == 2 and summary["workload"]["checksum_errors"] == 0
    assert any("map=pack puts 2 ranks on each of 2 hosts" in note for note in summary["notes"])
    assert any("times are multiplied by 1000" in note for note in summary["notes"])
    assert {(row["src"], row["dst"]) for row in rows(tmp_path / "out" / "flows.csv")} == {("h1", "h2"), ("h2", "h1")}


@pytest.mark.long
def test_a_flow_starts_when_its_trigger_fires(tmp_path: Path) -> None:
    (tmp_path / "chain.cm").write_text(
        "Nodes 2\nConnections 2\nTriggers 1\n0->1 id 1 start 0 size 600000 send_done_trigger 1 prio 3\n"
        "1->0 id 2 trigger 1 size 300000\ntrigger id 1 oneshot\n")
    summary = measure(tmp_path / "out", *PAIR, "--workload", str(tmp_path / "chain.cm"))
    assert summary["workload"]["bytes_received"] == 900_000
    first, second = sorted(rows(tmp_path / "out" / "flows.csv"), key=lambda row: row["src"])
    assert float(second["start_s"]) > float(first["start_s"]) + 0.6, "600 kB take about a second at 5 Mb/s"
