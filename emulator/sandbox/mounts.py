"""The sandbox's private view of the file system: what a run would leave behind is kept in memory.

Masked are /tmp and /dev/shm (empty), /run (its entries bound back, so that no mount point has to be
created outside, except /run/openvswitch and /run/netns, which are new), /etc/openvswitch and
/var/log/openvswitch where they exist, and /proc, /sys and /sys/fs/bpf (fresh, so that they show the
new namespaces). Nothing is written outside and no mount propagates there.
"""
from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from pathlib import Path

from emulator import syscalls
from emulator.errors import BadInput

EMPTY = ("/tmp", "/dev/shm")
OWN_IN_RUN = ("openvswitch", "netns")
OVS_DIRECTORIES = ("/etc/openvswitch", "/var/log/openvswitch")
OVS_RUN = "/run/openvswitch"
PRIVATE_TMP = "/run/emulator-tmp"

_QUIET = syscalls.MS_NOSUID | syscalls.MS_NODEV


def check_kept(keep: Iterable[Path]) -> None:
    """Raise BadInput for a directory that cannot be both private and the user's."""
    for path in keep:
        if path == Path("/run"):
            raise BadInput(f"{path} cannot be used itself, because a run needs a private one; "
                           "name a directory below it or elsewhere.")


def mount_private(keep: Iterable[Path]) -> dict[str, str]:
    """Mask the file system in the calling process's (new) mount namespace.

    keep: resolved existing files and directories that stay reachable under their names. Returns the
    environment variables that programs inside need. Raises OSError with the mount that was refused.
    """
    keep = list(keep)
    syscalls.mount("none", "/", None, syscalls.MS_REC | syscalls.MS_PRIVATE)
    syscalls.mount("proc", "/proc", "proc", _QUIET | syscalls.MS_NOEXEC)
    _fresh_sys()
    _private_run()
    environment = {"OVS_RUNDIR": OVS_RUN, "OVS_LOGDIR": OVS_RUN, "OVS_DBDIR": OVS_RUN}
    for directory in OVS_DIRECTORIES:
        if os.path.isdir(directory):
            _tmpfs(directory)
    for directory in EMPTY:
        if Path(directory) in keep:
            if directory == "/tmp":  # the user works in it: show it, and let programs use another
                os.mkdir(PRIVATE_TMP, 0o1777)
                environment["TMPDIR"] = PRIVATE_TMP
        elif os.path.isdir(directory):
            _empty(directory, keep)
    return environment


def outermost(keep: Iterable[Path], directory: str) -> list[Path]:
    """The paths of `keep` below `directory`, without those that lie below another of them."""
    below = sorted({path for path in keep if Path(directory) in path.parents})
    return [path for path in below if not any(other in path.parents for other in below)]


def _tmpfs(directory: str, mode: str = "0755") -> None:
    syscalls.mount("tmpfs", directory, "tmpfs", _QUIET, f"mode={mode}")


def _bind(fd: int, target: str, directory: bool) -> None:
    """Show what is behind `fd` (an O_PATH descriptor from before the masking) as `target`."""
    if directory:
        os.makedirs(target, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o600))
    syscalls.mount(f"/proc/self/fd/{fd}", target, None, syscalls.MS_BIND | syscalls.MS_REC)


def _empty(directory: str, keep: list[Path]) -> None:
    """An empty private `directory` in which only the paths to keep appear."""
    kept = [(path, os.open(path, os.O_PATH)) for path in outermost(keep, directory)]
    _tmpfs(directory, "1777")
    for path, fd in kept:
        _bind(fd, str(path), os.path.isdir(f"/proc/self/fd/{fd}"))
        os.close(fd)


def _private_run() -> None:
    """A private /run in which everything that was there still is, but for what a run makes its own."""
    old = os.open("/run", os.O_PATH | os.O_DIRECTORY)
    entries = sorted(os.listdir("/run"))
    _tmpfs("/run")
    for name in entries:
        source, target = f"/proc/self/fd/{old}/{name}", f"/run/{name}"
        if name in OWN_IN_RUN:
            continue
        if os.path.islink(source):
            os.symlink(os.readlink(source), target)
            continue
        try:
            fd = os.open(name, os.O_PATH | os.O_NOFOLLOW, dir_fd=old)
        except FileNotFoundError:  # a lock or pid file that went away since the listing
            continue
        _bind(fd, target, os.path.isdir(source))
        os.close(fd)
    os.close(old)
    for name in OWN_IN_RUN:
        os.mkdir(f"/run/{name}", 0o755)


def _fresh_sys() -> None:
    """A new sysfs, which shows the new network namespace; what was mounted below it is bound back."""
    kept = [(point, os.open(point, os.O_PATH)) for point in _mounted_below_sys()]
    syscalls.mount("sysfs", "/sys", "sysfs", _QUIET | syscalls.MS_NOEXEC)
    for point, fd in kept:
        if os.path.isdir(point):
            _bind(fd, point, True)
        os.close(fd)
    try:
        syscalls.mount("bpf", "/sys/fs/bpf", "bpf", _QUIET | syscalls.MS_NOEXEC)
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENODEV):  # a kernel without BPF has neither
            raise


def _mounted_below_sys() -> list[str]:
    """The outermost mount points below /sys, without bpffs (its pins are other people's)."""
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
        points = {line.split()[4] for line in file}
    below = outermost({Path(point) for point in points}, "/sys")
    return [str(path) for path in below if str(path) != "/sys/fs/bpf"]
