"""The packet sockets of the userspace datapath: room in them, and a quick end.

ovs-vswitchd's userspace datapath sends the packets of all ports through one AF_PACKET socket
(lib/netdev-linux.c, af_packet_sock) whose buffer holds 208 kB. A packet that waits in a port's queue
counts against it, and when it is full packets are dropped without any counter. So the sockets are
borrowed from the daemon (pidfd_getfd) and given room for every queue of the fabric at once.

Closing a packet socket waits for a grace period of the kernel (packet_release, net/packet/af_packet.c):
640 of them kept a dying daemon for 8 s. Held by us at its end and closed by many threads at once, they
share grace periods: 0.2 s.
"""
from __future__ import annotations

import os
import re
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from emulator import syscalls
from emulator.errors import EmulatorError, MachineLacks

_SO_SNDBUFFORCE, _SO_RCVBUFFORCE = 32, 33  # beyond net.core.wmem_max, which is global and not ours
RECEIVE_BYTES = 4_000_000
_CLOSERS = 64
_TRUESIZE = 2  # a queued packet occupies up to about twice its length in kernel memory


def widen(pid: int, queued_bytes: int) -> int:
    """Give the packet sockets of process `pid` room for `queued_bytes` of queued packets; how many.

    queued_bytes: the sum of the limits of all queues that the process sends into. Raises EmulatorError
    when the sending socket is not open yet (it opens with the first packet) or a size does not read back.
    """
    send_bytes = _TRUESIZE * queued_bytes
    found, shared = 0, 0
    for fd, interface in packet_sockets(pid).items():
        own = syscalls.take_fd(pid, fd)
        with socket.socket(fileno=own) as packet:
            _force(packet, _SO_SNDBUFFORCE, socket.SO_SNDBUF, send_bytes)
            _force(packet, _SO_RCVBUFFORCE, socket.SO_RCVBUF, RECEIVE_BYTES)
        found += 1
        shared += interface == 0
    if not shared:
        raise EmulatorError("ovs-vswitchd has not opened the packet socket through which it sends; its "
                            "buffer cannot be enlarged before a first packet was sent.")
    return found


def borrow(pid: int) -> list[int]:
    """Duplicates, in this process, of all packet sockets of process `pid`."""
    return [syscalls.take_fd(pid, fd) for fd in packet_sockets(pid)]


def close_at_once(fds: list[int]) -> None:
    """Close packet sockets whose other holder is gone."""
    with ThreadPoolExecutor(_CLOSERS) as threads:
        list(threads.map(os.close, fds))


def _force(packet: socket.socket, force: int, read: int, size_bytes: int) -> None:
    size_bytes = min(size_bytes, 2**30 - 1)  # the kernel doubles it into an int
    try:
        packet.setsockopt(socket.SOL_SOCKET, force, size_bytes)
    except PermissionError as error:
        raise MachineLacks("Enlarging a socket buffer needs CAP_NET_ADMIN; run with sudo.") from error
    real = packet.getsockopt(socket.SOL_SOCKET, read)
    if real < size_bytes:
        raise EmulatorError(f"A packet socket of ovs-vswitchd has a buffer of {real} bytes instead of "
                            f"{size_bytes}.")


def packet_sockets(pid: int) -> dict[int, int]:
    """Descriptor number in process `pid` -> ifindex it is bound to (0: the one that sends for all)."""
    lines = Path(f"/proc/{pid}/net/packet").read_text().splitlines()[1:]
    interface_of = {fields[8]: int(fields[4]) for fields in map(str.split, lines)}
    sockets = {}
    for entry in os.scandir(f"/proc/{pid}/fd"):
        try:
            match = re.fullmatch(r"socket:\[(\d+)\]", os.readlink(entry.path))
        except FileNotFoundError:  # closed meanwhile
            continue
        if match and match[1] in interface_of:
            sockets[int(entry.name)] = interface_of[match[1]]
    return sockets
