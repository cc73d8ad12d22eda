"""Waking at absolute times of CLOCK_MONOTONIC, and a process that ends with the one that started it.

time.sleep() before Python 3.11 waits through select(2) with a relative timeout, so each tick would
drift by the work of the one before; clock_nanosleep(2) with TIMER_ABSTIME does not.
"""
from __future__ import annotations

import ctypes
import os
import time
from contextlib import suppress

from emulator import syscalls
from emulator.errors import MachineLacks

CLOCK_MONOTONIC, TIMER_ABSTIME = 1, 1   # include/uapi/linux/time.h
PR_SET_TIMERSLACK = 29                  # include/uapi/linux/prctl.h
_EINTR = 4

_libc = ctypes.CDLL(None, use_errno=True)


class _Timespec(ctypes.Structure):
    _fields_ = [("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long)]


def now_ns() -> int:
    """CLOCK_MONOTONIC, nanoseconds."""
    return time.monotonic_ns()


def sleep_until(due_ns: int) -> None:
    """Return at `due_ns` of CLOCK_MONOTONIC or as soon after it as the machine can."""
    due = _Timespec(*divmod(due_ns, 1_000_000_000))
    while True:
        status = _libc.clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, ctypes.byref(due), None)
        if status == 0:
            return
        if status != _EINTR:
            raise MachineLacks(f"clock_nanosleep failed: {os.strerror(status)}.")


def wake_sharply() -> None:
    """Timer slack of 1 ns (by default the kernel may add 50 us to each sleep), and real-time priority.

    The timers of the links are the kernel's and wait for no scheduler; so should ours, if their lateness
    is to tell of theirs. Where the machine grants no real-time priority, ours are later and judged as such.
    """
    with suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(os.sched_get_priority_min(os.SCHED_FIFO)))
    if _libc.prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0) != 0:
        raise MachineLacks(f"PR_SET_TIMERSLACK failed: {os.strerror(ctypes.get_errno())}.")


def die_with_parent(parent: int) -> None:
    """Have the kernel kill this process when the thread that started it ends.

    `parent` is that process's id; if it has gone already this process ends at once.
    """
    syscalls.die_with_parent()
    if os.getppid() != parent:
        raise SystemExit(1)
