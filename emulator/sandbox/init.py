"""The two small processes between the top and the program: the launcher and the sandbox's process 1.

`python -m emulator.sandbox.init` is started by `emulator.sandbox.enter`. The launcher makes the namespaces,
becomes the parent of process 1 and hands its exit status on. Process 1 prepares the sandbox, starts the
program, collects orphans (daemons that detach end up with it), forwards the stop, and ends at once when
the top is gone; with process 1 the kernel ends every process of the namespace.
"""
from __future__ import annotations

import fcntl
import json
import os
import selectors
import signal
import socket
import struct
import sys
from pathlib import Path

from emulator import syscalls
from emulator.errors import EmulatorError, MachineLacks
from emulator.sandbox.mounts import check_kept, mount_private

_SIOCSIFFLAGS, _IFF_UP = 0x8914, 0x1  # include/uapi/linux/sockios.h, if.h
_LEFT_TO_TOP = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_NOT_FOUND = 127  # as a shell says it


def main() -> int:
    """The launcher: returns the exit status of the program inside."""
    fd = int(os.environ.pop("EMULATOR_SANDBOX_FD"))
    spec = json.loads(os.pread(fd, os.fstat(fd).st_size, 0))
    os.close(fd)
    os.set_inheritable(spec["control"], False)
    syscalls.die_with_parent()
    if os.getppid() != spec["top"]:
        return 1  # the top was killed before we could ask to follow it
    for number in _LEFT_TO_TOP:
        signal.signal(number, signal.SIG_IGN)
    try:
        check_kept(map(Path, spec["keep"]))
        _new_namespaces()
        first = os.fork()
        if first == 0:
            os._exit(_process_one(spec))
    except EmulatorError as error:
        print(error, file=sys.stderr)
        return error.exit_status
    return _exit_status(os.waitpid(first, 0)[1])


def _new_namespaces() -> None:
    try:
        syscalls.unshare(syscalls.CLONE_NEWNET | syscalls.CLONE_NEWNS | syscalls.CLONE_NEWPID
                         | syscalls.CLONE_NEWIPC)
    except OSError as error:
        raise MachineLacks(f"The kernel refused new namespaces ({error.strerror}); run with sudo on the "
                           "machine itself, or give the container --privileged.") from error


def _exit_status(status: int) -> int:
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def prepare(keep: list[str]) -> None:
    """Make the new namespaces usable: private mounts, IPv6 off before any link exists, lo up.

    keep: files and directories that stay reachable. Sets the environment for programs inside.
    """
    where = os.getcwd() if os.path.exists("/proc/self/cwd") else "/"
    try:
        os.environ.update(mount_private(map(Path, keep)))
    except OSError as error:
        raise MachineLacks(f"The kernel refused a private mount on {error.filename} ({error.strerror}); run "
                           "with sudo on the machine itself, or give the container --privileged.") from error
    if os.path.isdir(where):  # the same directory, but as seen through the new mounts
        os.chdir(where)
    for scope in ("all", "default"):
        setting = Path(f"/proc/sys/net/ipv6/conf/{scope}/disable_ipv6")
        if setting.exists():
            setting.write_text("1")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", _IFF_UP))


def _process_one(spec: dict) -> int:
    """Process 1 of the sandbox: prepare, start the program, wait for its end or the top's."""
    syscalls.die_with_parent()
    control = socket.socket(fileno=spec["control"])
    woken, wake = socket.socketpair()
    for end in (woken, wake, control):
        end.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
    try:
        prepare(spec["keep"])
    except EmulatorError as error:
        print(error, file=sys.stderr)
        return error.exit_status
    program = os.fork()
    if program == 0:
        _become_program(spec)
    with selectors.DefaultSelector() as selector:
        selector.register(control, selectors.EVENT_READ)
        selector.register(woken, selectors.EVENT_READ)
        while True:
            ready = {key.fileobj for key, _ in selector.select()}
            if woken in ready:
                woken.recv(4096)
                status = _collect(program)
                if status is not None:
                    return status
            if control in ready:
                if not control.recv(64):
                    return 1  # the top is gone, or has lost patience
                os.kill(program, signal.SIGTERM)


def _collect(program: int) -> int | None:
    """Reap whatever has ended; the program's exit status if it is among them."""
    result = None
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return result
        if pid == 0:
            return result
        if pid == program:
            result = _exit_status(status)


def _become_program(spec: dict) -> None:
    """In the child of process 1: hand over signals and descriptors as promised, then exec."""
    signal.set_wakeup_fd(-1)
    interactive = spec["interactive"]
    for number in (signal.SIGTERM, signal.SIGQUIT, signal.SIGCHLD, signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_DFL if interactive else signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    for fd in spec["pass_fds"]:
        os.set_inheritable(fd, True)
    argv = spec["argv"]
    try:
        os.execvpe(argv[0], argv, os.environ)
    except OSError as error:
        print(f"{argv[0]} could not be started in the sandbox: {error.strerror}.", file=sys.stderr)
        os._exit(_NOT_FOUND)


if __name__ == "__main__":
    sys.exit(main())
