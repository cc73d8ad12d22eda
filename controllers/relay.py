"""Carries the OpenFlow connections of a run to a controller outside: `python -m controllers.relay CONFIG`.

It listens in the sandbox and connects in another network namespace, which a thread enters for the moment in
which it makes the socket. Nothing listens outside. It counts the packets that switches send up
(OFPT_PACKET_IN).
"""
from __future__ import annotations

import json
import logging
import selectors
import socket
import struct
import sys

from controllers.parent import die_with_parent
from emulator import syscalls

LOG = logging.getLogger("relay")
PACKET_IN = 10  # OFPT_PACKET_IN
CONNECT_S = 3.0
CHUNK_BYTES, MOST_WAITING = 1 << 16, 1 << 20
_HEADER = struct.Struct("!BBHI")


class Framer:
    """Counts messages of one kind in a stream of OpenFlow messages."""

    def __init__(self, kind: int) -> None:
        self._kind, self._head, self._skip = kind, b"", 0
        self.count = 0

    def feed(self, data: bytes) -> None:
        """More of the stream."""
        at = 0
        while at < len(data):
            step = min(self._skip, len(data) - at)
            self._skip, at = self._skip - step, at + step
            missing = _HEADER.size - len(self._head)
            self._head += data[at:at + missing]
            at += min(missing, len(data) - at)
            if len(self._head) == _HEADER.size:
                _, kind, length, _ = _HEADER.unpack(self._head)
                self.count += kind == self._kind
                self._head, self._skip = b"", max(0, length - _HEADER.size)


class End:
    """One socket of a pair: what it still has to be sent, and its other half."""

    def __init__(self, sock: socket.socket, framer: Framer | None) -> None:
        self.sock, self.framer = sock, framer
        self.waiting = bytearray()
        self.other: End = self
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


class Relay:
    """All connections; `packet_ins` so far."""

    def __init__(self, config: dict) -> None:
        self._config = config
        self._selector = selectors.DefaultSelector()
        self._framers: list[Framer] = []
        self._listener = socket.create_server(("127.0.0.1", config["port"]), backlog=1024)
        self._books = socket.socket(socket.AF_UNIX)
        self._books.bind(config["socket"])
        self._books.listen(16)
        self._home = open("/proc/self/ns/net", "rb")  # noqa: SIM115  (open as long as the process is)
        for listener, act in ((self._listener, self._accept), (self._books, self._answer)):
            self._selector.register(listener, selectors.EVENT_READ, act)

    @property
    def packet_ins(self) -> int:
        return sum(framer.count for framer in self._framers)

    def run(self) -> None:
        """Until it is killed."""
        while True:
            self.serve(None)

    def serve(self, timeout_s: float | None) -> None:
        """All that has come by now; wait for something to come, timeout_s at most (None: for ever)."""
        for key, events in self._selector.select(timeout_s):
            if isinstance(key.data, End):
                self._serve(key.data, events)
            else:
                key.data()

    def _accept(self) -> None:
        inside, _ = self._listener.accept()
        try:
            syscalls.setns(self._config["outside"], syscalls.CLONE_NEWNET)
            try:
                outside = socket.create_connection((self._config["host"], self._config["to_port"]), CONNECT_S)
            finally:
                syscalls.setns(self._home.fileno(), syscalls.CLONE_NEWNET)
        except OSError as error:
            LOG.warning("no connection to the external controller: %s", error)
            inside.close()  # the switch tries again
            return
        self.join(inside, outside)

    def join(self, inside: socket.socket, outside: socket.socket) -> None:
        """From now on what a switch sends on `inside` goes to the controller on `outside`, and back."""
        self._framers.append(Framer(PACKET_IN))
        near, far = End(inside, self._framers[-1]), End(outside, None)
        near.other, far.other = far, near
        for end in (near, far):
            self._selector.register(end.sock, selectors.EVENT_READ, end)

    def _answer(self) -> None:
        connection, _ = self._books.accept()
        with connection:
            connection.settimeout(1.0)
            try:
                connection.recv(4096)
                connection.sendall(json.dumps({"packet_ins": self.packet_ins}).encode())
            except OSError as error:
                LOG.warning("a reader went away: %s", error)

    def _serve(self, end: End, events: int) -> None:
        if end.sock.fileno() < 0:
            return  # its other half closed both, a moment ago in the same round
        try:
            if events & selectors.EVENT_READ:
                data = end.sock.recv(CHUNK_BYTES)
                if not data:
                    self._close(end)
                    return
                if end.framer:
                    end.framer.feed(data)
                end.other.waiting += data
                self._flush(end.other)
            if events & selectors.EVENT_WRITE:
                self._flush(end)
        except BlockingIOError:
            return
        except OSError as error:
            LOG.warning("a connection broke: %s", error)
            self._close(end)

    def _flush(self, end: End) -> None:
        try:
            del end.waiting[:end.sock.send(end.waiting)]
        except BlockingIOError:
            pass
        self._wanted(end)
        self._wanted(end.other)

    def _wanted(self, end: End) -> None:
        """Write what waits; read only while the other side keeps up."""
        events = (selectors.EVENT_WRITE if end.waiting else 0) | (
            selectors.EVENT_READ if len(end.other.waiting) < MOST_WAITING else 0)
        self._selector.modify(end.sock, events or selectors.EVENT_WRITE, end)

    def _close(self, end: End) -> None:
        for each in (end, end.other):
            self._selector.unregister(each.sock)
            each.sock.close()


def main(config: dict) -> None:
    """'ready' on standard output once it listens."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(levelname)s %(message)s")
    die_with_parent(config["parent_pid"])
    relay = Relay(config)
    print("ready", flush=True)
    relay.run()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
