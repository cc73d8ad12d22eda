"""Nothing is measured before every path is proven: a UDP and a TCP probe between host pairs.

UDP probes are small and many (one per source port, since multipath switches hash ports); a TCP probe
per pair carries full frames both ways, because a path may carry pings and lose what is large or badly
checksummed. All sockets live in one process and one event loop; everything is bounded in time.
"""
from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from emulator import netns
from emulator.errors import EmulatorError, Unfinished
from emulator.fabric.build import Fabric
from emulator.fabric.diagnose import first_doubt, port_counts
from emulator.machine import require_open_files

GATE_PORT = 4991  # where probes go; the workload uses others
AT_ONCE = 64
TCP_AT_ONCE = 8
_UDP_TRIES, _UDP_WAIT_S = 8, 0.5
_MOST_LINKS = 8  # of a path, in any fabric that is shipped
_GIVE_UP_AFTER = 8  # failed probes: more would only repeat the news
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)  # no TIME_WAIT that would hold a port the workload wants


@dataclass(frozen=True)
class Probe:
    """One probe between two hosts, by name; `source_port` 0 lets the kernel choose."""

    source: str
    destination: str
    source_port: int = 0


@dataclass(frozen=True)
class Proof:
    """How many probes came back, and the interfaces that sent nothing meanwhile (unproven directions)."""

    udp: int
    tcp: int
    silent: tuple[str, ...]


def prove(fabric: Fabric, probes: Sequence[Probe]) -> Proof:
    """Send every UDP probe, and a TCP probe for each pair among them; all must come back.

    Raises Unfinished with the pairs that failed and the first place on the way to look at.
    """
    destinations = {probe.destination for probe in probes}
    require_open_files(2 * len(destinations) + 4 * AT_ONCE)
    before = port_counts(fabric)
    sockets = _Sockets(fabric, destinations)
    try:
        failed, udp, tcp = asyncio.run(_prove(fabric, sockets, probes))
    finally:
        sockets.close()
    if failed:
        pairs = list(dict.fromkeys((probe.source, probe.destination) for _, probe in failed))
        shown = ", ".join(f"{source} to {destination}" for source, destination in pairs[:4])
        more = f" and {len(pairs) - 4} more pairs" if len(pairs) > 4 else ""
        raise Unfinished(f"The fabric does not carry packets: {failed[0][0]} probes got no answer from "
                         f"{shown}{more}. {first_doubt(fabric, *pairs[0], GATE_PORT)}")
    after = port_counts(fabric)
    return Proof(udp, tcp, tuple(name for name in after if after[name] == before[name]))


class _Sockets:
    """Echo servers on all destinations, and client sockets made in their hosts' namespaces."""

    def __init__(self, fabric: Fabric, destinations: Iterable[str]) -> None:
        self._fabric = fabric
        self.listeners: list[socket.socket] = []
        self.echoes: list[socket.socket] = []
        for host in sorted(destinations):
            self.listeners.append(self.make(host, socket.SOCK_STREAM, GATE_PORT))
            self.listeners[-1].listen(AT_ONCE)
            self.echoes.append(self.make(host, socket.SOCK_DGRAM, GATE_PORT))

    def make(self, host: str, kind: socket.SocketKind, port: int) -> socket.socket:
        """A non-blocking socket of `host`, bound to its address and `port`.

        Probes to several destinations may leave from one port at a time: they are told apart by where they
        are connected to, as flows are. Raises EmulatorError where the kernel refuses the socket.
        """
        site = self._fabric.site[host]
        made = None
        try:
            with netns.entered(site.netns):
                made = socket.socket(socket.AF_INET, kind)
            made.setblocking(False)
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if kind == socket.SOCK_STREAM:
                made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
            made.bind((site.ip, port))
        except OSError as error:
            if made:
                made.close()
            name = "TCP" if kind == socket.SOCK_STREAM else "UDP"
            raise EmulatorError(f"The gate cannot probe {host} from its {name} port {port or 'any'}: "
                                f"{error.strerror}. Free that port of the host, or run again.") from error
        return made

    def close(self) -> None:
        for server in (*self.listeners, *self.echoes):
            server.close()


