"""A process of the switches that dies while traffic runs: what goes on, what the user is told."""
from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.commands import SMALL, failed, faults, start, strict_json

pytestmark = [pytest.mark.root,
              pytest.mark.skipif(os.geteuid() != 0, reason="needs root: runs whole experiments")]
FLOW = ("--workload", "pattern:pair=0-1,bytes=1MB")


def test_the_agent_dies_and_forwarding_goes_on(tmp_path: Path) -> None:
    run = start(*SMALL, *FLOW, "--rate", "5mbit", "--switch", "bpf", "--out", tmp_path / "out")
    run.says("connecting ranks (")
    os.kill(run.one("\0emulator.asic.agent\0"), signal.SIGKILL)
    status, said, complained = run.ended()
    summary = strict_json(tmp_path / "out/summary.json")
    assert not faults(summary) and status == (5 if failed(summary) else 0), complained
    assert summary["workload"]["bytes_received"] == 1_000_000
    sentence = "The OpenFlow agent was killed by signal 9; the switches forwarded on"
    assert [note.startswith(sentence) for note in summary["notes"]] == [True]
    assert f"Note: {sentence}" in said
    assert sentence in (tmp_path / "out/log.txt").read_text()


def test_open_vswitch_dies_and_the_run_keeps_what_it_saw(tmp_path: Path) -> None:
    run = start(*SMALL, *FLOW, "--rate", "500kbit", "--switch", "ovs", "--deadline", "2s", "--out", tmp_path / "out")
    run.says("connecting ranks (")
    os.kill(run.one("ovs-vswitchd\0"), signal.SIGKILL)
    status, said, complained = run.ended()
    assert status == 4 and "Traceback" not in complained
    summary = strict_json(tmp_path / "out/summary.json")
    assert summary["workload"]["bytes_received"] < 1_000_000 and summary["workload"]["stuck"]
    assert summary["notes"] == ["ovs-vswitchd was killed by signal 9."] and "Note: ovs-vswitchd was killed" in said
    assert summary["fidelity"]["verdict"] == "fail"
