"""What the machine lacks: exit status 3 and the command that mends it; and readers that go away."""
from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands import CLONE, SMALL, finish

FLOW = ("--workload", "pattern:pair=0-1,bytes=1MB", "--rate", "5mbit")


def lacking(out: Path, *arguments: str, **environment: str) -> str:
    """The sentence of a command that ends with 3 and leaves nothing."""
    status, said, complained = finish(*SMALL, *FLOW, *arguments, "--out", out, **environment)
    assert status == 3 and said == "" and complained.count("\n") == 1, complained
    assert not out.exists()
    return complained


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, whose lack comes first")
def test_open_vswitch(tmp_path: Path) -> None:
    assert "openvswitch-switch" in lacking(tmp_path / "out", "--switch", "ovs", PATH="/nonexistent")


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, whose lack comes first")
def test_a_congestion_control(tmp_path: Path) -> None:
    assert "modprobe tcp_nosuch" in lacking(tmp_path / "out", "--cc", "nosuch")


@pytest.mark.skipif(os.geteuid() == 0, reason="root lacks no root")
def test_root(tmp_path: Path) -> None:
    assert "sudo" in lacking(tmp_path / "out")


def test_mininet() -> None:
    code = ("import sys; sys.modules['mininet'] = None; from emulator.run import main; "
            "sys.exit(main(['--dry-run']))")
    done = subprocess.run([sys.executable, "-c", code], cwd=CLONE, capture_output=True, text=True, timeout=60)
    assert done.returncode == 3 and "mininet" in done.stderr and done.stderr.count("\n") == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to stop being it")
def test_a_dry_run_needs_no_root() -> None:
    code = ("import os, sys; from emulator.run import main; os.setuid(65534); "
            "sys.exit(main([*sys.argv[1:], '--dry-run']))")
    done = subprocess.run([sys.executable, "-c", code, *SMALL, *FLOW], cwd=CLONE, capture_output=True,
                          text=True, timeout=60)
    assert done.returncode == 0 and "ideal time" in done.stdout, done.stderr


def test_a_reader_that_leaves_does_not_change_the_status() -> None:
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "emulator.run", *SMALL, *FLOW, "--dry-run"]
    done = subprocess.run(command, cwd=CLONE, stdout=write, stderr=subprocess.PIPE, text=True, timeout=60)
    os.close(write)
    assert (done.returncode, done.stderr) == (0, "")
