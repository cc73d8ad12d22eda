"""Starting, reading and stopping the process that pauses lossless classes (pauser.py)."""
from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from emulator.asic.layout import MAX_CLASSES
from emulator.asic.pausing import POLL_S, Thresholds
from emulator.asic.queueing import Queueing, limits
from emulator.errors import EmulatorError
from emulator.fabric.build import Fabric
from emulator.fabric.spec import ETHERNET_BYTES, Port
from emulator.readable import can_be_read
from emulator.telemetry.pauses import PauseRecord, PortPauses
from emulator.telemetry.ticks import now_ns

LATE_BINS, LATE_BIN_S = 256, 0.000125
# since_ns: when the pause began that stands, 0 where none does; the other times are of those that ended
PAUSES = np.dtype([(name, "<u8") for name in ("pauses", "paused_ns", "longest_ns", "since_ns", "kicks")])
LOOP = np.dtype([("late", "<u8", LATE_BINS), ("late_max_ns", "<u8")])
_START_S, _STOP_S = 20.0, 3.0


class Pauser:
    """The running process and its statistics; it dies with the process that started it."""

    def __init__(self, process: subprocess.Popen, log: Path, ports: list[Port], file: Path) -> None:
        self._process, self._log, self._ports = process, log, ports
        self._loop = np.memmap(file, LOOP, "r", 0, (1,))
        self._pauses = np.memmap(file, PAUSES, "r", LOOP.itemsize, (len(ports) * MAX_CLASSES,))

    def read(self) -> tuple[np.ndarray, np.ndarray]:
        """(pauses by port and class, lateness histogram) now; two of them make a record.

        A pause that has not ended counts up to this moment: in a deadlock (a circle of ports that wait for
        each other) none ever ends.
        """
        pauses = self._pauses.reshape(-1, MAX_CLASSES).copy()
        standing = pauses["since_ns"] > 0
        lasted_ns = np.where(standing, now_ns() - pauses["since_ns"].astype(np.int64), 0).astype(np.uint64)
        pauses["paused_ns"] += lasted_ns
        pauses["longest_ns"] = np.maximum(pauses["longest_ns"], lasted_ns)
        return pauses, self._loop[0].copy()

    def record(self, before: tuple[np.ndarray, np.ndarray]) -> PauseRecord:
        """What happened since `before` was read; the longest pause and the worst lateness are of all time."""
        (pauses, loop), (early, early_loop) = self.read(), before
        rows = [PortPauses(port.name, number, int(now["pauses"] - then["pauses"]),
                           float(now["paused_ns"] - then["paused_ns"]) * 1e-9,
                           float(now["longest_ns"]) * 1e-9, int(now["kicks"] - then["kicks"]))
                for port, columns, befores in zip(self._ports, pauses, early)
                for number, (now, then) in enumerate(zip(columns, befores))
                if now["pauses"] > then["pauses"] or now["paused_ns"] > then["paused_ns"]]
        late = np.cumsum(loop["late"].astype(np.int64) - early_loop["late"].astype(np.int64))
        p99 = LATE_BIN_S * (int(np.searchsorted(late, 0.99 * late[-1])) + 1) if late[-1] else 0.0
        return PauseRecord(tuple(rows), POLL_S, p99, float(loop["late_max_ns"]) * 1e-9)

    def failure(self) -> str | None:
        """None while it runs, else a sentence with the end of its log."""
        status = self._process.poll()
        if status is None:
            return None
        return (f"The process that pauses lossless classes ended with status {status}; since then they were "
                f"not lossless. {_tail(self._log)}")

    def stop(self) -> None:
        """Resume everything and end it, by force after a few seconds."""
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._process.stdout.close()


def start_pauser(fabric: Fabric, queueing: Queueing, by_class: Mapping[int, list[Thresholds]], argument: dict,
                 run_dir: Path) -> Pauser:
    """Start it in the caller's namespaces and wait until it watches.

    by_class: class -> thresholds of each switch in the graph's order. argument: the handles and sites of the
    chip, as JSON. Raises EmulatorError with the end of its log where it does not come up.
    """
    index = {switch.name: place for place, switch in enumerate(fabric.spec.graph.switches)}
    upstream = [fabric.port[port.peer] for port in fabric.switch_ports]
    links = [{"switch": index[port.node], "number": port.number, "ifindex": port.ifindex,
              "peer": _peer(peer, queueing, fabric.spec.mtu + ETHERNET_BYTES)}
             for port, peer in zip(fabric.switch_ports, upstream)]
    config, log, file = run_dir / "pauser.json", run_dir / "pauser.log", run_dir / "pauses"
    config.write_text(json.dumps({**argument, "parent": os.getpid(), "links": links, "thresholds": {
        number: [{"xoff_bytes": each.xoff_bytes, "xon_bytes": each.xon_bytes} for each in switches]
        for number, switches in by_class.items()}}))
    file.write_bytes(bytes(LOOP.itemsize + len(links) * MAX_CLASSES * PAUSES.itemsize))
    with log.open("w") as sink:
        process = subprocess.Popen([sys.executable, "-m", "emulator.asic.pauser", str(config), str(file)],
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=sink)
    pauser = Pauser(process, log, upstream, file)
    readable = can_be_read(process.stdout, _START_S)
    if readable and process.stdout.readline() == b"ready\n":
        return pauser
    pauser.stop()
    raise EmulatorError(f"The process that pauses lossless classes did not start. {_tail(log)}")


def _peer(port: Port, queueing: Queueing, frame_bytes: int) -> dict:
    return {"name": port.name, "netns": port.netns, "ifindex": port.ifindex, "frame_bytes": frame_bytes,
            "limits": limits(queueing, port.limit_bytes, frame_bytes)}


def _tail(log: Path) -> str:
    return f"The end of {log}:\n" + "\n".join(log.read_text(errors="replace").splitlines()[-8:])
