"""Root tests of the bpf switch run a scene in a sandbox and judge the plain data that it returns."""
from __future__ import annotations

import json
import os
import sys

import pytest

from emulator.asic.build import build
from emulator.asic.libbpf import supported
from emulator.sandbox.enter import run_in_sandbox

@pytest.fixture(scope="session")
def play(tmp_path_factory):
    """play('module', 'function', key=value…): the JSON result of a scene that ran in a fresh sandbox."""
    if os.geteuid() != 0:
        pytest.skip("needs root: builds namespaces and loads BPF programs")
    reason = supported()
    if reason:
        pytest.skip(f"the bpf switch cannot run here: {reason}")
    build()

    def run(module: str, function: str, deadline_s: float = 60, **arguments):
        tmp_path = tmp_path_factory.mktemp(function)
        result = tmp_path / "result.json"
        status = run_in_sandbox([sys.executable, "-m", "tests.asic.scene", module, function, str(result)],
                                arguments, deadline_s=deadline_s, keep=[tmp_path], grace_s=2)
        assert status == 0, f"scene {function} ended with status {status}"
        return json.loads(result.read_text())

    return run
