"""A controller of the user's own, outside of the sandbox: `--routing external:HOST:PORT`.

Switches connect to 127.0.0.1 inside, as to ours; `relay.py` carries their bytes to a connection that is made
in the machine's own network namespace. What it does is its own affair: we only know how many packets it was
sent, and whether every host reaches every other one.
"""
from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from controllers.process import SOCKET, ControllerState, ask
from emulator.errors import BadInput, EmulatorError, MachineLacks

PREFIX = "external:"
CONNECT_S = 3.0
START_S = 10.0


def external_address(routing: str) -> tuple[str, int] | None:
    """(host, port) of 'external:HOST:PORT', None for a routing of ours; BadInput for a slip in it."""
    if routing.partition(":")[0] != "external":
        return None
    host, colon, port = routing.removeprefix(PREFIX).rpartition(":")
    if not colon or not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
        raise BadInput(f'the routing "{routing}" is not of the form external:HOST:PORT with a port from 1 to '
                       "65535.")
    return host.strip("[]"), int(port)


def require_listener(address: tuple[str, int]) -> None:
    """Raise MachineLacks where nobody listens at `address`."""
    try:
        socket.create_connection(address, CONNECT_S).close()
    except OSError as error:
        raise MachineLacks(f"no controller listens on {address[0]}:{address[1]} ({error.strerror or error}); "
                           "start yours first.") from None


class ExternalController:
    """The relay to it, with the methods of ControllerProcess that a run uses."""

    def __init__(self, process: subprocess.Popen, run_dir: Path) -> None:
        self._process, self._socket, self.log = process, run_dir / SOCKET, run_dir / "controller.log"

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def state(self) -> ControllerState:
        """What the relay saw: packets sent up. The rest is the controller's own affair."""
        answer = self.ask({}, 5.0)
        return ControllerState(True, {}, (), (), int(answer["packet_ins"]), ())

    def ask(self, request: Mapping[str, object], timeout_s: float = 5.0) -> dict:
        try:
            return ask(self._socket, request, timeout_s)
        except OSError as error:
            raise EmulatorError(f"the relay to the external controller does not answer: {error}. "
                                f"{self.log.read_text(errors='replace')[-500:]}") from None

    def wait_ready(self, timeout_s: float) -> ControllerState:
        """There is nothing to wait for: the gate finds out whether packets arrive."""
        return self.state()

    def stop(self) -> None:
        """End the relay."""
        if self.running:
            self._process.kill()
            self._process.wait(timeout=5)
        self._socket.unlink(missing_ok=True)


def start_relay(address: tuple[str, int], outside: int, run_dir: Path, port: int) -> ExternalController:
    """Relay from 127.0.0.1:`port` here to `address` in the network namespace behind descriptor `outside`."""
    config = json.dumps({"host": address[0], "to_port": address[1], "outside": outside, "port": port,
                         "socket": str(run_dir / SOCKET), "parent_pid": os.getpid()})
    root = Path(__file__).resolve().parents[1]
    with (run_dir / "controller.log").open("ab") as log:
        process = subprocess.Popen([sys.executable, "-m", "controllers.relay", config], cwd=root,
                                   pass_fds=[outside], env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, text=True)
    if process.stdout.readline() != "ready\n":  # it prints or ends
        raise EmulatorError(f"the relay to {address[0]}:{address[1]} did not start: "
                            f"{(run_dir / 'controller.log').read_text(errors='replace')[-500:]}")
    return ExternalController(process, run_dir)
