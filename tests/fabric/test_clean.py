"""A whole fabric that is killed, or that runs beside another, leaves and sees nothing."""
from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
import uuid

import pytest

from emulator import machine
from emulator.sandbox.enter import ROOT
from tests.traces import gone, state

pytestmark = [pytest.mark.root,
              pytest.mark.skipif(os.geteuid() != 0, reason="needs root: builds fabrics"),
              pytest.mark.skipif(machine._which("ovs-vswitchd") is None, reason="needs Open vSwitch")]


def start(scene: str, result, token: str, **arguments) -> subprocess.Popen:
    """The process that a user would start, in which a scene with a fabric runs."""
    keep = str(result.parent)
    code = ("import sys\nfrom emulator.sandbox.enter import run_in_sandbox\n"
            f"argv = [sys.executable, '-m', 'tests.fabric.scenes_ovs', {scene!r}, {str(result)!r}]\n"
            f"sys.exit(run_in_sandbox(argv, {arguments | {'tmp': keep}!r}, deadline_s=50, keep=[{keep!r}]))")
    return subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, env={**os.environ, "TOKEN": token})


def test_kill_9_while_building_and_running_leaves_nothing(tmp_path):
    before, seed = state(), random.randrange(10**6)
    chance = random.Random(seed)
    tops = []
    for number in range(5):
        token = f"k{uuid.uuid4().hex[:8]}"
        tops.append((start("waiting", tmp_path / f"{number}.json", token), token))
        time.sleep(chance.uniform(0.1, 1.2))
        tops[-1][0].kill()
    for top, token in tops:
        top.wait(10)
        assert gone(token) == [], f"seed {seed}"
    assert state() == before, f"seed {seed}"


def test_two_fabrics_run_side_by_side(tmp_path):
    before = state()
    tokens = [f"k{uuid.uuid4().hex[:8]}" for _ in range(2)]
    tops = [start("proven", tmp_path / f"{token}.json", token) for token in tokens]
    assert [top.wait(45) for top in tops] == [0, 0]
    for token in tokens:
        out = json.loads((tmp_path / f"{token}.json").read_text())
        assert out["proof"]["tcp"] == 4 and out["faults"] == []
        assert gone(token) == []
    assert state() == before