async def _prove(fabric: Fabric, sockets: _Sockets,
                 probes: Sequence[Probe]) -> tuple[list[tuple[str, Probe]], int, int]:
    """(the probes that failed with their kind, UDP probes sent, TCP probes sent)."""
    loop = asyncio.get_running_loop()
    for echo in sockets.echoes:
        loop.add_reader(echo, _echo_datagrams, echo)
    servers = [asyncio.create_task(_accept(listener)) for listener in sockets.listeners]
    delays_s = 2 * _MOST_LINKS * fabric.spec.delay_s
    slowest_bps = min(port.rate_bps for port in fabric.ports)
    full = (2 * fabric.spec.mtu + 1) * 8 / slowest_bps  # seconds that a TCP probe occupies a link
    pairs = list({(probe.source, probe.destination): probe for probe in reversed(probes)}.values())[::-1]
    failed: list[tuple[str, Probe]] = []
    try:
        for kind, wanted, one, width, wait_s in (
                ("UDP", probes, _udp, AT_ONCE, _UDP_WAIT_S + delays_s + 100 * AT_ONCE * 8 / slowest_bps),
                ("TCP", pairs, _tcp, TCP_AT_ONCE, 5.0 + 8 * delays_s + 4 * TCP_AT_ONCE * full)):
            free = asyncio.Semaphore(width)

            async def guarded(probe, one=one, kind=kind, free=free, wait_s=wait_s):
                async with free:
                    if len(failed) < _GIVE_UP_AFTER and not await one(fabric, sockets, probe, wait_s):
                        failed.append((kind, probe))

            await asyncio.gather(*map(guarded, wanted))
            if failed:
                break
    finally:
        for task in servers:
            task.cancel()
        await asyncio.gather(*servers, return_exceptions=True)
        for echo in sockets.echoes:
            loop.remove_reader(echo)
    return failed, len(probes), len(pairs)


def _echo_datagrams(echo: socket.socket) -> None:
    while True:
        try:
            data, sender = echo.recvfrom(2048)
            echo.sendto(data, sender)
        except BlockingIOError:
            return


async def _udp(fabric: Fabric, sockets: _Sockets, probe: Probe, wait_s: float) -> bool:
    """Does a small datagram come back, at the latest after some tries?"""
    loop = asyncio.get_running_loop()
    with sockets.make(probe.source, socket.SOCK_DGRAM, probe.source_port) as client:
        client.connect((fabric.site[probe.destination].ip, GATE_PORT))
        token = f"{probe.source} {probe.destination} {probe.source_port}".encode()
        for _ in range(_UDP_TRIES):
            try:
                await loop.sock_sendall(client, token)
                if await asyncio.wait_for(loop.sock_recv(client, 2048), wait_s) == token:
                    return True
            except (asyncio.TimeoutError, OSError):  # refused or unreachable is no answer either
                continue
    return False


async def _accept(listener: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    tasks: set[asyncio.Task] = set()
    try:
        while True:
            client, _ = await loop.sock_accept(listener)
            task = asyncio.create_task(_echo_stream(client))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
    finally:
        for task in tasks:
            task.cancel()


async def _echo_stream(client: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    with client:
        try:
            while data := await loop.sock_recv(client, 1 << 16):
                await loop.sock_sendall(client, data)
        except ConnectionResetError:  # the prober has what it wanted
            return


async def _tcp(fabric: Fabric, sockets: _Sockets, probe: Probe, wait_s: float) -> bool:
    """Do two full frames and a bit, sent over TCP, come back unchanged?"""
    loop = asyncio.get_running_loop()
    size = 2 * fabric.spec.mtu + 1
    content = (f"{probe.source} {probe.destination} ".encode() * size)[:size]

    async def exchange(client: socket.socket) -> bytes:
        await loop.sock_connect(client, (fabric.site[probe.destination].ip, GATE_PORT))
        await loop.sock_sendall(client, content)
        back = b""
        while len(back) < size and (data := await loop.sock_recv(client, 1 << 16)):
            back += data
        return back

    with sockets.make(probe.source, socket.SOCK_STREAM, probe.source_port) as client:
        try:
            return await asyncio.wait_for(exchange(client), wait_s) == content
        except (asyncio.TimeoutError, OSError):
            return False
