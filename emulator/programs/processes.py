"""Processes on hosts: started with the rights of who called sudo, reaped with their cost, ended for good."""
from __future__ import annotations

import os
import pwd
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from emulator.bundle import user_behind_sudo
from emulator.errors import Unfinished
from emulator.fabric.spec import HostSite
from emulator.programs.environment import User
from emulator.programs.hosts import on

GRACE_S = 2.0
_STEP_S = 0.05


@dataclass
class Child:
    """A process of ours on a host. rank: None for a launcher. status: as os.waitstatus_to_exitcode says it.
    ended_by_us: it still ran when the run was over.
    """

    rank: int | None
    site: HostSite
    process: subprocess.Popen
    pidfd: int
    status: int | None = None
    cpu_s: float = 0.0
    ended_by_us: bool = False

    def reap(self) -> bool:
        """True once it has ended; its status and its cost (with its children that it reaped) are known."""
        if self.status is None:
            pid, status, used = os.wait4(self.process.pid, os.WNOHANG)
            if pid:
                self.status = self.process.returncode = os.waitstatus_to_exitcode(status)
                self.cpu_s = used.ru_utime + used.ru_stime
                os.close(self.pidfd)
        return self.status is not None


def user() -> User:
    """Whose rights programs get: those of who called sudo, else our own."""
    uid, gid = user_behind_sudo() or (os.geteuid(), os.getegid())
    try:
        entry = pwd.getpwuid(uid)
        return User(uid, gid, tuple(os.getgrouplist(entry.pw_name, gid)), entry.pw_name, entry.pw_dir)
    except KeyError:  # a user of another machine, as containers have them
        return User(uid, gid, (gid,), str(uid), "/")


class Processes:
    """All processes that a program's run has started."""

    def __init__(self, whose: User) -> None:
        self.user = whose
        self.children: list[Child] = []
        self._our_uts = os.stat("/proc/self/ns/uts").st_ino

    def start(self, rank: int | None, site: HostSite, argv: Sequence[str], environment: Mapping[str, str],
              files: tuple[int, int, int]) -> Child:
        """Start `argv` on a host; `files` become its standard input, output and error output.

        Raises Unfinished with a sentence where the kernel refuses.
        """
        rights = {} if self.user.uid == os.geteuid() else {
            "user": self.user.uid, "group": self.user.gid, "extra_groups": self.user.groups}
        try:
            with on(site):
                process = subprocess.Popen(argv, env=dict(environment), stdin=files[0], stdout=files[1],
                                           stderr=files[2], start_new_session=True, **rights)
        except (OSError, subprocess.SubprocessError) as error:
            who = "the launcher" if rank is None else f"rank {rank}"
            reason = getattr(error, "strerror", None) or error
            raise Unfinished(f"{who} on {site.name} could not start {argv[0]} as user {self.user.name}: "
                             f"{reason}.") from None
        child = Child(rank, site, process, os.pidfd_open(process.pid))
        self.children.append(child)
        return child

    def running(self) -> list[Child]:
        """Those that have not ended."""
        return [child for child in self.children if not child.reap()]

    def end(self) -> None:
        """End all of them and all that they started, after GRACE_S at most."""
        for child in self.running():
            child.ended_by_us = True
        self._tell(signal.SIGTERM)
        end_s = time.monotonic() + GRACE_S
        while (self.running() or self._strays()) and time.monotonic() < end_s:
            time.sleep(_STEP_S)
        self._tell(signal.SIGKILL)
        for pid in self._strays():
            _kill(pid, signal.SIGKILL)
        end_s = time.monotonic() + GRACE_S
        while self.running() and time.monotonic() < end_s:
            time.sleep(_STEP_S)

    def _tell(self, number: int) -> None:
        for child in self.running():
            _kill(-child.process.pid, number)

    def _strays(self) -> list[int]:
        """Processes on hosts that left their group: only programs have a host's name for their own."""
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
                if state != "Z" and (entry / "ns/uts").stat().st_ino != self._our_uts:
                    found.append(int(entry.name))
            except OSError:  # it ended while we looked
                continue
        return found


def _kill(pid: int, number: int) -> None:
    """A negative pid is a process group."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:  # it has just ended
        return
