"""What the machine has, and one sentence with the command that mends what it lacks.

Every `require_…` raises MachineLacks (exit status 3) and is cheap enough to be called before a run. The
kernel is asked by trying, because lists are incomplete: congestion controls, qdiscs and the Open vSwitch
datapath load themselves as modules when root first names them.
"""
from __future__ import annotations

import errno
import importlib
import os
import platform
import re
import resource
import shutil
import socket
import struct
import subprocess
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from emulator import syscalls
from emulator.errors import BadInput, MachineLacks, nearest
from emulator.netlink import CREATE, EXCLUSIVE, NETLINK_GENERIC, Message, Netlink, NetlinkError, text

PACKAGES = {  # program: package of Debian and Ubuntu
    "ovs-vsctl": "openvswitch-switch", "ovsdb-server": "openvswitch-switch",
    "ovs-vswitchd": "openvswitch-switch", "ovsdb-tool": "openvswitch-switch",
    "ovs-ofctl": "openvswitch-switch",
    "ip": "iproute2", "tc": "iproute2", "tcpdump": "tcpdump", "iperf3": "iperf3", "mnexec": "mininet",
    "ping": "iputils-ping"}
OVS_PROGRAMS = ("ovsdb-tool", "ovsdb-server", "ovs-vswitchd", "ovs-vsctl")

_SYSTEM_PATH = "/usr/local/sbin:/usr/sbin:/sbin"  # where a user's own PATH often does not look
_GENL_CTRL, _GETFAMILY, _FAMILY_NAME = 0x10, 3, 2  # include/uapi/linux/genetlink.h
_SPARE_FILES = 256


def _which(name: str) -> str | None:
    return shutil.which(name, path=f"{os.environ.get('PATH', os.defpath)}:{_SYSTEM_PATH}")


def program(name: str) -> str:
    """The path of a program; raises MachineLacks with the command that installs it."""
    path = _which(name)
    if path is None:
        raise MachineLacks(f"The program {name} is missing; install it with: {_install(PACKAGES[name])}")
    return path


def _install(package: str) -> str:
    if shutil.which("apt-get"):
        return f"sudo apt-get install {package}"
    return f"your distribution's package of {package}"


def require_root() -> None:
    """Namespaces, links and switches need root."""
    if os.geteuid() != 0:
        raise MachineLacks("A run needs root for its namespaces, links and switches; put sudo before the "
                           "same command (--dry-run needs no root).")


def require_real_time() -> None:
    """Raise where this process may not run under SCHED_FIFO, as the relay of --delay does."""
    normal = os.sched_getscheduler(0), os.sched_getparam(0)
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except PermissionError as error:
        raise MachineLacks("--delay needs real-time priority (SCHED_FIFO), which is not allowed here; give a "
                           "container --cap-add SYS_NICE, or leave --delay out.") from error
    os.sched_setscheduler(0, *normal)


def require_programs(names: Iterable[str]) -> None:
    """Raise for the first program that is missing."""
    for name in names:
        program(name)


def require_mininet() -> str:
    """Mininet's version; raises MachineLacks when it is missing or does not import."""
    try:
        return importlib.import_module("mininet.net").VERSION
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("mininet"):
            raise MachineLacks(f"Mininet is missing; install it with: {_install('mininet')}") from error
        # Mininet 2.3.0 imports distutils, which Python 3.12 left to setuptools
        package = "python3-setuptools" if error.name == "distutils" else f"python3-{error.name}"
        raise MachineLacks(f"Mininet does not import, because Python {platform.python_version()} lacks "
                           f"{error.name}; install it with: {_install(package)}") from error


def kernel_datapath() -> bool:
    """Has the kernel Open vSwitch's datapath? Asking by name makes the kernel load the module."""
    request = struct.pack("=BBxx", _GETFAMILY, 1) + text(_FAMILY_NAME, "ovs_datapath")
    try:
        with Netlink(NETLINK_GENERIC) as netlink:
            netlink.ask(Message(_GENL_CTRL, request))
    except NetlinkError:
        return False
    return True


_ALGORITHM = re.compile(r"[A-Za-z0-9_-]{1,15}")


