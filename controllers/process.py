"""Starting, asking and stopping the controller process."""
from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from controllers.drains import drains_file
from controllers.routing import parse_routing, scheduling_of
from emulator.errors import BadInput, EmulatorError, MachineLacks
from topologies.graph import Graph
from topologies.graph_json import graph_to_json

SOCKET_PATH_BYTES = 106  # sun_path of unix(7) less the closing zero and the ~ that it has until it listens
RUN_DIR = Path("/run/emulator")  # in every run's own sandbox
SOCKET = "controller.sock"
LOG_TAIL_LINES = 12
POLL_S = 0.05


@dataclass(frozen=True)
class ControllerState:
    """The controller's books at one moment (`Ledger.summary`).

    `switches` maps a name to what is known of it: ready, connected, connections, openflow, installed,
    rules, rules_expected, groups, groups_expected, ports_missing, ports_down. `errors` are sentences,
    `lacks` those of them that say that a switch has not got what the routing needs.
    `port_events` are {time_s, switch, port, up}; `repairs` {began_s, done_s, switches, changes, avoided},
    from the news to the last switch's word that it holds its new tables; times as time.monotonic() gives
    them.
    `settled`: no change is under way. `adopted`: {done_s, switches, changes} once all switches were read
    after the controller's start and hold their tables; counted are those that had to be told something.
    `scheduling` is what global scheduling did (`SchedulingLoop.summary`), None where there is none.
    """

    ready: bool
    switches: Mapping[str, Mapping[str, object]]
    errors: tuple[str, ...]
    lacks: tuple[str, ...]
    packet_ins: int
    port_events: tuple[Mapping[str, object], ...]
    repairs: tuple[Mapping[str, object], ...] = ()
    settled: bool = True
    adopted: Mapping[str, object] | None = None
    scheduling: Mapping[str, object] | None = None

    @property
    def unready(self) -> list[str]:
        """The switches that do not hold their tables, each with what is amiss."""
        return [f"{name} ({_amiss(switch)})" for name, switch in self.switches.items() if not switch["ready"]]


def _amiss(switch: Mapping[str, object]) -> str:
    if not switch["connected"]:
        return "disconnected" if switch["connections"] else "never connected"
    if not switch["installed"]:
        return "has not confirmed its tables"
    if switch["ports_missing"]:
        return f"has no port {', '.join(map(str, switch['ports_missing']))}"
    return (f"holds {switch['rules']} of {switch['rules_expected']} rules, "
            f"{switch['groups']} of {switch['groups_expected']} groups")


class ControllerProcess:
    """A running controller. Use as a context manager, or call `stop`."""

    def __init__(self, process: subprocess.Popen, status_socket: Path, log: Path):
        self._process, self._socket, self.log = process, status_socket, log

    def __enter__(self) -> ControllerProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def running(self) -> bool:
        """Has the process not ended?"""
        return self._process.poll() is None

    def state(self) -> ControllerState:
        """What the controller knows now; EmulatorError if it has ended or does not answer within 5 s."""
        summary = self.ask({})
        errors = summary["errors"]
        sentences = [error["sentence"] for error in errors]
        if summary["error_count"] > len(errors):
            sentences.append(f"and {summary['error_count'] - len(errors)} errors more.")
        return ControllerState(summary["ready"], summary["switches"], tuple(sentences),
                               tuple(error["sentence"] for error in errors if error["lacks"]),
                               summary["packet_ins"], tuple(summary["port_events"]),
                               tuple(summary["repairs"]), summary["settled"],
                               summary["adopted"], summary["scheduling"])

    def ask(self, request: Mapping[str, object], timeout_s: float = 5.0) -> dict:
        """The answer to a request (`answers.py`); EmulatorError if there is none within timeout_s."""
        self._check_alive()
        try:
            return ask(self._socket, request, timeout_s)
        except OSError as error:
            self._check_alive()
            raise EmulatorError(f"the controller does not answer on {self._socket}: {error}."
                                f"{self._tail()}") from None

    def order(self, request: Mapping[str, object], timeout_s: float) -> str:
        """Give an order (`answers.py`); '' once it is carried out, else in one sentence why it was not."""
        try:
            answer = ask(self._socket, request, timeout_s)
        except (FileNotFoundError, ConnectionRefusedError):
            return "the controller is down, or has not started yet."
        except OSError as error:
            return f"the controller did not say that it is done: {error}."
        return str(answer.get("error", ""))

    def kill(self) -> None:
        """End the process as a crash would, with SIGKILL."""
        self._process.kill()
        self._process.wait(timeout=5)
        self._socket.unlink(missing_ok=True)  # nobody listens there any more

    def restart(self) -> None:
        """Start the process again as it was started, appending to its log; `kill` it before. Links that it
        had drained are drained still. It dies with the thread that calls this.
        """
        self._process = _launch(self._socket.with_suffix(".json"), self.log)

    def wait_ready(self, timeout_s: float) -> ControllerState:
        """Wait until every switch is connected and has been read back as holding exactly its tables.

        Raises MachineLacks with the switch's refusal where one lacks what the routing needs, EmulatorError
        with the errors, the missing switches and the end of the log for all else.
        """
        deadline = time.monotonic() + timeout_s
        state = None
        while time.monotonic() < deadline:
            self._check_alive()
            if self._socket.exists():
                state = self.state()
                if state.lacks:
                    raise MachineLacks(_first(state.lacks, 1))
                if state.errors:
                    raise EmulatorError(_first(state.errors, 5))
                if state.ready:
                    return state
            time.sleep(POLL_S)
        missing = _first(state.unready, 5) if state else "it never came up"
        raise EmulatorError(f"the controller was not ready within {timeout_s:g} s: {missing}.{self._tail()}")

    def stop(self) -> None:
        """End the process, within 7 s at most; may be called twice."""
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(timeout=5)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait(timeout=2)
        self._socket.unlink(missing_ok=True)

    def _check_alive(self) -> None:
        status = self._process.poll()
        if status is not None:
            raise EmulatorError(f"the controller ended with status {status}.{self._tail()}")

    def _tail(self) -> str:
        lines = self.log.read_text(errors="replace").splitlines()[-LOG_TAIL_LINES:]
        return "\n".join([f" The end of its log ({self.log}):", *lines]) if lines else " Its log is empty."


