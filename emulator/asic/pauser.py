"""The process that pauses lossless classes: `python -m emulator.asic.pauser CONFIG.json STATISTICS`.

A thousand times a second it looks how much each ingress port has in the queues of its switch (pausing.py) and
shuts or opens the gate of the class at the other end of that link, be it a switch's port or a host's. A real
switch sends a frame for that; here the gate is set directly, some 15 us later. What it did stands in
STATISTICS, a file that the run maps (pauserprocess.py).
"""
from __future__ import annotations

import gc
import json
import signal
import socket
import sys
from pathlib import Path

import numpy as np

from emulator import netns
from emulator.asic.chip import Chip, PortSite, SwitchSite, open_chip
from emulator.asic.gate import KICK, Gate
from emulator.asic.layout import INGRESS_PORTS, MAX_CLASSES
from emulator.asic.pauserprocess import LATE_BINS, LATE_BIN_S, LOOP, PAUSES
from emulator.asic.pausing import POLL_S, Holdings
from emulator.errors import EmulatorError
from emulator.telemetry.ticks import die_with_parent, now_ns, sleep_until, wake_sharply

_TRUE_EVERY = 10  # looks between two readings of the kernel's own depth while something is paused


class HostGate:
    """The gates of one host's port: as Chip.pause and resume, in the host's namespace."""

    def __init__(self, port: dict) -> None:
        self._port = port
        with netns.entered(port["netns"]):
            self._gate = Gate()
            self._wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
            self._wire.bind((port["name"], 0))

    def pause(self, ifindex: int, number: int) -> None:
        self._gate.pause(ifindex, number, self._port["limits"][number], self._port["frame_bytes"])

    def resume(self, ifindex: int, number: int) -> bool:
        """True: it always takes a frame to start the queue, since nobody here knows whether it holds any."""
        self._gate.resume(ifindex, number, self._port["limits"][number])
        self._wire.send(KICK)
        return True


class Watcher:
    """One lossless class over all switches."""

    def __init__(self, chip: Chip, number: int, config: dict, statistics: np.ndarray) -> None:
        self._chip, self._number, self._statistics = chip, number, statistics
        self._links = config["links"]
        self._limits = [(each["xoff_bytes"], each["xon_bytes"]) for each in config["thresholds"][str(number)]]
        self._gates = [HostGate(link["peer"]) if link["peer"]["netns"] else chip for link in self._links]
        self._ifindex = [link["ifindex"] for link in self._links]
        self._switch = np.array([link["switch"] for link in self._links])
        self._ingress = {(link["switch"], link["number"]): place for place, link in enumerate(self._links)}
        self._rows = np.array([ifindex * chip.classes + number for ifindex in self._ifindex])
        self._crossed = np.array([ifindex * MAX_CLASSES + number for ifindex in self._ifindex])
        self._crossings = chip.maps["crossings"].array(np.dtype("<u8")).reshape(-1, INGRESS_PORTS)
        self._last = self._crossings[self._crossed].astype(np.int64)
        self._holdings: dict[int, Holdings] = {}
        self._paused: set[int] = set()
        self._looks = 0

    def look(self) -> None:
        """Read the queues once; pause and resume what that says."""
        self._looks += 1
        depths = self._chip.queues["depth_bytes"][self._rows].astype(np.int64)
        arrived = self._crossings[self._crossed].astype(np.int64)
        if self._paused and self._looks % _TRUE_EVERY == 0:
            self._true_depths(depths)
        held = np.zeros((len(self._limits), INGRESS_PORTS))
        for place in np.flatnonzero(depths):
            holdings = self._holdings.get(place)
            if holdings is None:
                holdings = self._holdings[place] = Holdings(self._last[place])
            held[self._switch[place]] += holdings.held(arrived[place], int(depths[place]))
        for place in [place for place in self._holdings if not depths[place]]:
            del self._holdings[place]
        self._last = arrived
        for (switch, port), place in self._ingress.items() if held.any() or self._paused else ():
            xoff, xon = self._limits[switch]
            if held[switch, port] > xoff and place not in self._paused:
                self._pause(place)
            elif place in self._paused and held[switch, port] <= xon:
                self._resume(place)

    def _true_depths(self, depths: np.ndarray) -> None:
        """The programs' note of a depth may be old where a tracepoint was skipped and nothing comes now."""
        for place in np.flatnonzero(depths):
            self._chip.observe(self._ifindex[place])
            depths[place] = int(self._chip.queue(self._ifindex[place], self._number)["held_bytes"])

    def _pause(self, place: int) -> None:
        self._gates[place].pause(self._links[place]["peer"]["ifindex"], self._number)
        self._paused.add(place)
        entry = self._statistics[place, self._number]
        entry["pauses"] += 1
        entry["since_ns"] = now_ns()

    def _resume(self, place: int) -> None:
        kicked = self._gates[place].resume(self._links[place]["peer"]["ifindex"], self._number)
        self._paused.discard(place)
        entry = self._statistics[place, self._number]
        lasted = now_ns() - int(entry["since_ns"])
        entry["since_ns"] = 0  # first: who reads meanwhile must not count this pause twice
        entry["paused_ns"] += lasted
        entry["longest_ns"] = max(int(entry["longest_ns"]), lasted)
        entry["kicks"] += int(kicked)

    def release(self) -> None:
        """Let everything go on."""
        for place in sorted(self._paused):
            self._resume(place)


def main(argv: list[str]) -> int:
    config = json.loads(Path(argv[0]).read_text())
    die_with_parent(config["parent"])
    stop: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _frame: stop.append(number))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C is for the run, which then stops us
    try:
        chip = open_chip([SwitchSite(site["dpid"], site["seed"], tuple(
            PortSite(**{**port, "mac": bytes.fromhex(port["mac"])}) for port in site["ports"]))
            for site in config["switches"]], config["handles"])
        size = len(config["links"]) * MAX_CLASSES
        loop = np.memmap(argv[1], LOOP, "r+", 0, (1,))
        statistics = np.memmap(argv[1], PAUSES, "r+", LOOP.itemsize, (size,)).reshape(-1, MAX_CLASSES)
        watchers = [Watcher(chip, int(number), config, statistics) for number in config["thresholds"]]
        wake_sharply()
        gc.collect()
        gc.disable()
        print("ready", flush=True)
        _watch(watchers, loop, stop)
        for watcher in watchers:
            watcher.release()
    except EmulatorError as error:
        print(error, file=sys.stderr)
        return error.exit_status
    return 0


def _watch(watchers: list[Watcher], loop: np.ndarray, stop: list[int]) -> None:
    """Look every POLL_S at absolute times until told to stop; looks that were missed count as late."""
    period_ns, due_ns = round(POLL_S * 1e9), now_ns()
    while not stop:
        due_ns += period_ns
        sleep_until(due_ns)
        late_ns = now_ns() - due_ns
        for watcher in watchers:
            watcher.look()
        missed = late_ns // period_ns
        loop["late"][0, min(int(late_ns / LATE_BIN_S / 1e9), LATE_BINS - 1)] += 1 + missed
        loop["late_max_ns"][0] = max(int(loop["late_max_ns"][0]), late_ns)
        due_ns += missed * period_ns


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
