"""Starting the agent's process: what goes wrong is told as what it is, and it outlives nobody."""
from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from emulator.asic.agentprocess import start_agent
from emulator.errors import BadInput, EmulatorError

HERE = Path(__file__).parent
FAKE = "fake_datapath:open_fake"
PARENT = """
import os, signal, sys
from pathlib import Path
from emulator.asic.agentprocess import start_agent
agent = start_agent("fake_datapath:open_fake", {}, None, {}, Path(sys.argv[1]))
print(agent.process.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(autouse=True)
def _paths(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", f"{HERE.parents[1]}{os.pathsep}{HERE}")


@pytest.mark.parametrize(("datapath", "listen", "error", "said"), [
    (FAKE, {9: "unix:x"}, BadInput, "^Listening was asked for switch 0000000000000009"),
    (FAKE, {1: "tcp:0.0.0.0:6653"}, BadInput, "^\"tcp:0.0.0.0:6653\" is no address"),
    ("no_such_module:open", {}, EmulatorError, "(?s)ended at its start with status 1.*no_such_module")])
def test_a_bad_start_is_told(tmp_path: Path, datapath: str, listen: dict, error: type, said: str) -> None:
    with pytest.raises(error, match=said) as caught:
        start_agent(datapath, {}, None, listen, tmp_path)
    assert type(caught.value) is error


def test_stopping_leaves_nothing(tmp_path: Path) -> None:
    agent = start_agent(FAKE, {}, None, {1: f"unix:{tmp_path}/s1"}, tmp_path)
    assert (tmp_path / "s1").is_socket() and agent.failure() is None
    agent.stop()
    assert agent.process.returncode == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["agent.json", "agent.log"]


def test_it_dies_with_its_parent(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PARENT, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    pid = int(done.stdout)
    for _ in range(100):
        if not _running(pid):
            return
        time.sleep(0.05)
    pytest.fail(f"the agent, process {pid}, outlives its parent")


def _running(pid: int) -> bool:
    """Neither gone nor waiting to be reaped."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"
