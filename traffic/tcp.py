"""Linux TCP as a Transport: real sockets, each in its host's network namespace.

One process opens each socket inside its host's network namespace (a socket belongs to the
namespace in which it was made) and drives them all. Acknowledgement times come from the kernel
(SO_TIMESTAMPING with SOF_TIMESTAMPING_TX_ACK, Documentation/networking/timestamping.rst), so a
flow's completion is not blurred by when this process wakes up.
"""
from __future__ import annotations

import errno
import hashlib
import select
import socket
import struct
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

from emulator.errors import EmulatorError, MachineLacks, Unfinished
from traffic.cores import Cores
from traffic.records import ConnectionKey, TcpInfo
from traffic.transport import Endpoint, Event

LISTEN_PORT = 5001
SOURCE_PORTS = range(16384, 60000)
BUFFER_BYTES = 4 << 20

_SO_SNDBUFFORCE, _SO_RCVBUFFORCE, _SO_TIMESTAMPING = 32, 33, 37
_TX_ACK, _SOFTWARE, _OPT_ID, _OPT_TSONLY = 1 << 9, 1 << 4, 1 << 7, 1 << 11
_ERRQUEUE, _STAMP_ACK, _ORIGIN_TIMESTAMPING = 0x2000, 2, 4
_STAMP_LAST_BYTE = [(socket.SOL_SOCKET, _SO_TIMESTAMPING, struct.pack("=I", _TX_ACK))]
_TCP_INFO_BYTES = 232


def source_ports(keys: Sequence[ConnectionKey], seed: int, hosts: Sequence[object]) -> list[int]:
    """A source port for each connection: a hash of seed, ranks and channel, so the same seed gives the same
    paths, with classes of service or without.

    `hosts[r]` is what rank r stands on: ports of one host are distinct, however many ranks it carries.
    """
    used: set[tuple[object, int]] = set()
    ports = []
    for key in keys:
        digest = hashlib.blake2b(repr((seed, key.src, key.dst, key.channel)).encode(), digest_size=8).digest()
        index = int.from_bytes(digest, "big")
        while (hosts[key.src], port := SOURCE_PORTS[index % len(SOURCE_PORTS)]) in used:
            index += 1
        used.add((hosts[key.src], port))
        ports.append(port)
    return ports


def parse_tcp_info(raw: bytes) -> TcpInfo:
    """struct tcp_info of kernel 4.19 and later."""
    words = struct.unpack_from("=24I", raw, 8)
    return TcpInfo(
        rtt_s=words[15] / 1e6, min_rtt_s=struct.unpack_from("=I", raw, 148)[0] / 1e6, cwnd=words[18],
        snd_mss=words[2], total_retrans=words[23], bytes_acked=struct.unpack_from("=Q", raw, 120)[0],
        delivery_rate_bps=8.0 * struct.unpack_from("=Q", raw, 160)[0],
        data_segs_out=struct.unpack_from("=I", raw, 156)[0],
        delivered=struct.unpack_from("=I", raw, 192)[0], delivered_ce=struct.unpack_from("=I", raw, 196)[0],
        dsack_dups=struct.unpack_from("=I", raw, 216)[0], reord_seen=struct.unpack_from("=I", raw, 220)[0])


def mark(end: socket.socket, dscp: int) -> None:
    """Have all packets of this socket carry a DSCP; raises EmulatorError where the socket does not keep it.

    The two bits below it are ECN's (RFC 3168) and stay TCP's own.
    """
    end.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, dscp << 2)
    kept = end.getsockopt(socket.IPPROTO_IP, socket.IP_TOS) >> 2
    if kept != dscp:
        raise EmulatorError(f"a socket carries DSCP {kept} although {dscp} was asked for.")


