"""Where a switch listens for clients, in Open vSwitch's spelling: 'unix:PATH' or 'tcp:127.0.0.1:PORT'."""
from __future__ import annotations

import os
import socket
import stat
from collections.abc import Collection
from dataclasses import dataclass

from emulator.errors import BadInput

_BACKLOG = 8
_PATH_BYTES = 107


@dataclass(frozen=True)
class ListeningSocket:
    """A listening socket and, for a Unix one, the file it leaves behind."""

    sock: socket.socket
    path: str | None = None

    def close(self) -> None:
        self.sock.close()
        if self.path is not None and os.path.exists(self.path):
            os.unlink(self.path)


def listen_on(address: str, dpid: int, known: Collection[int]) -> ListeningSocket:
    """Listen at `address` for switch `dpid`; BadInput for an unknown switch or an address of another kind."""
    if dpid not in known:
        raise BadInput(f"Listening was asked for switch {dpid:016x}, which the fabric does not have.")
    kind, _, rest = address.partition(":")
    try:
        if kind == "unix" and rest:
            return ListeningSocket(_listen_unix(rest), rest)
        host, _, port = rest.rpartition(":")
        if kind == "tcp" and host == "127.0.0.1" and port.isdigit() and 0 < int(port) < 65536:
            return ListeningSocket(socket.create_server((host, int(port)), backlog=_BACKLOG))
    except OSError as error:
        why = error.strerror or error
        raise BadInput(f"Switch {dpid:016x} cannot listen at {address}: {why}.") from error
    raise BadInput(f'"{address}" is no address to listen at; write unix:PATH or tcp:127.0.0.1:PORT.')


def _listen_unix(path: str) -> socket.socket:
    if len(os.fsencode(path)) > _PATH_BYTES:
        raise BadInput(f"The socket path {path} is longer than the {_PATH_BYTES} bytes that Linux allows.")
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    if os.path.exists(path) and stat.S_ISSOCK(os.stat(path).st_mode) and sock.connect_ex(path):
        os.unlink(path)  # nobody answers: left by an agent that was killed
        sock.close()
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.bind(path)
    sock.listen(_BACKLOG)
    return sock
