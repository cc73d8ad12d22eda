"""Signals that ask to stop, at moments when no sandbox runs to obey them."""
from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from emulator import run
from emulator.bundle import FILES, Bundle
from tests.commands import strict_json
from tests.outcomes import outcome

ARGUMENTS = ("--topology", "star:hosts=4", "--workload", "pattern:stride=1,bytes=100kB", "--rate", "5mbit",
             "--repeat", "3", "--quiet")


@pytest.fixture(autouse=True)
def no_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("emulator.requirements.require", lambda plans: None)
    monkeypatch.setattr(run, "_run", lambda plan, folder, mode: outcome(plan))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_stop_while_reporting_keeps_whole_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
                                                  capsys: pytest.CaptureFixture, number: int) -> None:
    write = Bundle.write

    def interrupted(self: Bundle, name: str, content: str | bytes) -> None:
        os.kill(os.getpid(), number)
        write(self, name, content)

    monkeypatch.setattr(Bundle, "write", interrupted)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # as `main` leaves it
    old = signal.getsignal(number)
    assert run.main([*ARGUMENTS, "--out", str(tmp_path / "out")]) == 130
    assert signal.getsignal(number) == old
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"seed=1", "summary.json"}
    left = {path.name for path in (tmp_path / "out/seed=1").iterdir()}
    assert {"summary.json", "flows.csv", "timeline.json", "queues.csv", "log.txt"} <= left <= set(FILES)
    assert len(strict_json(tmp_path / "out/summary.json")["runs"]) == 1
    assert "interrupted" in capsys.readouterr().err


def test_a_stop_before_the_sandbox_stands(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def killed(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(run, "_run", killed)
    assert run.main([*ARGUMENTS, "--out", str(tmp_path / "out")]) == 130
    assert not (tmp_path / "out").exists()  # nothing that a second try would have to --force


def test_the_worst_run_decides_the_status(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    order = [0, 5, 4, 1, 3, 130]
    assert sorted([130, 3, 1, 4, 5, 0], key=run._severity) == order
    statuses = iter((5, 4, 0))
    monkeypatch.setattr(run, "_judged", lambda summary: next(statuses))
    assert run.main([*ARGUMENTS, "--out", str(tmp_path / "out")]) == 4


def test_quiet_says_only_the_result(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    assert run.main([*ARGUMENTS, "--out", str(tmp_path / "out")]) in (0, 5)
    said = capsys.readouterr()
    assert said.err == "" and said.out.count("Verdict:") == 3 and "Over the seeds" in said.out
