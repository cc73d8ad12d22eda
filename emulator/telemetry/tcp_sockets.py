"""TCP sockets of one host as the kernel tells of them: those that are there, and each one that goes.

Dumps (sock_diag(7), what `ss` uses) show what is there now. A socket that ends is announced with its last
tcp_info to whoever listens to the destroy groups (what `ss -E` uses), so that no connection is missed,
however short. Layouts: include/uapi/linux/{inet_diag,sock_diag,tcp}.h.
"""
from __future__ import annotations

import errno
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from emulator.errors import MachineLacks
from emulator.netlink import Netlink, NetlinkError, attributes
from emulator.telemetry.namespaces import inside
from traffic.records import TcpInfo
from traffic.tcp import parse_tcp_info

ESTABLISHED, SYN_SENT, TIME_WAIT, CLOSE, LISTEN = 1, 2, 6, 7, 10
STATES = {1: "ESTABLISHED", 2: "SYN-SENT", 3: "SYN-RECV", 4: "FIN-WAIT-1", 5: "FIN-WAIT-2", 6: "TIME-WAIT",
          7: "CLOSED", 8: "CLOSE-WAIT", 9: "LAST-ACK", 10: "LISTEN", 11: "CLOSING"}

_SOCK_DIAG, _BY_FAMILY = 4, 20
_DESTROYED = 1 << 0 | 1 << 2  # SKNLGRP_INET_TCP_DESTROY, SKNLGRP_INET6_TCP_DESTROY
_WANTED = 1 << 1 | 1 << 3  # INET_DIAG_INFO, INET_DIAG_CONG
_INFO, _CONG = 2, 4
_REQUEST = struct.Struct("=BBBBI48x")
_MESSAGE = struct.Struct("=BBBB2s2s16s16sI8sIIIII")
_HEADER = struct.Struct("=IHHII")
_ALL_BUT_GONE = 0xFFF & ~(1 << TIME_WAIT)
_MAPPED = bytes(10) + b"\xff\xff"
_LOOPBACK6 = bytes(15) + b"\x01"
_SO_RCVBUFFORCE, _BUFFER_BYTES = 33, 4 << 20
_INFO_BYTES = 232


@dataclass(frozen=True)
class TcpSocket:
    """One socket at one moment. Addresses are IPv4 ('' for any) or '::1'; payload bytes.

    cookie: unique among the sockets of the machine. sent_bytes: once, without what was sent again.
    received_bytes counts a FIN as one byte, acked_bytes the SYN and the FIN that this end sent.
    unread_bytes, unacked_bytes: in its receive and send queue. info: None for one that listens.
    busy_s: time with data to send or unacknowledged. congestion_control: '' where it was not told.
    """

    cookie: int
    state: int
    local: tuple[str, int]
    remote: tuple[str, int]
    unread_bytes: int
    unacked_bytes: int
    congestion_control: str = ""
    info: TcpInfo | None = None
    sent_bytes: int = 0
    received_bytes: int = 0
    acked_bytes: int = 0
    busy_s: float = 0.0


class SocketWatch:
    """The TCP sockets of namespace `netns`, from now on. Raises MachineLacks where the kernel cannot tell."""

    def __init__(self, netns: str) -> None:
        self.missed = 0
        with inside(netns):
            try:
                self._dumps = Netlink(_SOCK_DIAG)
                self._events = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC,
                                             _SOCK_DIAG)
                self._events.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _BUFFER_BYTES)
                self._events.bind((0, _DESTROYED))
            except OSError as error:
                raise MachineLacks(f"This kernel does not tell of TCP sockets (CONFIG_INET_TCP_DIAG: "
                                   f"{error.strerror}); programs cannot be measured. Try: "
                                   "sudo modprobe tcp_diag") from None
        self._events.setblocking(False)

    def now(self) -> list[TcpSocket]:
        """All sockets that are there, those in TIME-WAIT left out."""
        found = []
        for family in (socket.AF_INET, socket.AF_INET6):
            body = _REQUEST.pack(family, socket.IPPROTO_TCP, _WANTED, 0, _ALL_BUT_GONE)
            try:
                found += [one for one in map(parse, self._dumps.dump(_BY_FAMILY, body)) if one]
            except NetlinkError as error:
                if family == socket.AF_INET6 and error.errno == errno.ENOENT:  # a kernel without IPv6
                    continue
                raise
        return found

    def gone(self) -> Iterator[TcpSocket]:
        """Each socket that has ended since the last call, as it was in the end."""
        while True:
            try:
                data = self._events.recv(1 << 16)
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno != errno.ENOBUFS:
                    raise
                self.missed += 1  # at least one
                continue
            one = parse(data[_HEADER.size:])
            if one:
                yield one

    def close(self) -> None:
        self._dumps.__exit__()
        self._events.close()


def parse(body: bytes) -> TcpSocket | None:
    """struct inet_diag_msg and its attributes; None for a socket of IPv6 proper."""
    (family, state, _, _, sport, dport, src, dst, _, cookie, _, unread, unacked,
     _, _) = _MESSAGE.unpack_from(body)
    ends = [_ipv4(family, address) for address in (src, dst)]
    if None in ends:
        return None
    local, remote = ((end, int.from_bytes(port, "big")) for end, port in zip(ends, (sport, dport)))
    found = attributes(body, _MESSAGE.size)
    plain = TcpSocket(int.from_bytes(cookie, "little"), state, local, remote, unread, unacked,
                      found.get(_CONG, b"").rstrip(b"\0").decode())
    raw = found.get(_INFO, b"").ljust(_INFO_BYTES, b"\0")
    if state == LISTEN or not any(raw):
        return plain
    acked, received = struct.unpack_from("=QQ", raw, 120)
    sent, again = struct.unpack_from("=QQ", raw, 200)
    return TcpSocket(plain.cookie, state, local, remote, unread, unacked, plain.congestion_control,
                     parse_tcp_info(raw), max(0, sent - again), received, acked,
                     struct.unpack_from("=Q", raw, 168)[0] * 1e-6)


def _ipv4(family: int, address: bytes) -> str | None:
    """'10.0.0.1'; '' for any address; None for one that IPv4 has not."""
    if family == socket.AF_INET:
        packed = address[:4]
    elif not any(address):
        return ""
    elif address == _LOOPBACK6:
        return "::1"
    elif address[:12] == _MAPPED:
        packed = address[12:]
    else:
        return None
    return socket.inet_ntoa(packed) if any(packed) else ""
