"""Congestion controls that this kernel may lack: DCTCP and a Swift-like one, as BPF struct_ops.

A registered algorithm is seen by the whole kernel, so it bears a name of its own for each run, is free
for everybody (NON_RESTRICTED, as sockets of hosts' programs need it), and is held by a link that dies
with its process. Kernels before 6.4 have no such links: there `close` unregisters it, and after
kill -9 the name stays until the machine starts anew.
"""
from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from emulator.asic.build import object_path
from emulator.asic.objects import Object
from emulator.errors import BadInput, EmulatorError, MachineLacks

BPF_ALGORITHMS = ("dctcp", "swift")
AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
_PLACEHOLDER = b"emulator_cc_nam"  # RUN_NAME in bpf/cc.h
_LINKS_SINCE = (6, 4)
_SWIFT_SETTINGS = np.dtype([(name, "<u4") for name in (
    "target_us", "scaling_us", "increase_q8", "beta_q10", "max_decrease_q10")])


@dataclass(frozen=True)
class Swift:
    """Parameters of the Swift-like control (Kumar et al., SIGCOMM'20, section 3 and table 1).

    target_s: base target of the round trip, above the base round trip time of the fabric. scaling_s:
    added at a window of one packet, falling with 1/sqrt(window). increase: packets a round trip.
    """

    target_s: float
    scaling_s: float = 0.0
    increase: float = 1.0
    beta: float = 0.8
    max_decrease: float = 0.5


class CongestionControl:
    """An algorithm ready for sockets: `name` is what TCP_CONGESTION takes, `source` 'kernel' or 'bpf'."""

    def __init__(self, name: str, source: str, loaded: Object | None = None) -> None:
        self.name, self.source, self._loaded = name, source, loaded

    @property
    def impossible_windows(self) -> int:
        """ACKs at which a DCTCP window had grown as no TCP's can: the kernel skipped calls (napi.py).

        Always 0 for the kernel's own algorithms, and for swift, which sets its window itself.
        """
        if self._loaded is None or self._loaded.name != "dctcp":
            return 0
        return int(self._loaded.map(".bss").array(np.dtype("<u8"))[0])

    def close(self) -> None:
        """Unregister what `provide` registered; sockets that use it keep it until they close."""
        if self._loaded:
            self._loaded.close()
            self._loaded = None


def provide(algorithm: str, run: str, swift: Swift | None = None) -> CongestionControl:
    """The kernel's own `algorithm` where it has it, else ours, registered as `algorithm`_`run`.

    run: letters and digits that no other run of this machine uses now, at most 9. `swift` is needed for
    swift. Raises MachineLacks for an algorithm that neither has.
    """
    available = AVAILABLE.read_text().split()
    if algorithm in available:
        return CongestionControl(algorithm, "kernel")
    if algorithm not in BPF_ALGORITHMS:
        raise MachineLacks(f"this kernel has no congestion control {algorithm} "
                           f"(it has {', '.join(available)}); try sudo modprobe tcp_{algorithm}.")
    name = f"{algorithm}_{run}"
    if not re.fullmatch("[A-Za-z0-9]+", run) or len(name) > len(_PLACEHOLDER):
        raise BadInput(f'A congestion control cannot be called "{name}"; '
                       f"{len(_PLACEHOLDER)} letters and digits at most.")
    if algorithm == "swift" and swift is None:
        raise BadInput("swift needs a target delay.")
    path = object_path(algorithm)
    if not path.exists():
        raise MachineLacks(f"{path} is not built: python -m emulator.asic.build.")
    image = path.read_bytes()
    if image.count(_PLACEHOLDER) != 1:
        raise EmulatorError(f"{path} does not have its name in one place; rebuild it.")
    linked = kernel_version() >= _LINKS_SINCE
    loaded = Object(algorithm, image.replace(_PLACEHOLDER, name.encode().ljust(len(_PLACEHOLDER), b"\0")),
                    settings=_swift_settings(swift) if algorithm == "swift" else None,
                    linked_struct_ops=algorithm if linked else None)
    loaded.register_struct_ops(algorithm, linked)
    return CongestionControl(name, "bpf", loaded)


def _swift_settings(swift: Swift) -> bytes:
    if not 0 < swift.target_s < 1000 or not 0 <= swift.scaling_s < 1000:
        raise BadInput(f"swift: a target of {swift.target_s} s with scaling {swift.scaling_s} s "
                       "makes no sense.")
    values = np.zeros((), _SWIFT_SETTINGS)
    values["target_us"], values["scaling_us"] = round(swift.target_s * 1e6), round(swift.scaling_s * 1e6)
    values["increase_q8"] = round(swift.increase * 256)
    values["beta_q10"] = round(swift.beta * 1024)
    values["max_decrease_q10"] = round(swift.max_decrease * 1024)
    return values.tobytes()


def kernel_version() -> tuple[int, int]:
    """(6, 18) of '6.18.44-…'."""
    major, minor = re.match(r"(\d+)\.(\d+)", os.uname().release).groups()
    return int(major), int(minor)
