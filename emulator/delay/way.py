"""Which of the two makes the delay of links on this machine, netem or the wire process, and why."""
from __future__ import annotations

import errno
import platform
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from emulator import machine, syscalls
from emulator.asic.build import object_path
from emulator.asic.libbpf import supported
from emulator.delay.build import require_relay
from emulator.delay.netem import Netem, probe_message
from emulator.delay.record import WAYS
from emulator.delay.relay import Relay
from emulator.fabric.spec import FabricSpec, Port
from emulator.netlink import Netlink, NetlinkError
from emulator.units import show_time

COARSEST_TIMER_S = 1e-6
"""With high-resolution timers the kernel tells 1 ns, without them one tick (kernel/time/hrtimer.c)."""


@dataclass(frozen=True)
class Way:
    """`name`: one of WAYS. `why`: why not netem, else empty."""

    name: str
    why: str = ""

    def __str__(self) -> str:
        return WAYS[self.name] + (f", because {self.why}" if self.why else "")


def choose() -> Way:
    """netem where the kernel has it and its lateness can be measured, else the relay. Needs root.

    To ask for netem makes the kernel load its module where there is one; it is asked in a namespace that
    ends with the question.
    """
    why = _netem_lacks()
    return Way("relay", why) if why else Way("netem")


def require(way: Way) -> None:
    """Raise MachineLacks where `way` cannot work here."""
    if way.name == "relay":
        require_relay()
        machine.require_real_time()


def start(way: Way, spec: FabricSpec, ports: Iterable[Port]) -> Netem | Relay:
    """Delay the links of a fabric that stands."""
    return Netem(spec, ports) if way.name == Netem.WAY else Relay(spec, ports)


def _netem_lacks() -> str:
    """Why netem cannot be used, as half a sentence; empty where it can."""
    tick_s = time.clock_getres(time.CLOCK_MONOTONIC)
    if tick_s > COARSEST_TIMER_S:
        return f"netem needs high-resolution timers, and this kernel's have {show_time(tick_s)}"
    if not object_path("delay").exists():
        return "the program that measures netem is not compiled; run: python -m emulator.asic.build"
    unmeasured = supported()
    if unmeasured:
        return f"netem's lateness cannot be measured here: {unmeasured.rstrip('.')}"
    # in a thread, because a namespace belongs to a thread and this one shall stay where it is
    with ThreadPoolExecutor(max_workers=1) as thread:
        return thread.submit(_refusal).result()


def _refusal() -> str:
    """What this kernel answers to a netem, as half a sentence; moves the thread to a namespace of its own."""
    syscalls.unshare(syscalls.CLONE_NEWNET)
    with Netlink() as netlink:
        try:
            netlink.batch([probe_message()])
        except NetlinkError as error:
            if error.errno == errno.ENOENT:
                return f"this kernel ({platform.release()}) has no netem"
            return f"this kernel ({platform.release()}) refuses netem: {error.strerror}"
    return ""