def congestion_controls() -> list[str]:
    """The congestion controls that are loaded now; others may load when they are first named."""
    return Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split()


def require_congestion_control(name: str, ours: Iterable[str] = ()) -> None:
    """Raise unless a socket takes `name`; as root this loads the module tcp_NAME where there is one.

    BadInput for what cannot be a name, or is nearly one that the kernel has or of `ours`; else MachineLacks.
    """
    if not _ALGORITHM.fullmatch(name):
        raise BadInput(f'--cc "{name}" is not the name of a congestion control, such as cubic.')
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as tcp:
        try:
            tcp.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name.encode())
        except PermissionError:  # not root: the kernel has it, but only root may use or load it
            return
        except OSError as error:
            hint = nearest(name, [*congestion_controls(), *ours])
            if name not in ours and "did you mean" in hint:
                raise BadInput(f'there is no congestion control "{name}"{hint}.') from None
            raise MachineLacks(
                f'This kernel ({platform.release()}) has no congestion control "{name}" '
                f"({error.strerror}); it has {', '.join(congestion_controls())}. Try: sudo modprobe "
                f"tcp_{name}, another kernel, or one of those with --cc.") from error
        real = tcp.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\0").decode()
    if real != name:
        raise MachineLacks(f'A socket that asked for congestion control "{name}" got "{real}".')


def lacking_qdiscs(kinds: Iterable[str]) -> list[str]:
    """Those of `kinds` that the kernel has not, found by adding each to a loopback in a namespace of its
    own. Needs root (else PermissionError).
    """

    def lacks(kind: str) -> bool:
        syscalls.unshare(syscalls.CLONE_NEWNET)
        with Netlink() as netlink:
            try:
                netlink.batch([_root_qdisc(kind)])
            except NetlinkError as error:  # a kind that is there but wants parameters says EINVAL
                return error.errno == errno.ENOENT
        return False

    # in a thread, because a namespace belongs to a thread and this one shall stay where it is
    with ThreadPoolExecutor(max_workers=1) as thread:
        return [kind for kind in kinds if thread.submit(lacks, kind).result()]


def _root_qdisc(kind: str) -> Message:
    """Add a qdisc without parameters as the root of link 1 (struct tcmsg, RTM_NEWQDISC)."""
    return Message(36, struct.pack("=BxxxiIII", 0, 1, 0x10000, 0xFFFFFFFF, 0) + text(1, kind),
                   CREATE | EXCLUSIVE)


def require_qdiscs(kinds: Iterable[str]) -> None:
    """Raise when the kernel lacks one of these qdiscs."""
    lacking = lacking_qdiscs(kinds)
    if lacking:
        raise MachineLacks(f"This kernel ({platform.release()}) has no qdisc {', '.join(lacking)}; boot a "
                           "stock distribution kernel (on Ubuntu also: sudo apt-get install "
                           f"linux-modules-extra-{platform.release()}).")


def require_open_files(count: int) -> None:
    """Let this process and its children open `count` files and some to spare; raise if they may not."""
    needed = count + _SPARE_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < needed:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (needed, needed))
        except (ValueError, PermissionError):
            raise MachineLacks(f"This run needs {needed} open files, but at most {hard} are allowed here; "
                               f"start it with: sudo prlimit --nofile={needed}:{needed} COMMAND") from None
    elif soft != resource.RLIM_INFINITY and soft < needed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


def versions() -> dict[str, str]:
    """Versions of the kernel, Python and, where installed, Open vSwitch and iproute2: for the bundle."""
    found = {"kernel": platform.release(), "python": platform.python_version(), "machine": platform.machine()}
    for name, command in (("openvswitch", ["ovs-vsctl", "--version"]), ("iproute2", ["ip", "-V"])):
        path = _which(command[0])
        if path:
            said = subprocess.run([path, *command[1:]], capture_output=True, text=True, timeout=10,
                                  check=True).stdout
            number = re.search(r"\d+\.\d+(\.\d+)*", said)
            found[name] = number[0] if number else said.strip()
    return found


def cpus() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0))