class TcpTransport:
    """Linux TCP. `congestion_control` is set on each socket and read back; another one is an error."""

    def __init__(self, endpoints: Sequence[Endpoint], congestion_control: str, seed: int,
                 entered: Callable[[str], AbstractContextManager[None]],
                 dscp_of: Callable[[str], int] = lambda traffic_class: 0) -> None:
        """dscp_of: the DSCP of what a traffic class sends; its acknowledgements carry it too."""
        self._dscp_of = dscp_of
        self._endpoints = endpoints
        self._algorithm = congestion_control
        self._seed = seed
        self._entered = entered
        self._epoll = select.epoll()
        self._out: list[socket.socket] = []
        self._in: list[socket.socket] = []
        self._ports: list[int] = []
        self._by_fd: dict[int, tuple[str, int]] = {}
        self._listeners: list[socket.socket] = []
        self._written: list[int] = []
        self._cores = Cores()
        self._home: list[int] = []

    def _socket(self, rank: int) -> socket.socket:
        netns = self._endpoints[rank].netns
        if netns is None:
            made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        else:
            with self._entered(netns):
                made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        made.setblocking(False)
        self._tune(made)
        return made

    def _tune(self, made: socket.socket) -> None:
        """Buffers first: the window scale is settled when the connection opens."""
        for forced, plain in ((_SO_SNDBUFFORCE, socket.SO_SNDBUF), (_SO_RCVBUFFORCE, socket.SO_RCVBUF)):
            try:
                made.setsockopt(socket.SOL_SOCKET, forced, BUFFER_BYTES)
            except PermissionError:  # without root (tests on loopback) the system's limit holds
                made.setsockopt(socket.SOL_SOCKET, plain, BUFFER_BYTES)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, self._algorithm.encode())
        except OSError:
            raise MachineLacks(
                f'congestion control "{self._algorithm}" is not available in this kernel; '
                f"try: sudo modprobe tcp_{self._algorithm}, or choose another with --cc.") from None

    def open(self, keys: Sequence[ConnectionKey], deadline_s: float = 30.0) -> None:
        """Connect all of them at once; raises Unfinished with the pairs that did not within the deadline."""
        listening: dict[Endpoint, socket.socket] = {}
        for rank in sorted({key.dst for key in keys}):
            address = self._endpoints[rank]
            if address not in listening:  # ranks of several jobs may share a host
                listener = listening[address] = self._socket(rank)
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                listener.bind((address.ip, LISTEN_PORT if address.netns else 0))
                listener.listen(1024)
        self._listeners = list(listening.values())
        self._ports = source_ports(keys, self._seed, self._endpoints)
        self._written = [0] * len(keys)
        # by host: the ranks of jobs that follow one another on the same hosts would each take one core
        place = {endpoint: number for number, endpoint in enumerate(dict.fromkeys(self._endpoints))}
        self._home = self._cores.divide([place[self._endpoints[key.src]] for key in keys])
        expected: dict[tuple[str, int], int] = {}
        for number, key in enumerate(keys):
            out = self._socket(key.src)
            source = self._endpoints[key.src]
            if source.netns:
                out.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            mark(out, self._dscp_of(key.traffic_class))
            out.bind((source.ip, self._ports[number] if source.netns else 0))
            self._ports[number] = out.getsockname()[1]
            listener = listening[self._endpoints[key.dst]]
            status = out.connect_ex((self._endpoints[key.dst].ip, listener.getsockname()[1]))
            if status not in (0, errno.EINPROGRESS):
                reason = errno.errorcode[status]
                raise EmulatorError(f"rank {key.src} cannot connect to rank {key.dst}: {reason}.")
            self._out.append(out)
            expected[out.getsockname()[:2]] = number
        self._accept(keys, expected, deadline_s)
        for number, out in enumerate(self._out):
            out.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPING, _SOFTWARE | _OPT_ID | _OPT_TSONLY)
            for kind, end in (("out", out), ("in", self._in[number])):
                self._by_fd[end.fileno()] = (kind, number)
                self._epoll.register(end.fileno(), select.EPOLLIN if kind == "in" else 0)
            self.congestion_control(number)

    def _accept(self, keys: Sequence[ConnectionKey], expected: dict[tuple[str, int], int],
                deadline_s: float) -> None:
        arrived: dict[int, socket.socket] = {}
        poller = select.poll()
        by_fd = {listener.fileno(): listener for listener in self._listeners}
        for fd in by_fd:
            poller.register(fd, select.POLLIN)
        end = time.monotonic() + deadline_s
        while len(arrived) < len(keys) and (left := end - time.monotonic()) > 0:
            for fd, _ in poller.poll(1000 * min(left, 1.0)):
                try:
                    accepted, peer = by_fd[fd].accept()
                except BlockingIOError:
                    continue
                accepted.setblocking(False)
                arrived[expected[peer[:2]]] = accepted
        missing = [keys[n] for n in range(len(keys)) if n not in arrived]
        if missing:
            pairs = ", ".join(f"{k.src}->{k.dst}" for k in missing[:5])
            more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
            for accepted in arrived.values():
                accepted.close()
            raise Unfinished(f"connections of ranks {pairs}{more} did not open within {deadline_s:.0f} s.")
        self._in = [arrived[n] for n in range(len(keys))]
        for key, accepted in zip(keys, self._in):
            mark(accepted, self._dscp_of(key.traffic_class))

    def write(self, connection: int, data: memoryview) -> int:
        self._cores.go(self._home[connection])
        try:
            taken = self._out[connection].sendmsg([data], _STAMP_LAST_BYTE)
        except BlockingIOError:
            return 0
        self._written[connection] += taken
        return taken

    def want_write(self, connection: int, wanted: bool) -> None:
        self._epoll.modify(self._out[connection].fileno(), select.EPOLLOUT if wanted else 0)

    def read(self, connection: int, into: memoryview) -> int:
        self._cores.go(self._home[connection])
        try:
            count = self._in[connection].recv_into(into)
        except BlockingIOError:
            return 0
        if count == 0 and len(into):
            raise EmulatorError(f"connection {connection} was closed by its sender in the middle of the run.")
        return count

    def poll(self, timeout_s: float) -> list[Event]:
        events: list[Event] = []
        for fd, mask in self._epoll.poll(timeout_s):
            kind, number = self._by_fd[fd]
            if kind == "in":
                events.append(Event("readable", number))
                continue
            if mask & select.EPOLLERR:
                self._stamps(number, events)
            if mask & select.EPOLLOUT:
                events.append(Event("writable", number))
        events.sort(key=lambda event: self._home[event.connection] != self._cores.here)
        return events

    def _stamps(self, number: int, events: list[Event]) -> None:
        """Drain the error queue; a real socket error there ends the run with a sentence."""
        out = self._out[number]
        failure = out.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if failure:
            raise EmulatorError(f"connection {number} broke: {errno.errorcode.get(failure, failure)}.")
        for _ in range(1024):
            try:
                _, ancillary, _, _ = out.recvmsg(0, 256, _ERRQUEUE)
            except BlockingIOError:
                return
            stamp = acked = None
            for level, kind, data in ancillary:
                if level == socket.SOL_SOCKET and kind == _SO_TIMESTAMPING:
                    seconds, nanoseconds = struct.unpack_from("=qq", data)
                    stamp = seconds + nanoseconds * 1e-9
                elif len(data) >= 16:
                    _, origin, _, _, _, info, offset = struct.unpack_from("=IBBBBII", data)[:7]
                    if origin == _ORIGIN_TIMESTAMPING and info == _STAMP_ACK:
                        acked = offset
            if stamp is not None and acked is not None:
                # the counter is 32 bits wide: take the multiple of 2^32 nearest to what was written
                written = self._written[number]
                acked += (written - acked + (1 << 31)) >> 32 << 32
                events.append(Event("acked", number, acked, stamp - time.time() + time.monotonic()))

    def info(self, connection: int) -> TcpInfo:
        raw = self._out[connection].getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO_BYTES)
        return parse_tcp_info(raw.ljust(_TCP_INFO_BYTES, b"\0"))

    def ports(self, connection: int) -> tuple[int, int]:
        return self._ports[connection], self._out[connection].getpeername()[1]

    def congestion_control(self, connection: int) -> str:
        """Read back from both ends; raises EmulatorError where it is not what was asked for."""
        for end in (self._out[connection], self._in[connection]):
            name = end.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\0").decode()
            if name != self._algorithm:
                raise EmulatorError(f'a socket runs congestion control "{name}" although '
                                    f'"{self._algorithm}" was asked for.')
        return name

    def close(self) -> None:
        self._cores.leave()
        for end in (*self._out, *self._in, *self._listeners):
            end.close()
        self._epoll.close()
