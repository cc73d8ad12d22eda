"""Datagrams between hosts, sent as fast as their links let them, and what arrived of them."""
from __future__ import annotations

import selectors
import socket
import time
from collections import Counter
from dataclasses import dataclass, field

from emulator import netns
from tests.asic.fabrics import SO_RCVBUFFORCE

_SEND_BUFFER = 16_000  # less than the host's queue, so that a sender waits instead of losing packets
PORT = 7000


@dataclass
class Stream:
    """Datagrams of `payload` bytes from host to host with this DSCP and ECN field; 0 bytes/s: flat out."""

    source: str
    destination: str
    payload: int = 1400
    dscp: int = 0
    ecn: int = 0
    bytes_per_s: float = 0.0
    sent: int = 0
    received: int = 0
    ce: int = 0
    arrivals_s: list[float] = field(default_factory=list)


def _socket(host: str, port: int) -> socket.socket:
    with netns.entered(host):
        made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    made.bind(("0.0.0.0", port))
    made.setblocking(False)
    return made


def exchange(streams: list[Stream], addresses: dict[str, str], duration_s: float,
             at: dict[float, object] | None = None, settle_s: float = 0.5) -> None:
    """Send for `duration_s`, then receive until nothing came for `settle_s`; the streams hold the counts.

    at: seconds after the start -> a function to call then.
    """
    receivers, senders = selectors.DefaultSelector(), []
    for index, stream in enumerate(streams):
        sink = _socket(stream.destination, PORT + index)
        sink.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 8 << 20)
        sink.setsockopt(socket.IPPROTO_IP, socket.IP_RECVTOS, 1)
        receivers.register(sink, selectors.EVENT_READ, stream)
        source = _socket(stream.source, 0)
        source.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER)
        source.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, stream.dscp << 2 | stream.ecn)
        source.connect((addresses[stream.destination], PORT + index))
        senders.append((source, stream, bytes(stream.payload)))
    events = sorted((at or {}).items())
    start_s = time.monotonic()
    while (now := time.monotonic() - start_s) < duration_s:
        while events and events[0][0] <= now:
            events.pop(0)[1]()
        for source, stream, data in senders:
            while not stream.bytes_per_s or stream.sent * stream.payload < stream.bytes_per_s * now:
                try:
                    source.send(data)
                except BlockingIOError:
                    break
                stream.sent += 1
        _receive(receivers, 0.001, start_s)
    quiet_since_s = time.monotonic()
    while time.monotonic() - quiet_since_s < settle_s:
        if _receive(receivers, 0.05, start_s):
            quiet_since_s = time.monotonic()
    for key in list(receivers.get_map().values()):
        key.fileobj.close()
    for source, _, _ in senders:
        source.close()


def _receive(receivers: selectors.BaseSelector, timeout_s: float, start_s: float) -> int:
    count = 0
    for key, _ in receivers.select(timeout_s):
        while True:
            try:
                _, ancillary, _, _ = key.fileobj.recvmsg(2048, 64)
            except BlockingIOError:
                break
            count += 1
            key.data.received += 1
            key.data.ce += any(data[0] & 3 == 3 for _, _, data in ancillary)
            key.data.arrivals_s.append(time.monotonic() - start_s)
    return count


def per_window(stream: Stream, window_s: float) -> Counter:
    """Packets that arrived in each window after the start."""
    return Counter(int(arrival / window_s) for arrival in stream.arrivals_s)
