"""Dumps over rtnetlink (RFC 3549): one request, all answers received into one reused buffer.

A dump of some hundred queueing disciplines has to cost little more than the kernel's own part to be
taken hundreds of times a second, which rules out a library that makes an object of every attribute.
Here a dump is bytes in a buffer; `qdisc` and `links` know where in it their numbers stand. Layout:
include/uapi/linux/netlink.h, rtnetlink.h. Integers are in host byte order, everything is aligned to
4 bytes.
"""
from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterator

from emulator.errors import MachineLacks
from emulator.telemetry.namespaces import inside

NLMSG_ERROR, NLMSG_DONE = 2, 3
RTM_NEWLINK, RTM_GETLINK = 16, 18
RTM_NEWQDISC, RTM_GETQDISC = 36, 38
NLM_F_REQUEST, NLM_F_DUMP = 0x1, 0x300
NLMSG_HEADER = struct.Struct("=IHHII")  # length, type, flags, sequence, port
ATTRIBUTE = struct.Struct("=HH")        # length, type
TYPE_MASK = 0x3FFF                      # without NLA_F_NESTED and NLA_F_NET_BYTEORDER

_START = struct.Struct("=IH")
_DONE_BYTES = NLMSG_HEADER.size + 4
_SEQUENCE = 0x51756575  # one request is under way at a time; a value that no counter has by chance
_CHUNK = 32768          # the kernel fills at most this much at once (netlink_dump)
_MAXIMUM = 64 << 20     # more than a dump of 60 000 ports; beyond it something is wrong
_TIMEOUT_S = 5.0
_ZEROS = 16


class DumpBuffer:
    """Memory for the dumps of one or more sockets, one behind the other.

    `memory` is replaced by a larger one when a dump does not fit. Its last bytes are never written:
    whoever gathers numbers from it reads from there, as zero, those that the dump lacks.
    """

    def __init__(self) -> None:
        self.memory = memoryview(bytearray(2 * _CHUNK + _ZEROS))

    def reserve(self, used: int) -> None:
        """Make room for one more chunk behind the first `used` bytes."""
        if used + _CHUNK + _ZEROS <= len(self.memory):
            return
        size = 2 * len(self.memory)
        if size > _MAXIMUM:
            raise MachineLacks(f"A netlink dump of this fabric is larger than {_MAXIMUM} bytes; "
                               f"build a smaller one.")
        larger = memoryview(bytearray(size))
        larger[:used] = self.memory[:used]
        self.memory = larger


class DumpSocket:
    """A NETLINK_ROUTE socket in one namespace that asks for one kind of dump.

    `request` is the fixed part after the netlink header, such as a zeroed tcmsg.
    """

    def __init__(self, message_type: int, request: bytes, netns: str | None = None) -> None:
        with inside(netns):
            self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC,
                                         socket.NETLINK_ROUTE)
        self._socket.settimeout(_TIMEOUT_S)
        self._socket.bind((0, 0))
        self._where = netns or "the sandbox"
        self._request = NLMSG_HEADER.pack(NLMSG_HEADER.size + len(request), message_type,
                                          NLM_F_REQUEST | NLM_F_DUMP, _SEQUENCE, 0) + request

    def dump(self, buffer: DumpBuffer, start: int = 0) -> int:
        """Take one dump into `buffer` from byte `start`; where it ends, the closing message left out.

        Raises MachineLacks when the kernel refuses it or does not answer.
        """
        self._socket.send(self._request)
        length = start
        while True:
            buffer.reserve(length)
            try:
                received = self._socket.recv_into(buffer.memory[length:], _CHUNK)
            except TimeoutError:
                raise MachineLacks(f"The kernel did not answer a netlink dump of {self._where} "
                                   f"within {_TIMEOUT_S:g} s; is the machine overloaded?") from None
            end = length + received
            # the kernel closes a dump by a datagram of its own or, since 6.9, inside the last one
            done = end - _DONE_BYTES
            if done >= length and _is_done(buffer.memory, done):
                self._raise_if_refused(buffer.memory, done)
                return done
            if _START.unpack_from(buffer.memory, length)[1] == NLMSG_ERROR:
                self._raise_if_refused(buffer.memory, length)
            length = end

    def _raise_if_refused(self, memory: memoryview, offset: int) -> None:
        code = struct.unpack_from("=i", memory, offset + NLMSG_HEADER.size)[0]
        if code < 0:
            raise MachineLacks(f"The kernel refused a netlink dump of {self._where}: {os.strerror(-code)}.")

    def close(self) -> None:
        self._socket.close()


def _is_done(memory: memoryview, offset: int) -> bool:
    size, kind, _, sequence, _ = NLMSG_HEADER.unpack_from(memory, offset)
    return size == _DONE_BYTES and kind == NLMSG_DONE and sequence == _SEQUENCE


def messages(memory: memoryview, start: int, end: int, kind: int) -> Iterator[tuple[int, int]]:
    """(offset, end) of each message of type `kind` between byte `start` and byte `end`."""
    offset = start
    while offset + NLMSG_HEADER.size <= end:
        size, found = _START.unpack_from(memory, offset)
        if size < NLMSG_HEADER.size or offset + size > end:
            raise MachineLacks(f"A netlink message claims to be {size} bytes long; the dump is not readable.")
        if found == kind:
            yield offset, offset + size
        offset += (size + 3) & ~3


def attributes(memory: memoryview, start: int, end: int) -> Iterator[tuple[int, int, int]]:
    """(type, offset of the value, end of the value) of each attribute between `start` and `end`."""
    offset = start
    while offset + ATTRIBUTE.size <= end:
        size, kind = ATTRIBUTE.unpack_from(memory, offset)
        if size < ATTRIBUTE.size or offset + size > end:
            raise MachineLacks(f"A netlink attribute claims to be {size} bytes long; "
                               f"the dump is not readable.")
        yield kind & TYPE_MASK, offset + ATTRIBUTE.size, offset + size
        offset += (size + 3) & ~3
