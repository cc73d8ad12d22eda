"""The two daemons of Open vSwitch as children of this process, in the sandbox's private run directory."""
from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from emulator import machine
from emulator.errors import EmulatorError, MachineLacks
from emulator.fabric.jsonrpc import JsonRpc

RUN = Path("/run/openvswitch")
DATABASE, SWITCH = "ovsdb-server", "ovs-vswitchd"
SCHEMAS = (Path("/usr/share/openvswitch/vswitch.ovsschema"),
           Path("/usr/local/share/openvswitch/vswitch.ovsschema"))
_KERNEL_READY_S = 10.0  # a kernel datapath made sooner after boot never gets handler threads
_LOG_LINES = 12


def start_database(processes: list[subprocess.Popen]) -> JsonRpc:
    """An empty database and a connection to its server, which is added to `processes`."""
    machine.require_programs(machine.OVS_PROGRAMS)
    schema = next((path for path in SCHEMAS if path.exists()), None)
    if schema is None:
        raise MachineLacks(f"Open vSwitch's schema is not at {SCHEMAS[0]}; reinstall it with: "
                           "sudo apt-get install --reinstall openvswitch-switch")
    RUN.mkdir(exist_ok=True)
    made = subprocess.run([machine.program("ovsdb-tool"), "create", RUN / "conf.db", schema],
                          capture_output=True, text=True, timeout=30)
    if made.returncode:
        raise EmulatorError(f"Open vSwitch's database could not be created: {made.stderr.strip()}")
    processes.append(_daemon(DATABASE, str(RUN / "conf.db"), f"--remote=punix:{RUN}/db.sock"))
    return _connect(f"{RUN}/db.sock", processes)


def start_switch(processes: list[subprocess.Popen]) -> JsonRpc:
    """ovs-vswitchd and a connection to its control socket; the daemon is added to `processes`."""
    processes.append(_daemon(SWITCH, f"unix:{RUN}/db.sock"))
    return _connect(f"{RUN}/{SWITCH}.ctl", processes)


def _daemon(name: str, *arguments: str) -> subprocess.Popen:
    # not detached: it stays our child, so that its end is seen at once
    return subprocess.Popen(
        [machine.program(name), *arguments, f"--unixctl={RUN}/{name}.ctl", f"--log-file={RUN}/{name}.log",
         f"--pidfile={RUN}/{name}.pid", "--no-chdir", "-vconsole:off", "-vsyslog:off"],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _connect(path: str, processes: list[subprocess.Popen]) -> JsonRpc:
    wait_until(lambda: Path(path).exists(), processes, 20.0, f"Nobody opened {path}")
    return JsonRpc(path)


def wait_until(true: Callable[[], bool], processes: Sequence[subprocess.Popen], timeout_s: float,
               complaint: str) -> None:
    """Wait until `true()`; raises EmulatorError when a daemon ends meanwhile or the time is over."""
    end_s = time.monotonic() + timeout_s
    while not true():
        for process in processes:
            check_alive(process)
        if time.monotonic() > end_s:
            raise EmulatorError(f"{complaint} within {timeout_s:g} s.")
        time.sleep(0.01)


def check_alive(process: subprocess.Popen) -> None:
    """Raise EmulatorError when a daemon has ended."""
    if process.poll() is not None:
        status = process.returncode
        how = f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"
        raise EmulatorError(f"{Path(process.args[0]).name} {how}.")


def kill(processes: Sequence[subprocess.Popen]) -> None:
    """End the daemons, the switch before its database; what they leave ends with the sandbox."""
    for process in reversed(processes):
        process.kill()
        process.wait(10)


def log_tails() -> str:
    """The last lines of both logs, each under its daemon's name."""
    lines = []
    for name in (DATABASE, SWITCH):
        path = RUN / f"{name}.log"
        if path.exists():
            lines += [f"{name} said at last:", *path.read_text(errors="replace").splitlines()[-_LOG_LINES:]]
    return "\n".join(lines)


def await_kernel_datapath() -> None:
    """Raise MachineLacks without the kernel's datapath; wait where the machine has only just booted."""
    if not machine.kernel_datapath():
        raise MachineLacks("This kernel has no Open vSwitch datapath (module openvswitch); use the userspace "
                           "one, or boot a stock distribution kernel.")
    up_s = float(Path("/proc/uptime").read_text().split()[0])
    if up_s < _KERNEL_READY_S:
        time.sleep(_KERNEL_READY_S - up_s)
