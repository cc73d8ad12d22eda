"""The command line end to end, on real fabrics: what a user gets, and what stays behind (nothing)."""
from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest
import yaml

from emulator.bundle import FILES
from tests.commands import SMALL, finish, measure, rows, start, strict_json
from tests.traces import state

pytestmark = [pytest.mark.root,
              pytest.mark.skipif(os.geteuid() != 0, reason="needs root: runs whole experiments")]

FLOW = ("--workload", "pattern:pair=0-1,bytes=1MB", "--rate", "5mbit")
LONG = ("--workload", "pattern:pair=0-1,bytes=20MB", "--rate", "5mbit")
SOMEBODY = 65534


def test_a_run_leaves_a_bundle_that_repeats_it(tmp_path: Path) -> None:
    before, out, again = state(), tmp_path / "deep" / "out", tmp_path / "again"
    os.chown(tmp_path, SOMEBODY, SOMEBODY)
    summary = measure(out, *SMALL, *FLOW, "--pcap", "l1-eth2", "--verify", SUDO_UID=str(SOMEBODY),
                      SUDO_GID=str(SOMEBODY))
    assert {path.name for path in out.iterdir()} == {*FILES, "l1-eth2.pcap"}
    assert {path.stat().st_uid for path in tmp_path.rglob("*")} == {SOMEBODY}
    workload = summary["workload"]
    assert workload["bytes_received"] == workload["bytes_sent"] == 1_000_000
    assert workload["verified"] and not workload["checksum_errors"] and not workload["wrong_values"]
    assert 0.8 < workload["efficiency"] < 1.05
    assert 4.5e6 < summary["workload"]["goodput_bps"] < 5e6
    assert (out / "l1-eth2.pcap").stat().st_size > 1_000_000
    trace = strict_json(out / "timeline.json")["traceEvents"]
    assert {"send", "recv", "iteration"} <= {event.get("cat") for event in trace}
    assert "h1-eth0" in {row["port"] for row in rows(out / "queues.csv")}
    assert {row["port"] for row in rows(out / "links.csv")} >= {"h1-eth0", "l1-eth2", "l2-eth1"}

    measure(again, out / "experiment.yaml")
    ways = [[(row["src_port"], row["dst_port"], row["path"], row["bytes"])
             for row in rows(folder / "flows.csv")] for folder in (out, again)]
    assert ways[0] == ways[1] and ways[0][0][2] == "h1 l1 s1 l2 h2"
    assert (again / "experiment.yaml").read_text() == (out / "experiment.yaml").read_text()
    assert state() == before


def test_a_matrix_ends_in_one_table_and_one_summary(tmp_path: Path) -> None:
    file, out = tmp_path / "sweep.yaml", tmp_path / "out"
    file.write_text(yaml.safe_dump({"topology": "leaf-spine:leaves=2,spines=1,hosts=1", "rate": "5mbit",
                                    "workload": "pattern:pair=0-1,bytes=300kB", "matrix": {"seed": [3, 4]}}))
    status, said, _ = finish(file, "--out", out, "--quiet")
    assert status in (0, 5)
    assert "All runs" in said and "Over the seeds" in said
    both = strict_json(out / "summary.json")
    assert [run["label"] for run in both["runs"]] == ["seed=3", "seed=4"]
    for label in ("seed=3", "seed=4"):
        assert strict_json(out / label / "summary.json")["workload"]["bytes_received"] == 300_000
    assert status == (5 if "fail" in {run["fidelity"]["verdict"] for run in both["runs"]} else 0)


def test_the_command_line_takes_a_pipe(tmp_path: Path) -> None:
    run = start(*SMALL, *FLOW, "--event", "1s controller down", "--cli", "--out", tmp_path / "out",
                stdin=subprocess.PIPE)
    run.process.stdin.write("links\nh1 ping -c1 h2\npingall\nexit\nh1 echo not reached\n")
    status, said, complained = run.ended()
    assert status == 0, complained
    assert "none of the events that were asked for happens" in said
    assert "h1-eth0<->l1-eth1" in said and "1 received, 0% packet loss" in said
    assert "0% dropped (2/2 received)" in said and "not reached" not in said


