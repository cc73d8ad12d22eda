"""Linux system calls that Python's library (3.10) lacks: unshare, setns, (un)mount, prctl, pidfd_getfd.

Every function raises OSError with the kernel's errno; sentences for the user are made by the callers.
Flag values are those of include/uapi/linux/{sched,mount,prctl}.h.
"""
from __future__ import annotations

import ctypes
import os
import signal

CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_NOSUID = 0x2
MS_NODEV = 0x4
MS_NOEXEC = 0x8
MS_BIND = 0x1000
MS_REC = 0x4000
MS_PRIVATE = 0x40000

_PR_SET_PDEATHSIG = 1
_SYS_PIDFD_GETFD = 438  # the same number on every architecture since Linux 5.6

_libc = ctypes.CDLL(None, use_errno=True)


def _check(result: int, what: str) -> int:
    if result < 0:
        errno = ctypes.get_errno()
        raise OSError(errno, os.strerror(errno), what)
    return result


def unshare(flags: int) -> None:
    """Move the calling thread into new namespaces (CLONE_NEWPID: its next child)."""
    _check(_libc.unshare(ctypes.c_int(flags)), "unshare")


def setns(fd: int, kind: int) -> None:
    """Move the calling thread into the namespace behind `fd`, which must be of `kind` (CLONE_NEW*)."""
    _check(_libc.setns(ctypes.c_int(fd), ctypes.c_int(kind)), "setns")


def mount(source: str, target: str, kind: str | None, flags: int = 0, options: str | None = None) -> None:
    """mount(2); `kind` is the file system's name or None for a bind mount or a change of propagation."""
    encode = os.fsencode
    _check(_libc.mount(encode(source), encode(target), encode(kind) if kind else None,
                       ctypes.c_ulong(flags), encode(options) if options else None), target)


def unmount(target: str) -> None:
    """umount(2)."""
    _check(_libc.umount(os.fsencode(target)), target)


def die_with_parent() -> None:
    """Have the kernel kill this process (SIGKILL) when the thread that forked it ends.

    The caller must afterwards check that the parent had not ended before this call.
    """
    _check(_libc.prctl(_PR_SET_PDEATHSIG, ctypes.c_ulong(signal.SIGKILL), 0, 0, 0), "prctl")


def take_fd(pid: int, fd: int) -> int:
    """A duplicate, in this process, of descriptor `fd` of process `pid` (pidfd_getfd, Linux 5.6)."""
    process = os.pidfd_open(pid)
    try:
        return _check(_libc.syscall(ctypes.c_long(_SYS_PIDFD_GETFD), ctypes.c_int(process),
                                    ctypes.c_int(fd), ctypes.c_uint(0)), "pidfd_getfd")
    finally:
        os.close(process)
