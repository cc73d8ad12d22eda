"""A run lives in namespaces of its own (net, mount, pid, ipc) that end with it, whatever ends it.

The process that the user started (the top) starts a launcher, the launcher becomes the parent of the
sandbox's process 1 (`emulator.sandbox.init`), and that one starts the program. Each dies with its
parent (PR_SET_PDEATHSIG), and process 1 holds one end of a socket pair whose other end is in the top,
so that `kill -9` of the top at any moment ends everything. Outside nothing is written: what a run needs
in /run, /tmp, /sys and so on are mounts that nobody else sees (`emulator.sandbox.mounts`).

Signals: SIGINT, SIGTERM and SIGHUP at the top become one SIGTERM to the program inside, which has
`grace_s` to save partial results. Inside, SIGINT and SIGHUP are ignored, because a terminal sends them
to everybody. An interactive program keeps the terminal, and Ctrl-C goes to it instead of to the top.
"""
from __future__ import annotations

import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from emulator.errors import BadInput, Interrupted, MachineLacks, Unfinished

PAYLOAD_FD = "EMULATOR_PAYLOAD_FD"
SPEC_FD = "EMULATOR_SANDBOX_FD"
ROOT = Path(__file__).resolve().parents[2]

_END_S = 10.0  # for the kernel to end a sandbox that was told to go
_SAME_STOP_S = 0.5  # one Ctrl-C can reach us twice (terminal and sudo); later than this it is a second one


def run_in_sandbox(argv: Sequence[str], payload: bytes | Mapping = b"", *, deadline_s: float,
                   keep: Iterable[str | Path] = (), pass_fds: Iterable[int] = (),
                   interactive: bool = False, grace_s: float = 15.0) -> int:
    """Run `argv` in a new sandbox, to its end, and return its exit status (128 + n after signal n).

    payload: what `payload()` returns inside (a mapping travels as JSON). keep: existing files and
    directories that stay reachable and writable inside although they lie below /tmp or /dev/shm; the
    working directory, this clone and the Python in use are kept anyway. pass_fds: descriptors that the
    program inherits under the same numbers. Returns 130 after a signal. Raises Unfinished when the
    program had not ended after `deadline_s`, BadInput for a missing path, MachineLacks without root.
    Call it from the main thread.
    """
    if os.geteuid() != 0:
        raise MachineLacks("Namespaces, links and switches need root; run the same command with sudo.")
    if not isinstance(payload, (bytes, bytearray)):
        payload = json.dumps(payload).encode()
    data, spec = _memory_file("payload", payload), None
    outer, inner = socket.socketpair()
    try:
        passed = sorted(set(pass_fds) | {data})
        spec = _memory_file("sandbox", json.dumps({
            "argv": list(argv), "top": os.getpid(), "control": inner.fileno(), "pass_fds": passed,
            "interactive": interactive, "keep": [str(path) for path in _kept(keep)]}).encode())
        with _signals(interactive) as stop:
            launcher = subprocess.Popen(
                [sys.executable, "-S", "-m", "emulator.sandbox.init"],
                pass_fds=[*passed, spec, inner.fileno()], env=_environment(data, spec),
                stdin=None if interactive else subprocess.DEVNULL)
            inner.close()
            try:
                return _wait(launcher, outer, stop, deadline_s, grace_s)
            finally:
                _end(launcher, outer)
    finally:
        for fd in (data, spec):
            if fd is not None:
                os.close(fd)
        inner.close()
        outer.close()


def payload() -> bytes:
    """Inside a sandbox: the bytes that were given to `run_in_sandbox`."""
    fd = int(os.environ[PAYLOAD_FD])
    return os.pread(fd, os.fstat(fd).st_size, 0)


def stop_on_sigterm() -> None:
    """Inside a sandbox: turn the forwarded stop into one `Interrupted`; further ones are ignored."""

    def stop(_signal, _frame):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise Interrupted("The run was stopped.")

    signal.signal(signal.SIGTERM, stop)


def _memory_file(name: str, content: bytes) -> int:
    """A file that exists only in memory, so that a kill cannot leave one behind."""
    fd = os.memfd_create(name)
    with os.fdopen(os.dup(fd), "wb") as file:
        file.write(content)
    return fd


