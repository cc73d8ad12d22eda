"""h1 - s1 - h2 with real packets: s1 is this namespace, forwarding by the kernel's own routing."""
from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tests.telemetry.shaped_pair import SO_RCVBUFFORCE, SO_SNDBUFFORCE, reshape, run, shape

from emulator.fabric.spec import HostSite, Port
from emulator.telemetry.namespaces import inside

FAST_BPS, SLOW_BPS, LIMIT_BYTES = 20_000_000, 5_000_000, 60_000
DATAGRAM_BYTES = 1472


@dataclass(frozen=True)
class RoutedHosts:
    """Four ports; the one from s1 to h2 is the bottleneck."""

    ports: tuple[Port, ...]
    hosts: tuple[HostSite, ...]
    bottleneck: Port


@contextmanager
def routed_hosts() -> Iterator[RoutedHosts]:
    """h1 at 10.0.1.2 and h2 at 10.0.2.2, offloads and IPv6 off; only s1-eth2 runs at SLOW_BPS."""
    run("sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.disable_ipv6=1")
    ports, hosts = [], []
    for number in (1, 2):
        host, near, far = f"h{number}", f"s1-eth{number}", f"h{number}-eth0"
        run(f"ip netns add {host}")
        run(f"ip link add {near} address 02:00:00:00:0{number}:01 numtxqueues 1 numrxqueues 1 type veth"
            f" peer name {far} address 02:00:00:00:0{number}:02 netns {host} numtxqueues 1 numrxqueues 1")
        for netns, device, last, other in ((None, near, 1, 2), (host, far, 2, 1)):
            with inside(netns):
                run("sysctl -qw net.ipv6.conf.all.disable_ipv6=1")
                run(f"ethtool -K {device} tso off gso off gro off tx off rx off")
                shape(device)
                rate_bps = SLOW_BPS if device == "s1-eth2" else FAST_BPS
                reshape(device, rate_bps)
                run(f"ip link set {device} up")
                run(f"ip addr add 10.0.{number}.{last}/24 dev {device}")
                run(f"ip neigh replace 10.0.{number}.{other} lladdr 02:00:00:00:0{number}:0{other}"
                    f" nud permanent dev {device}")
                if netns:
                    run(f"ip route add default via 10.0.{number}.1")
                ports.append(Port(device, host if netns else "s1", 0, socket.if_nametoindex(device), netns,
                                  rate_bps, LIMIT_BYTES, number - 1, near if netns else far))
        hosts.append(HostSite(host, host, f"10.0.{number}.2", far))
    yield RoutedHosts(tuple(ports), tuple(hosts), next(port for port in ports if port.name == "s1-eth2"))


def send_datagrams(seconds: float, rate_bps: float) -> tuple[int, int]:
    """Send from h1 to h2 for so long, wait until the queues are empty; packets sent, received."""
    with inside("h2"):
        sink = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    with inside("h1"):
        source = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    with sink, source:
        sink.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
        source.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, 8 << 20)
        sink.bind(("10.0.2.2", 9))
        sink.settimeout(0.3)
        began, sent = time.monotonic(), 0
        while (elapsed := time.monotonic() - began) < seconds:
            # a sender held up by a busy machine does not catch up in one burst
            due = min(int(elapsed * rate_bps / 8 / (DATAGRAM_BYTES + 42)), sent + 20)
            for _ in range(due - sent):
                source.sendto(bytes(DATAGRAM_BYTES), ("10.0.2.2", 9))
            sent = max(sent, due)
            time.sleep(0.004)
        received = 0
        try:
            while sink.recv(2000):
                received += 1
        except TimeoutError:
            return sent, received
    raise AssertionError("a socket that nothing is sent to does not end")


def stream(seconds: float) -> list[float]:
    """One TCP flow (cubic) from h1 to h2 for so long; smoothed round trips in s, every 10 ms."""
    with inside("h2"):
        listener = socket.create_server(("10.0.2.2", 5001))
    with inside("h1"):
        source = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    with listener, source:
        source.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")
        source.settimeout(5)
        source.connect(("10.0.2.2", 5001))
        sink, _ = listener.accept()
        drain = threading.Thread(target=_drain, args=(sink,))
        drain.start()
        trips_s, began = [], time.monotonic()
        source.setblocking(False)
        while time.monotonic() - began < seconds:
            try:
                while source.send(bytes(65536)):
                    pass
            except BlockingIOError:
                time.sleep(0.01)
            information = source.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)
            trips_s.append(int.from_bytes(information[68:72], "little") * 1e-6)  # tcpi_rtt
        source.shutdown(socket.SHUT_WR)
        drain.join(10)
        assert not drain.is_alive(), "the flow did not end within 10 s"
        sink.close()
    time.sleep(0.05)  # for the last acknowledgements
    return trips_s


def _drain(sink: socket.socket) -> None:
    sink.settimeout(10)
    while sink.recv(1 << 16):
        pass
