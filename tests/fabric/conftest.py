"""Root tests run a scene, a function of a scenes module, in a sandbox and judge what it returns."""
from __future__ import annotations

import json
import os
import sys

import pytest

from emulator.sandbox.enter import run_in_sandbox


@pytest.fixture
def play(tmp_path):
    """play('name', 'module', key=value…): the JSON result of a scene, which ran in a fresh sandbox."""
    if os.geteuid() != 0:
        pytest.skip("needs root: builds namespaces, links and switches")

    def run(scene: str, module: str = "scenes", **arguments):
        result = tmp_path / f"{scene}.json"
        arguments["tmp"] = str(tmp_path)
        argv = [sys.executable, "-m", f"tests.fabric.{module}", scene, str(result)]
        status = run_in_sandbox(argv, arguments, deadline_s=60, keep=[tmp_path], grace_s=2)
        assert status == 0, f"scene {scene} ended with status {status}"
        return json.loads(result.read_text())

    return run
