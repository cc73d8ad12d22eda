"""Packets of chosen ports as files for Wireshark: one bounded tcpdump a port, started before the traffic."""
from __future__ import annotations

import re
import signal
import subprocess
import time
from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from emulator import machine, netns
from emulator.errors import BadInput, EmulatorError, nearest
from emulator.fabric.build import Fabric
from emulator.fabric.spec import ETHERNET_BYTES, Port

_RECORD_BYTES = 16  # a packet's header in the file (pcap-savefile(5))
_BUFFER_KIB = 4096
_READY_S = 10.0
_BLOCK_S = 1.2  # tcpdump asks for whole blocks, filled or a second old: cheaper than a wake-up a packet


@dataclass(frozen=True)
class Captured:
    """What a capture got: its file, packets written, packets the kernel dropped before tcpdump saw them,
    and whether it ended because the file had reached its bound.
    """

    port: str
    file: Path
    packets: int
    dropped: int
    full: bool


class Capture:
    """A running capture of one port."""

    def __init__(self, port: Port, file: Path, mtu: int, limit_bytes: int) -> None:
        frame = mtu + ETHERNET_BYTES
        self.port, self.file = port, file
        self._count = max(1, limit_bytes // (frame + _RECORD_BYTES))
        # tcpdump writes to a file that we opened: as another user or confined it could not open it itself
        with open(file, "wb") as out, netns.entered(port.netns) if port.netns else nullcontext():
            self._process = subprocess.Popen(
                [machine.program("tcpdump"), "-n", "-p", "-U", "-i", port.name, "-s", str(frame),
                 "-B", str(_BUFFER_KIB), "-c", str(self._count), "-Z", "root", "-w", "-"],
                stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.PIPE)
        self._await_header()

    def _await_header(self) -> None:
        """tcpdump writes the file's header once it listens; packets before that would be missed."""
        end_s = time.monotonic() + _READY_S
        while self.file.stat().st_size == 0:
            if self._process.poll() is not None:
                raise EmulatorError(f"The capture of {self.port.name} ended at once: "
                                    f"{self._process.stderr.read().decode(errors='replace').strip()}")
            if time.monotonic() > end_s:
                self._process.kill()
                raise EmulatorError(f"The capture of {self.port.name} did not start within {_READY_S:g} s.")
            time.sleep(0.01)

    def end(self) -> None:
        """End tcpdump and forget what it wrote."""
        self._process.kill()
        self._process.communicate()

    def finish(self) -> Captured:
        """Tell tcpdump to end and report what it got."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        try:
            said = self._process.communicate(timeout=_READY_S)[1].decode(errors="replace")
        except subprocess.TimeoutExpired:
            self._process.kill()
            said = self._process.communicate()[1].decode(errors="replace")
        packets, dropped = (int(match[1]) if (match := re.search(rf"(\d+) packets? {word}", said)) else 0
                            for word in ("captured", "dropped by kernel"))
        return Captured(self.port.name, self.file, packets, dropped, packets >= self._count)


def check_ports(fabric_ports: Iterable[str], wanted: Iterable[str]) -> None:
    """Raise BadInput for a port that the fabric has not, with the nearest name."""
    known = set(fabric_ports)
    for name in wanted:
        if name not in known:
            raise BadInput(f'There is no port "{name}" to capture{nearest(name, known)}.')


def capture(fabric: Fabric, names: Iterable[str], directory: Path,
            limit_bytes: int = 100_000_000) -> list[Capture]:
    """Start a capture of each named port into `directory`/NAME.pcap, at most `limit_bytes` long each.

    Returns once all of them listen. Raises BadInput for an unknown port, MachineLacks without tcpdump.
    """
    names = list(dict.fromkeys(names))
    check_ports(fabric.port, names)
    started: list[Capture] = []
    try:
        for name in names:
            file = directory / f"{name}.pcap"
            started.append(Capture(fabric.port[name], file, fabric.spec.mtu, limit_bytes))
    except EmulatorError:
        for running in started:
            running.end()
        raise
    return started


def stop(captures: Iterable[Capture]) -> list[Captured]:
    """End captures, after the second that packets may take from the kernel to tcpdump, and report."""
    captures = list(captures)
    if captures:
        time.sleep(_BLOCK_S)
    return [running.finish() for running in captures]
