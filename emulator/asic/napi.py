"""Hosts that receive in a kernel thread of their own, as needed where congestion control is a BPF program.

Otherwise a host's TCP runs in whatever process the softirq interrupts, and on some kernels (seen on
6.18) 0.1-2 % of the calls of struct_ops and tracepoint programs are then skipped: DCTCP misses cuts. A
veth receives through NAPI once an XDP program is attached, and NAPI can be given a thread.
"""
from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path

from emulator import netns, syscalls
from emulator.asic.build import object_path
from emulator.asic.objects import open_object, xdp_attach
from emulator.errors import EmulatorError
from emulator.fabric.spec import Port


def thread_receive(ports: Iterable[Port]) -> None:
    """Give each of these host ports a receiving thread; it lives as long as the interface."""
    loaded = open_object(object_path("pass"))
    try:
        for port in ports:
            with netns.entered(port.netns):
                xdp_attach(port.ifindex, loaded.program("pass"))
                _write_threaded(port.name)
    finally:
        loaded.close()  # the interfaces hold the program


def _write_threaded(interface: str) -> None:
    """Through a sysfs of the namespace that this thread is in: a mounted one shows its own only."""
    with tempfile.TemporaryDirectory() as place:
        syscalls.mount("sysfs", place, "sysfs", syscalls.MS_NOSUID | syscalls.MS_NODEV | syscalls.MS_NOEXEC)
        try:
            switch = Path(place, "class/net", interface, "threaded")
            switch.write_text("1")
            if switch.read_text().strip() != "1":
                raise EmulatorError(f"{interface} takes no receiving thread.")
        finally:
            syscalls.unmount(place)
