"""Network namespaces with names, as `ip netns` makes them, but made and entered in microseconds.

A name is a file under /run/netns on which the namespace is mounted (ip-netns(8)); `ip netns exec NAME`
and `mnexec` work on them. The thread that calls is the one that moves: namespaces belong to tasks.
"""
from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from emulator import syscalls

DIRECTORY = Path("/run/netns")
_OWN = "/proc/thread-self/ns/net"


def create(name: str) -> None:
    """A new, empty namespace called `name`; the caller stays where it is.

    Raises FileExistsError when there is one already, OSError when the kernel refuses.
    """
    path = DIRECTORY / name
    DIRECTORY.mkdir(exist_ok=True)
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDONLY, 0o444))
    home = os.open(_OWN, os.O_RDONLY)
    try:
        syscalls.unshare(syscalls.CLONE_NEWNET)
        try:
            syscalls.mount(_OWN, str(path), None, syscalls.MS_BIND)
        finally:
            syscalls.setns(home, syscalls.CLONE_NEWNET)
    except OSError:
        path.unlink()
        raise
    finally:
        os.close(home)


def open_fd(name: str) -> int:
    """A descriptor of namespace `name` (for setns or IFLA_NET_NS_FD); the caller closes it."""
    return os.open(DIRECTORY / name, os.O_RDONLY | os.O_CLOEXEC)


def open_own() -> int:
    """A descriptor of the namespace that this thread is in; the caller closes it."""
    return os.open(_OWN, os.O_RDONLY | os.O_CLOEXEC)


def names() -> list[str]:
    """The names that exist."""
    return sorted(os.listdir(DIRECTORY)) if DIRECTORY.is_dir() else []


@contextmanager
def entered(name: str) -> Iterator[None]:
    """Inside the block this thread is in namespace `name`: sockets and processes made here belong to it."""
    home, there = os.open(_OWN, os.O_RDONLY | os.O_CLOEXEC), -1
    try:
        there = open_fd(name)
        syscalls.setns(there, syscalls.CLONE_NEWNET)
        try:
            yield
        finally:
            syscalls.setns(home, syscalls.CLONE_NEWNET)
    finally:
        os.close(home)
        if there >= 0:
            os.close(there)
