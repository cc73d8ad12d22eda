"""A non-blocking socket with an OpenFlow session on it."""
from __future__ import annotations

import errno
import os
import selectors
import socket

from emulator.asic.openflow.session import Session

_RECEIVE_BYTES = 1 << 16
# Above this much unsent the peer is not read from: it must take its answers before it asks on.
_BACKLOG_BYTES = 1 << 20


class Connection:
    """One socket of one switch. Its methods return False once the connection is over.

    `retry_s` is None for a client that came to us; for a connection to the controller it is how long
    was waited before it was tried.
    """

    def __init__(self, sock: socket.socket, session: Session, now_s: float,
                 retry_s: float | None = None) -> None:
        self.sock = sock
        self.session = session
        self.retry_s = retry_s
        self.connected = retry_s is None
        self.heard_s = now_s
        self.probed = False
        self.why_closed = ""
        sock.setblocking(False)
        if sock.family == socket.AF_INET:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def wanted_events(self) -> int:
        """What the selector should wait for."""
        if not self.connected:
            return selectors.EVENT_WRITE
        waiting = len(self.session.out)
        return ((selectors.EVENT_WRITE if waiting else 0)
                | (selectors.EVENT_READ if waiting < _BACKLOG_BYTES else 0))

    def connect(self, address: tuple[str, int]) -> bool:
        """Begin to connect; the outcome comes as an event."""
        return self._judge(self.sock.connect_ex(address))

    def finish_connecting(self) -> bool:
        """The outcome of `connect`."""
        self.connected = self._judge(self.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR))
        return self.connected

    def _judge(self, error: int) -> bool:
        return error in (0, errno.EINPROGRESS) or self._over(os.strerror(error))

    def receive(self, now_s: float) -> bool:
        """Read once and carry out what came."""
        try:
            data = self.sock.recv(_RECEIVE_BYTES)
        except BlockingIOError:
            return True
        except OSError as error:
            return self._over(str(error))
        if not data:
            return self._over("the peer closed the connection")
        self.heard_s, self.probed = now_s, False
        self.session.receive(data)
        return True

    def flush(self) -> bool:
        """Send as much as the socket takes."""
        out = self.session.out
        while out and self.connected:
            try:
                sent = self.sock.send(out[:_RECEIVE_BYTES])
            except BlockingIOError:
                return True
            except OSError as error:
                return self._over(str(error))
            del out[:sent]
        if self.session.closing is not None and not out:
            return self._over(self.session.closing)
        return True

    def alive(self, now_s: float, probe_after_s: float, give_up_after_s: float) -> bool:
        """Probe a silent peer; False once it has been silent for too long."""
        silent_s = now_s - self.heard_s
        if silent_s > give_up_after_s:
            return self._over(f"nothing heard for {silent_s:.0f} s")
        if silent_s > probe_after_s and self.session.version is not None and not self.probed:
            self.probed = True
            self.session.probe()
        return True

    def _over(self, why: str) -> bool:
        self.why_closed = why
        return False
