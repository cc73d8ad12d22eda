"""Root tests of the bpf switch run a scene in a sandbox and judge the plain data that it returns."""
from __future__ import annotations

import json
import os
import subprocess
import sys
import time

import pytest

from emulator.asic.build import build
from emulator.asic.libbpf import supported
from emulator.sandbox import run_in_sandbox

_LISTS = (("prog",), ("map",), ("link",), ("struct_ops",))
_GONE_WITHIN_S = 5  # the kernel frees a namespace and what hung on it in its own time


def bpf_objects() -> dict[str, set[int]]:
    """The kernel-wide numbers of all BPF programs, maps, links and struct_ops of this machine."""
    found = {}
    for kind in _LISTS:
        listed = json.loads(subprocess.run(["bpftool", "-j", *kind, "show"], capture_output=True, check=True,
                                           text=True, timeout=20).stdout or "[]")
        found[kind[0]] = {each["id"] for each in listed if isinstance(each, dict) and "id" in each}
    return found


def left_over(before: dict[str, set[int]]) -> dict[str, set[int]]:
    """What is there now and was not before, once the kernel had time to clean up."""
    end_s = time.monotonic() + _GONE_WITHIN_S
    while True:
        left = {kind: now - before[kind] for kind, now in bpf_objects().items() if now - before[kind]}
        if not left or time.monotonic() > end_s:
            return left
        time.sleep(0.1)


@pytest.fixture
def play(tmp_path):
    """play('module', 'function', key=value…): the JSON result of a scene that ran in a fresh sandbox."""
    if os.geteuid() != 0:
        pytest.skip("needs root: builds namespaces and loads BPF programs")
    reason = supported()
    if reason:
        pytest.skip(f"the bpf switch cannot run here: {reason}")
    build()

    def run(module: str, function: str, deadline_s: float = 60, **arguments):
        result = tmp_path / f"{function}.json"
        status = run_in_sandbox([sys.executable, "-m", "tests.asic.scene", module, function, str(result)],
                                arguments, deadline_s=deadline_s, keep=[tmp_path], grace_s=2)
        assert status == 0, f"scene {function} ended with status {status}"
        return json.loads(result.read_text())

    return run
