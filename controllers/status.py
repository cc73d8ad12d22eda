"""`python -m controllers.status`: what the controller of a run knows, and orders to drain, from outside.

A run lives in namespaces of its own; its controller's socket is reached through /proc/PID/root of the process
inside (proc(5)), which takes root. Nothing of the run is changed but by drain and undrain.
"""
from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from rich.console import Group

from controllers.process import RUN_DIR, SOCKET, ask
from emulator.errors import BadInput, EmulatorError, MachineLacks
from emulator.report.tables import show, table
from emulator.units import show_rate

INSIDE = b"emulator.inside"
MOVES_SHOWN = 20
ANSWER_S, DRAIN_S = 10.0, 60.0
WATCH_S, WATCHES = 2.0, 43200  # a day, whoever forgot the window


@dataclass(frozen=True)
class Running:
    """A run: the process in its sandbox, and the folder of its results."""

    pid: int
    folder: str

    @property
    def socket(self) -> Path:
        return Path(f"/proc/{self.pid}/root{RUN_DIR}/{SOCKET}")


def running() -> list[Running]:
    """All runs of this machine, by process id."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
        except OSError:  # it ended while we looked
            continue
        if INSIDE in words and len(words) > words.index(INSIDE) + 2:
            found.append(Running(int(process.name), words[words.index(INSIDE) + 2].decode(errors="replace")))
    return sorted(found, key=lambda run: run.pid)


def chosen(runs: Sequence[Running], pid: int | None) -> Running:
    """The run that is meant; BadInput where that is not clear, MachineLacks where there is none."""
    if not runs:
        raise MachineLacks("no run is going on; start one with: sudo python -m emulator.run.")
    listed = ", ".join(f"{run.pid} ({run.folder})" for run in runs)
    if pid is None and len(runs) > 1:
        raise BadInput(f"{len(runs)} runs are going on; choose one with --run PID: {listed}.")
    for run in runs:
        if pid in (None, run.pid):
            return run
    raise BadInput(f"there is no run {pid}; there is {listed}.")


def _ask(run: Running, request: dict[str, object], timeout_s: float) -> dict[str, Any]:
    try:
        answer = ask(run.socket, request, timeout_s)
    except (FileNotFoundError, ConnectionRefusedError):
        raise MachineLacks(f"the controller of run {run.pid} does not listen: it has not started yet, or is "
                           "down.") from None
    except OSError as error:
        raise EmulatorError(f"the controller of run {run.pid} does not answer: {error}.") from None
    if "error" in answer:
        raise BadInput(str(answer["error"]))
    return answer


def describe(status: dict[str, Any]) -> Group:
    """The status as tables: switches with their groups, links with their load, what was moved."""
    topology, switches = status["topology"], status["switches"]
    title = (f"{topology['name']}: {topology['hosts']} hosts, {len(switches)} switches, "
             f"{len(topology['links'])} links")
    made = table(title, "switch", "OpenFlow", "state", "rules", "groups", "ports down")
    for name, switch in switches.items():
        state = "ready" if switch["ready"] else "changing" if switch["connected"] else "disconnected"
        made.add_row(name, switch["openflow"] or "-", state, str(switch["rules"]), str(switch["groups"]),
                     " ".join(map(str, switch["ports_down"])) or "-")
    links = table("Links", "link", "tier", "state", "load up", "load down")
    for link, (up, down) in zip(topology["links"], status["traffic"], strict=True):
        links.add_row(link["link"], link["tier"], _state(link, status), _load(up), _load(down))
    moves = table("Changes since the start", "when", "took", "switches", "rules and groups", "links avoided")
    for repair in status["repairs"]:
        moves.add_row(f"{status['now_s'] - repair['began_s']:.1f} s ago",
                      f"{1000 * (repair['done_s'] - repair['began_s']):.1f} ms", str(repair["switches"]),
                      str(repair["changes"]), " ".join(repair["avoided"]) or "none")
    errors = [error["sentence"] for error in status["errors"]]
    changed = moves if status["repairs"] else "No change of routes since the start."
    return Group(made, links, changed, *_scheduled(status), *errors)


def _scheduled(status: dict[str, Any]) -> list[Any]:
    """What global scheduling moved, the latest first."""
    books = status.get("scheduling")
    if not books:
        return []
    title = (f"Elephants ({books['scheduler']}): {books['placed']} placed, {books['moved']} moved, "
             f"{books['moved_back']} of them back, {books['released']} released")
    made = table(title, "when", "pair", "", "over")
    for move in books["moves"][:-1 - MOVES_SHOWN:-1]:
        ago_s, pair = status["now_s"] - move["time_s"], f"{move['source']} to {move['destination']}"
        made.add_row(f"{ago_s:.1f} s ago", pair, move["what"], " ".join(move["over"]))
    return [made]


def _state(link: dict[str, Any], status: dict[str, Any]) -> str:
    down = any(link[f"{end}_port"] in status["switches"][link[end]]["ports_down"]
               for end in ("a", "b") if link[end] in status["switches"])
    return "down" if down else "drained" if link["link"] in status["drained"] else "up"


def _load(rate_bps: float | None) -> str:
    return "-" if rate_bps is None else show_rate(rate_bps)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise BadInput(f"{message[0].upper()}{message[1:]}; --help lists the options.")


def parser() -> argparse.ArgumentParser:
    made = _Parser(prog="python -m controllers.status", description=(
        "Look at the controller of a run, or give it orders. Needs root. Without an order it shows topology, "
        "links and their load, groups, changes."))
    made.add_argument("order", nargs="?", choices=("drain", "undrain"),
                      help="lead all traffic around a link or switch that still works, or give it back")
    made.add_argument("name", nargs="?", metavar="LINK|SWITCH", help="such as l1-s1 or s1")
    made.add_argument("--run", type=int, metavar="PID", help="which run, where there are several")
    made.add_argument("--json", action="store_true", help="as JSON, for programs")
    made.add_argument("--watch", action="store_true", help=f"again every {WATCH_S:g} s, until Ctrl-C")
    return made


def main(argv: list[str] | None = None) -> int:
    """Exit status: 0, or that of the error, which is one sentence on stderr."""
    try:
        return _main(parser().parse_args(argv))
    except EmulatorError as error:
        print(f"status: {error}", file=sys.stderr)
        return error.exit_status
    except KeyboardInterrupt:
        return 130


def _main(asked: argparse.Namespace) -> int:
    if bool(asked.order) != bool(asked.name):
        raise BadInput("An order needs a link or switch: drain l1-s1.")
    if os.geteuid() != 0:
        raise MachineLacks("a run's namespaces are open to root alone; run the same command with sudo.")
    run = chosen(running(), asked.run)
    if asked.order:
        done = _ask(run, {"ask": asked.order, "name": asked.name}, DRAIN_S)
        words = "carries no traffic any more" if asked.order == "drain" else "carries traffic again"
        print(json.dumps(done) if asked.json else
              f"{asked.name} {words}: routes changed after {1000 * done['moved_s']:.0f} ms, done after "
              f"{1000 * done['done_s']:.0f} ms.")
        return 0
    for _ in range(WATCHES if asked.watch else 1):
        status = _ask(run, {"ask": "status"}, ANSWER_S) | {"now_s": time.monotonic()}
        if asked.json:
            print(json.dumps(status), flush=True)
        else:
            show(describe(status))
        if asked.watch:
            time.sleep(WATCH_S)
    return 0


if __name__ == "__main__":
    sys.exit(main())