def _first(sentences: Sequence[str], count: int) -> str:
    more = f" (and {len(sentences) - count} more)" if len(sentences) > count else ""
    return " ".join(sentences[:count]) + more


def start_controller(graph: Graph, routing: str, seed: int, run_dir: Path, port: int,
                     rate_bps: float = 0.0) -> ControllerProcess:
    """Start the controller in this network namespace, listening on 127.0.0.1:`port` for the switches.

    `rate_bps` is a host link's, which global scheduling measures elephants by. `run_dir` (existing) receives
    controller.json, controller.log, controller.drained and, while it runs, controller.sock. The process dies with the thread that
    calls this (PR_SET_PDEATHSIG), so call it from the main one. Raises BadInput for an unknown routing, and
    where the path of the socket would be too long.
    """
    parse_routing(routing)
    if scheduling_of(routing) and rate_bps <= 0:
        raise BadInput(f"the routing {routing} needs the rate of a host link, which is not {rate_bps:g}.")
    run_dir = Path(run_dir)
    status_socket, config, log = (run_dir / f"controller.{end}" for end in ("sock", "json", "log"))
    if len(os.fsencode(status_socket)) > SOCKET_PATH_BYTES:
        raise BadInput(f"the path {status_socket} is longer than the {SOCKET_PATH_BYTES} bytes of a Unix "
                       f"socket's; use a shorter directory.")
    drains_file(config).unlink(missing_ok=True)  # of an earlier controller in this directory
    config.write_text(json.dumps({
        "graph": graph_to_json(graph), "routing": routing, "seed": seed, "rate_bps": rate_bps, "port": port,
        "status_socket": str(status_socket), "parent_pid": os.getpid()}))
    return ControllerProcess(_launch(config, log), status_socket, log)


def ask(path: Path, request: Mapping[str, object], timeout_s: float) -> dict:
    """Send a request to the socket at `path` and read the answer; raises OSError, also where whoever answers
    ends before the answer does.
    """
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(timeout_s)
        connection.connect(str(path))
        connection.sendall(json.dumps(request).encode() + b"\n")
        answer = b"".join(iter(lambda: connection.recv(1 << 16), b""))
    try:
        return json.loads(answer)
    except ValueError:
        raise ConnectionError("it hung up before it had answered") from None


def _launch(config: Path, log: Path) -> subprocess.Popen:
    root = Path(__file__).resolve().parents[1]  # where the packages lie, installed or not
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "OSKEN_HUB_TYPE": "native"}
    with log.open("ab") as output:
        return subprocess.Popen([sys.executable, "-m", "controllers.app", str(config)], cwd=root,
                                env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
