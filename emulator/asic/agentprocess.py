"""Starting, watching and stopping the agent's process."""
from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from emulator.errors import BadInput, EmulatorError, MachineLacks
from emulator.readable import can_be_read

_LOG_TAIL_LINES = 8


@dataclass(frozen=True)
class AgentProcess:
    """A running agent; it dies with the process that started it."""

    process: subprocess.Popen
    log: Path

    def failure(self) -> str | None:
        """None while it runs, else a sentence with the end of its log. Forwarding goes on without it."""
        status = self.process.poll()
        if status is None:
            return None
        how = f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"
        said = self.tail()
        return (f"The OpenFlow agent {how}; the switches forwarded on with the tables that they had."
                + (f" The end of its log:\n{said}" if said else ""))

    def tail(self, lines: int = _LOG_TAIL_LINES) -> str:
        """The end of its log."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def stop(self, timeout_s: float = 3.0) -> None:
        """End it, by force after `timeout_s`."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(timeout_s)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.process.stdout.close()


def start_agent(datapath: str, argument: object, controller: tuple[str, int] | None,
                listen: Mapping[int, str], run_dir: Path, timeout_s: float = 20.0) -> AgentProcess:
    """Start the agent in the caller's namespaces and wait until its sockets listen.

    `datapath` names the function that makes the Datapath there, 'module:function', and `argument` is
    the JSON value it gets. `agent.json` and `agent.log` are written into `run_dir`.
    Raises what the agent raised at its start (BadInput, MachineLacks), or EmulatorError with the end
    of the log if it fails in another way or is not up within `timeout_s`.
    """
    config, log = run_dir / "agent.json", run_dir / "agent.log"
    config.write_text(json.dumps({"datapath": datapath, "argument": argument, "controller": controller,
                                  "listen": dict(listen), "parent": os.getpid()}))
    with log.open("w") as sink:
        process = subprocess.Popen([sys.executable, "-m", "emulator.asic.agent", str(config)],
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=sink)
    agent = AgentProcess(process, log)
    readable = can_be_read(process.stdout, timeout_s)
    if readable and process.stdout.readline() == b"ready\n":
        return agent
    status = process.wait() if readable else None  # an end of file: it has ended
    agent.stop()
    for kind in (BadInput, MachineLacks):
        if status == kind.exit_status:
            raise kind(agent.tail(1))
    how = f"ended at its start with status {status}" if readable else f"was not up within {timeout_s:g} s"
    raise EmulatorError(f"The OpenFlow agent {how}. The end of {log}:\n{agent.tail()}")
