"""Entering a network namespace for as long as it takes to open a socket or read a file in it.

A socket belongs to the namespace in which it was opened, so one process can read the counters of
every host. setns(2) moves the calling thread only; everything here is written so that it also
holds in a thread (`/proc/thread-self`, not `/proc/self`).
"""
from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from emulator.errors import MachineLacks

CLONE_NEWNET = 0x40000000  # include/uapi/linux/sched.h
NETNS_DIRECTORY = Path("/run/netns")

_libc = ctypes.CDLL(None, use_errno=True)


def _setns(descriptor: int, name: str) -> None:
    if _libc.setns(descriptor, CLONE_NEWNET) != 0:
        reason = os.strerror(ctypes.get_errno())
        raise MachineLacks(f"Entering the network namespace {name} failed ({reason}); run it as root.")


@contextmanager
def inside(netns: str | None) -> Iterator[None]:
    """Run the block in the namespace /run/netns/NETNS; None is the namespace one is in already.

    Raises MachineLacks when the namespace is not there or may not be entered.
    """
    if netns is None:
        yield
        return
    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        try:
            there = os.open(NETNS_DIRECTORY / netns, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise MachineLacks(f"The network namespace {netns} is not at {NETNS_DIRECTORY}/{netns} "
                               f"({error.strerror}); was its host removed?") from None
        try:
            _setns(there, netns)
        finally:
            os.close(there)
        try:
            yield
        finally:
            _setns(home, "that this thread came from")
    finally:
        os.close(home)