def _environment(data: int, spec: int) -> dict[str, str]:
    path = os.environ.get("PYTHONPATH")
    return {**os.environ, PAYLOAD_FD: str(data), SPEC_FD: str(spec),
            "PYTHONPATH": f"{ROOT}{os.pathsep}{path}" if path else str(ROOT)}


def _kept(keep: Iterable[str | Path]) -> list[Path]:
    """Everything that must stay reachable inside, resolved; only what exists can be kept."""
    asked = [Path(path).resolve() for path in keep]
    for path in asked:
        if not path.exists():
            raise BadInput(f"{path} does not exist; what a sandbox shall write to must be there before it.")
    python = [Path(path) for path in (sys.prefix, sys.base_prefix, sys.executable, *sys.path) if path]
    own = [path.resolve() for path in (ROOT, *python) if path.exists()]
    try:
        own.append(Path.cwd().resolve())
    except FileNotFoundError:  # the user deleted the directory they stand in; nothing there to keep
        pass
    return list(dict.fromkeys(asked + own))


@contextmanager
def _signals(interactive: bool) -> Iterator[socket.socket]:
    """A socket that becomes readable when the user asks to stop; the old handlers return afterwards."""
    readable, writable = socket.socketpair()
    for end in (readable, writable):
        end.setblocking(False)
    watched = [signal.SIGTERM, signal.SIGHUP] + ([] if interactive else [signal.SIGINT])
    old_fd = signal.set_wakeup_fd(writable.fileno(), warn_on_full_buffer=False)
    old = {number: signal.signal(number, lambda *_: None) for number in watched}
    if interactive:
        old[signal.SIGINT] = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield readable
    finally:
        for number, handler in old.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)
        signal.set_wakeup_fd(old_fd)
        readable.close()
        writable.close()


def _sudo() -> int | None:
    """A pidfd of the sudo that started us: it cannot forward a SIGKILL, so its end is a stop."""
    parent = os.getppid()
    try:
        if Path(f"/proc/{parent}/comm").read_text().strip() != "sudo":
            return None
        return os.pidfd_open(parent)
    except OSError:  # it ended between the two calls, or is hidden from us: nothing to watch
        return None


def _wait(launcher: subprocess.Popen, control: socket.socket, stop: socket.socket,
          deadline_s: float, grace_s: float) -> int:
    """Wait for the launcher's end. A stop or the deadline opens the grace, a second stop ends it."""
    process, sudo = os.pidfd_open(launcher.pid), _sudo()
    end_s, stopped_s, late = time.monotonic() + deadline_s, None, False
    try:
        with selectors.DefaultSelector() as selector:
            for fd in (process, stop, sudo):
                if fd is not None:
                    selector.register(fd, selectors.EVENT_READ)
            while True:
                ready = [key.fileobj for key, _ in selector.select(max(0.0, end_s - time.monotonic()))]
                now_s = time.monotonic()
                if process in ready:
                    break
                if stop in ready:
                    stop.recv(64)
                if sudo in ready:
                    selector.unregister(sudo)
                if stopped_s is None:
                    stopped_s, late, end_s = now_s, not ready, now_s + grace_s
                    _tell(control, b"s")
                elif not ready or now_s - stopped_s > _SAME_STOP_S:
                    break
    finally:
        for fd in (process, sudo):
            if fd is not None:
                os.close(fd)
    if late:
        raise Unfinished(f"The run had not ended after its deadline of {deadline_s:g} s and was ended.")
    status = launcher.poll()
    if stopped_s is not None or status is None:
        return Interrupted.exit_status
    return status if status >= 0 else 128 - status


def _tell(control: socket.socket, message: bytes) -> None:
    try:
        control.send(message)
    except BrokenPipeError:  # process 1 has just ended by itself; the launcher's status follows
        pass


def _end(launcher: subprocess.Popen, control: socket.socket) -> None:
    """Let process 1 go by closing its line to us; the kernel then ends all that it contains."""
    control.close()
    try:
        launcher.wait(_END_S)
    except subprocess.TimeoutExpired:
        launcher.kill()
        launcher.wait(_END_S)