@pytest.mark.parametrize("words", ["hosts", "building", "connecting ranks ("])
def test_ctrl_c_keeps_what_was_measured(tmp_path: Path, words: str) -> None:
    before, out = state(), tmp_path / "out"
    run = start(*SMALL, *LONG, "--out", out)
    run.says(words)
    time.sleep(0.7 if "connecting" in words else 0)
    run.process.send_signal(signal.SIGINT)
    status, _, complained = run.ended()
    assert status == 130 and "Traceback" not in complained and "interrupted" in complained
    if "connecting" not in words:  # nothing was measured, so nothing stands in the way of the next run
        assert not out.exists() and "left nothing" in complained
    else:
        summary = strict_json(out / "summary.json")
        assert summary["interrupted"] and summary["fidelity"]["verdict"] == "fail"
        assert 0 < summary["workload"]["bytes_received"] < 20_000_000
        assert summary["queues"]["by_port"]
    assert not list(out.glob("*.part"))
    assert state() == before


def test_kill_9_of_the_top_leaves_nothing(tmp_path: Path) -> None:
    before = state()
    for moment in ("hosts", "building", "controller", "connecting ranks ("):
        run = start(*SMALL, *LONG, "--out", tmp_path / moment.split()[0])
        run.says(moment)
        time.sleep(random.uniform(0, 0.5))
        run.process.kill()
        assert run.ended()[0] == -signal.SIGKILL
    assert state() == before


def test_two_runs_side_by_side(tmp_path: Path) -> None:
    runs = [start(*SMALL, *FLOW, "--out", tmp_path / name) for name in "ab"]
    for run, name in zip(runs, "ab"):
        assert run.ended()[0] in (0, 5)
        assert strict_json(tmp_path / name / "summary.json")["workload"]["bytes_received"] == 1_000_000


def test_a_deadline_names_each_rank_that_waits(tmp_path: Path) -> None:
    status, said, complained = finish(*SMALL, *LONG, "--deadline", "1s", "--out", tmp_path / "out")
    assert status == 4 and "Traceback" not in complained
    stuck = strict_json(tmp_path / "out/summary.json")["workload"]["stuck"]
    assert any("rank 1" in line and "rank 0" in line for line in stuck)
    for line in stuck:
        assert " ".join(line.split())[:60] in " ".join(said.split())


@pytest.mark.parametrize("switch", ["auto", "ovs"])
def test_a_port_that_lost_its_shaper_fails_the_verdict_by_name(tmp_path: Path, switch: str) -> None:
    run = start(*SMALL, *FLOW, "--switch", switch, "--out", tmp_path / "out")
    run.says("connecting ranks (")
    subprocess.run(["nsenter", "-t", str(run.inside()), "-n", "tc", "qdisc", "del", "dev", "l1-eth2", "root"],
                   check=True, timeout=10)
    status, _, complained = run.ended()
    assert status == 5, complained
    fidelity = strict_json(tmp_path / "out/summary.json")["fidelity"]
    checks = {check["name"]: check for check in fidelity["checks"]}
    assert not checks["shaping"]["ok"] and "l1-eth2" in checks["shaping"]["why"]


def test_more_than_the_machine_can_do_is_not_trusted(tmp_path: Path) -> None:
    status, said, complained = finish(
        "--topology", "leaf-spine:leaves=2,spines=2,hosts=2", "--workload", "pattern:stride=2,bytes=8MB",
        "--rate", "200mbit", "--switch", "ovs", "--out", tmp_path / "out")
    summary = strict_json(tmp_path / "out/summary.json")
    if summary["environment"]["datapath"] != "netdev":
        pytest.skip("this kernel has Open vSwitch's datapath and may well keep up with 200 Mb/s")
    assert status == 5, complained
    assert "FAIL" in said
