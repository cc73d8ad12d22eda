"""Netlink in bulk: many messages in one system call, each acknowledged, and whole-table dumps.

One message is some 10-20 us where a process of `ip` or `tc` is 2 ms, and the kernel's own sentence comes
back with an error (NLMSGERR_ATTR_MSG). Only the framing is here: include/uapi/linux/netlink.h. What is
inside a message is the business of those who send it.
"""
from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

NETLINK_ROUTE = 0
NETLINK_GENERIC = 16

REQUEST, ACK, DUMP = 0x001, 0x004, 0x300
REPLACE, EXCLUSIVE, CREATE = 0x100, 0x200, 0x400
NESTED = 0x8000

_ERROR, _DONE = 2, 3
_ACK_TLVS = 0x200
_ERROR_TEXT = 1
_SOL_NETLINK, _CAP_ACK, _EXT_ACK, _STRICT = 270, 10, 11, 12
_SO_RCVBUFFORCE = 33

_HEADER = struct.Struct("=IHHII")
_AT_ONCE = 100  # messages a system call: their acknowledgements must fit the receive buffer
_BUFFER_BYTES = 1 << 20


class NetlinkError(OSError):
    """The kernel refused a message; `index` is its place in the batch, the text is the kernel's."""

    def __init__(self, number: int, text: str, index: int) -> None:
        super().__init__(number, text or os.strerror(number))
        self.index = index


@dataclass(frozen=True, slots=True)
class Message:
    """A request: its type, its flags beyond REQUEST|ACK, and its body (fixed part and attributes)."""

    kind: int
    body: bytes
    flags: int = 0


def attribute(kind: int, value: bytes) -> bytes:
    """One attribute (struct nlattr), padded to four bytes."""
    return struct.pack("=HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)


def text(kind: int, value: str) -> bytes:
    """A zero-terminated string attribute."""
    return attribute(kind, value.encode() + b"\0")


def u32(kind: int, value: int) -> bytes:
    """A 32-bit attribute."""
    return attribute(kind, struct.pack("=I", value))


def nest(kind: int, *parts: bytes) -> bytes:
    """An attribute that holds attributes."""
    return attribute(kind | NESTED, b"".join(parts))


def attributes(body: bytes, start: int = 0) -> dict[int, bytes]:
    """The attributes of `body` from byte `start` on, by kind; of a repeated kind the last one."""
    found: dict[int, bytes] = {}
    while start + 4 <= len(body):
        length, kind = struct.unpack_from("=HH", body, start)
        if length < 4:
            break
        found[kind & 0x3FFF] = body[start + 4:start + length]
        start += length + (-length % 4)
    return found


class Netlink:
    """A netlink socket of the namespace in which it was opened; use it in a `with` block."""

    def __init__(self, protocol: int = NETLINK_ROUTE) -> None:
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, protocol)
        self._sequence = 0
        for option in (_CAP_ACK, _EXT_ACK, _STRICT):
            self._socket.setsockopt(_SOL_NETLINK, option, 1)
        if os.geteuid() == 0:
            self._socket.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _BUFFER_BYTES)
        self._socket.settimeout(30.0)  # the kernel answers at once; a silence is a fault, not a wait
        self._socket.bind((0, 0))

    def __enter__(self) -> Netlink:
        return self

    def __exit__(self, *_exception) -> None:
        self._socket.close()

    def batch(self, messages: Sequence[Message]) -> None:
        """Send all messages, in order; raises NetlinkError for the first that was refused."""
        for start in range(0, len(messages), _AT_ONCE):
            self._batch(messages[start:start + _AT_ONCE], start)

    def dump(self, kind: int, body: bytes) -> Iterator[bytes]:
        """The bodies of all objects that a dump request returns."""
        self._send([Message(kind, body, DUMP)], 0)
        for _, reply_kind, reply in self._replies():
            if reply_kind == _DONE:
                self._check(reply, 0)
                return
            if reply_kind == _ERROR:
                self._check(reply, 0)
            yield reply

    def ask(self, message: Message) -> bytes:
        """The body of the one object that a request returns."""
        self._send([message], 0)
        for _, kind, reply in self._replies():
            if kind == _ERROR:
                self._check(reply, 0)
            return reply
        raise NetlinkError(0, "no answer", 0)

    def _send(self, messages: Iterable[Message], flags: int) -> int:
        first, parts = self._sequence + 1, []
        for message in messages:
            self._sequence += 1
            parts.append(_HEADER.pack(_HEADER.size + len(message.body), message.kind,
                                      REQUEST | flags | message.flags, self._sequence, 0))
            parts.append(message.body)
            parts.append(bytes(-len(message.body) % 4))
        self._socket.send(b"".join(parts))
        return first

    def _replies(self) -> Iterator[tuple[int, int, bytes]]:
        """(sequence, type, body) of replies as they come, without end."""
        while True:
            data = self._socket.recv(1 << 17)
            at = 0
            while at + _HEADER.size <= len(data):
                length, kind, flags, sequence, _ = _HEADER.unpack_from(data, at)
                body = data[at + _HEADER.size:at + length]
                if kind == _ERROR and not flags & _ACK_TLVS:
                    body = body[:4]
                yield sequence, kind, body
                at += length + (-length % 4)

    def _batch(self, messages: Sequence[Message], offset: int) -> None:
        first = self._send(messages, ACK)
        failure: NetlinkError | None = None
        answered = 0
        for sequence, kind, body in self._replies():
            if kind == _ERROR and first <= sequence < first + len(messages):
                answered += 1
                try:
                    self._check(body, offset + sequence - first)
                except NetlinkError as error:
                    failure = failure or error
            if answered == len(messages):
                break
        if failure:
            raise failure

    @staticmethod
    def _check(body: bytes, index: int) -> None:
        """Raise what an NLMSG_ERROR or NLMSG_DONE body says, if it says a failure."""
        code = struct.unpack_from("=i", body)[0] if len(body) >= 4 else 0
        if code < 0:
            # after the code comes the header of the request (its payload is capped), then attributes
            told = attributes(body, 4 + _HEADER.size).get(_ERROR_TEXT, b"")
            raise NetlinkError(-code, told.rstrip(b"\0").decode(errors="replace"), index)
