"""Starts the command line as a user does, in a process of its own, and reads what it left."""
from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import time
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.traces import gone

CLONE = Path(__file__).resolve().parent.parent
SMALL = ("--topology", "leaf-spine:leaves=2,spines=1,hosts=1")
NOISE = {"idle", "steal", "timers"}
"""Checks that another user of the machine can make fail; a run that fails only these is tried again."""
WITH_NOISE = {"gaps", "delay"}
"""Checks that fail when packets are sent late: noise beside one of those, or beside stolen time; alone a fault."""
TRIES = 2


@dataclass
class Run:
    """A started command. `token` is in the environment of all its processes."""

    process: subprocess.Popen[str]
    token: str

    def says(self, words: str, within_s: float = 40.0) -> None:
        """Wait until a line on stderr has `words`."""
        end_s = time.monotonic() + within_s
        for line in self.process.stderr:
            if words in line:
                return
            assert time.monotonic() < end_s
        raise AssertionError(f"it ended with {self.process.wait(10)} and never said {words!r}")

    def ended(self, within_s: float = 120.0) -> tuple[int, str, str]:
        """(exit status, stdout, stderr) once it has ended; nothing of it may be left."""
        out, err = self.process.communicate(timeout=within_s)
        assert gone(self.token) == []
        return self.process.returncode, out, err

    def inside(self) -> int:
        """The process of the sandbox that runs the session."""
        return self.one("\0emulator.inside\0")

    def one(self, words: str) -> int:
        """The one process of the run whose command line has `words`."""
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                if (self.token.encode() in (process / "environ").read_bytes()
                        and words.encode() in (process / "cmdline").read_bytes()):
                    found.append(int(process.name))
            except OSError:  # it ended while we looked
                continue
        assert len(found) == 1, (words, found)
        return found[0]


def start(*arguments: str | Path, stdin: int = subprocess.DEVNULL, **environment: str) -> Run:
    """Start `python -m emulator.run ARGUMENTS`."""
    token = f"run{uuid.uuid4().hex[:10]}"
    command = [sys.executable, "-m", "emulator.run", *map(str, arguments)]
    process = subprocess.Popen(command, cwd=CLONE, env={**os.environ, "TOKEN": token, **environment}, stdin=stdin,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return Run(process, token)


def finish(*arguments: str | Path, **environment: str) -> tuple[int, str, str]:
    """Run a command to its end."""
    return start(*arguments, **environment).ended()


def measure(out: Path, *arguments: str | Path, **environment: str) -> dict[str, Any]:
    """Run an experiment to its end and return its summary; again, once, where the verdict failed, and then
    the last one stands.
    """
    for _ in range(TRIES):
        status, said, complained = finish(*arguments, "--out", out, "--force", **environment)
        assert status in (0, 5), (status, said, complained)
        summary = strict_json(out / "summary.json")
        checks = failed(summary)
        assert status == (5 if checks else 0)
        if not checks:
            break
        print(f"tried again, the verdict failed by {', '.join(sorted(checks))}")
    assert not faults(summary), said
    return summary


def failed(summary: dict[str, Any]) -> set[str]:
    """The fidelity checks that do not hold."""
    return {check["name"] for check in summary["fidelity"]["checks"] if not check["ok"]}


def faults(summary: dict[str, Any]) -> set[str]:
    """Those of them that noise of the machine does not explain: late packets are noise where the
    machine was short of time, or other machines took half as much of it as the verdict allows.
    """
    checks = failed(summary)
    [steal] = [check for check in summary["fidelity"]["checks"] if check["name"] == "steal"]
    noisy = checks & NOISE or steal["value"] >= steal["limit"] / 2
    return checks - (NOISE | WITH_NOISE if noisy else NOISE)


def strict_json(path: Path) -> Any:
    """JSON without NaN and Infinity, which are none."""

    def refuse(name: str) -> None:
        raise AssertionError(f"{path} holds {name}, which is no JSON")

    return json.loads(path.read_text(), parse_constant=refuse)


def rows(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV file."""
    with open(path, newline="") as file:
        return list(csv.DictReader(file))
