"""Several jobs and a background over a real fabric: whose times are whose, and what the links carried."""
from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml

from tests.commands import finish, measure, rows, strict_json

pytestmark = [pytest.mark.root,
              pytest.mark.skipif(os.geteuid() != 0, reason="needs root: runs whole experiments")]

TOPOLOGY = ("--topology", "leaf-spine:leaves=2,spines=1,hosts=3", "--rate", "3mbit")


def test_two_jobs_and_a_background(tmp_path: Path) -> None:
    out = tmp_path / "out"
    file = tmp_path / "two.yaml"
    file.write_text(yaml.safe_dump({
        "jobs": [{"workload": "allreduce:bytes=6MB,iterations=2", "name": "ring", "hosts": "h1,h4"},
                 {"workload": "alltoall:bytes=3MB,iterations=4", "name": "shuffle", "hosts": "h2,h5",
                  "start": "0.3s"},
                 {"workload": "broadcast:bytes=1500kB", "name": "last", "after": "ring", "hosts": "h1,h4"}],
        "background": "cdf:websearch,load=0.2,hosts=h3+h6,seed=2", "byte-scale": 30}))
    summary = measure(out, file, *TOPOLOGY, "--verify")
    ring, all_to_all, last = summary["jobs"]
    assert [len(job["iteration_s"]) for job in summary["jobs"]] == [2, 4, 1]
    assert not any(job["wrong_values"] for job in summary["jobs"])
    assert all(job["efficiency"] > 0.3 for job in (ring, all_to_all)), summary["jobs"]
    assert 0.3 <= all_to_all["start_s"] < 0.6 and last["start_s"] >= ring["end_s"]
    workload = summary["workload"]
    assert workload["bytes_received"] == workload["bytes_sent"] == (
        3 * 2 * 200_000 + 5 * 2 * 50_000 + 2 * 50_000)
    background = summary["background"]
    assert background["ended"] == len(rows(out / "background.csv")) > 0
    assert {row["src"] for row in rows(out / "background.csv")} == {"h3", "h6"}
    assert {row["job"] for row in rows(out / "flows.csv")} == {"ring", "shuffle", "last"}
    matrix = rows(out / "traffic_matrix.csv")
    assert all(row["planned_bytes"] == row["measured_bytes"] for row in matrix) and len(matrix) == 5
    assert "# ring all-reduce (2 ranks)" in (out / "collectives.txt").read_text()
    assert (out / "traffic_matrix.svg").read_text().count("<title>") == 5


@pytest.mark.long
def test_bytes_over_every_link_are_those_of_the_schedule(tmp_path: Path) -> None:
    """Headers and acknowledgements accounted for, within 2 %."""
    out = tmp_path / "out"
    summary = measure(out, *TOPOLOGY, "--workload", "allreduce:bytes=600kB,slices=1")
    for name, tier in summary["links"]["by_tier"].items():
        assert tier["counted_over_expected"] == pytest.approx(1, abs=0.02), name
    listed = rows(out / "link_bytes.csv")
    assert len(listed) == 16
    busy = [float(row["ratio"]) for row in listed if float(row["payload_bytes"])]
    assert len(busy) == 16 and all(abs(ratio - 1) < 0.02 for ratio in busy), busy


@pytest.mark.long
def test_a_job_that_does_not_end_is_named(tmp_path: Path) -> None:
    status, said, _ = finish(*TOPOLOGY, "--out", tmp_path / "out", "--deadline", "1s",
                             "--job", "sendrecv:bytes=10kB; name=quick; hosts=h1,h2",
                             "--job", "broadcast:bytes=3MB,slices=1; name=slow; hosts=h3,h4",
                             "--job", "barrier; name=third; after=slow")
    assert status == 4
    stuck = strict_json(tmp_path / "out" / "summary.json")["workload"]["stuck"]
    assert any("job slow: rank 1 is stuck in broadcast step 0, waiting for" in line and "from rank 0" in line
               for line in stuck), stuck
    assert any("job third: not begun" in line and "waits for job slow" in line for line in stuck)
    assert not any("job quick" in line for line in stuck) and "Stuck: job slow" in said


@pytest.mark.parametrize("arguments, sentence", [
    (("--job", "allreduce; hosts=h1-h4", "--job", "alltoall; hosts=h4-h6"), "both want host h4"),
    (("--workload", "allreduce:placement=near"), 'Unknown placement "near"'),
    (("--background", "cdf:websearch,load=1.5"), "not between 0 and 1"),
    (("--job", "allreduce:ranks=9"), "9 ranks do not fit on 6 hosts"),
    (("--job", "allreduce; class=gold"), 'no class "gold"')])
def test_bad_input_is_one_sentence_and_nothing_starts(tmp_path: Path, arguments: tuple[str, ...],
                                                      sentence: str) -> None:
    status, said, complained = finish(*TOPOLOGY, *arguments, "--out", tmp_path / "out")
    assert status == 2 and said == "" and not (tmp_path / "out").exists()
    assert sentence in complained and complained.count("\n") == 1
