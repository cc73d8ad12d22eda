"""A small real network for tests: namespaces that this process enters and leaves, one shaped link.

Everything made in it goes when the last descriptor on it is closed, also when the test is killed.
"""
from __future__ import annotations

import json
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from emulator import syscalls
from emulator.fabric.spec import Port
from emulator.telemetry.namespaces import inside

SO_SNDBUFFORCE, SO_RCVBUFFORCE = 32, 33  # include/uapi/asm-generic/socket.h
BURST_BYTES = 1600
RATE_BPS, LIMIT_BYTES = 5_000_000, 60_000


def run(command: str) -> str:
    """Run a command without a shell; its output. A failure shows what it said."""
    done = subprocess.run(command.split(), capture_output=True, text=True, timeout=10)
    assert done.returncode == 0, f"{command}: {done.stderr}"
    return done.stdout


def shape(device: str) -> None:
    """HTB with one class and a byte-limited leaf, as the fabric builds it."""
    run(f"tc qdisc add dev {device} root handle 1: htb default 1")
    run(f"tc class add dev {device} parent 1: classid 1:1 htb rate {RATE_BPS}bit"
        f" burst {BURST_BYTES} cburst {BURST_BYTES} quantum 1514")
    run(f"tc qdisc add dev {device} parent 1:1 handle 10: bfifo limit {LIMIT_BYTES}")


def reshape(device: str, rate_bps: int) -> None:
    """Give the one class of `device` another rate."""
    run(f"tc class change dev {device} parent 1: classid 1:1 htb rate {rate_bps}bit"
        f" burst {BURST_BYTES} cburst {BURST_BYTES} quantum 1514")


@dataclass(frozen=True)
class Pair:
    """A host h1 (10.0.0.2) on a switch-side port s1-eth1 (10.0.0.1), both shaped."""

    switch: Port
    host: Port

    @property
    def ports(self) -> tuple[Port, Port]:
        return self.switch, self.host


def _sink(netns: str | None) -> socket.socket:
    with inside(netns):
        sink = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sink.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
    sink.bind(("0.0.0.0", 9))
    return sink


def blast(count: int, netns: str | None = None, size_bytes: int = 1472) -> None:
    """Send `count` datagrams at once from `netns` to the other end; most pile up in the first queue."""
    with inside(netns):
        sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    with sender:
        sender.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, 8 << 20)
        for _ in range(count):
            sender.sendto(bytes(size_bytes), ("10.0.0.2" if netns is None else "10.0.0.1", 9))


def overfill(device: str, count: int) -> None:
    """Send `count` full packets to `device` while its queue all but stands still, then let it run on.

    How much is refused then does not depend on how fast a busy machine lets the sender run.
    """
    reshape(device, 100_000)
    blast(count)
    reshape(device, RATE_BPS)


def drained(device: str) -> None:
    """Wait until nothing is queued at `device` and what was sent has arrived; fails after 3 s."""
    deadline = time.monotonic() + 3
    while any(entry["backlog"] for entry in json.loads(run(f"tc -s -j qdisc show dev {device}"))):
        assert time.monotonic() < deadline, f"the queue of {device} did not drain within 3 s"
        time.sleep(0.02)
    time.sleep(0.02)


@contextmanager
def private_network() -> Iterator[None]:
    """A network and mount namespace for the time of the block, with a /run/netns of its own."""
    homes = [os.open(f"/proc/self/ns/{kind}", os.O_RDONLY) for kind in ("net", "mnt")]
    here = os.getcwd()
    try:
        syscalls.unshare(syscalls.CLONE_NEWNET | syscalls.CLONE_NEWNS)
        try:
            syscalls.mount("none", "/", None, syscalls.MS_REC | syscalls.MS_PRIVATE)
            syscalls.mount("tmpfs", "/run", "tmpfs")
            os.mkdir("/run/netns")
            run("ip link set lo up")
            yield
        finally:
            syscalls.setns(homes[0], syscalls.CLONE_NEWNET)
            syscalls.setns(homes[1], syscalls.CLONE_NEWNS)
            os.chdir(here)
    finally:
        for home in homes:
            os.close(home)


@contextmanager
def shaped_pair() -> Iterator[Pair]:
    """One host, one port, offloads and IPv6 off, neighbours known, somebody listening at both ends."""
    run("ip netns add h1")
    run("ip link add s1-eth1 address 02:00:00:00:00:01 numtxqueues 1 numrxqueues 1 type veth"
        " peer name h1-eth0 address 02:00:00:00:00:02 netns h1 numtxqueues 1 numrxqueues 1")
    for netns, device, ip in ((None, "s1-eth1", "10.0.0.1"), ("h1", "h1-eth0", "10.0.0.2")):
        with inside(netns):
            run("sysctl -qw net.ipv6.conf.all.disable_ipv6=1")
            run(f"ethtool -K {device} tso off gso off gro off tx off rx off")
            shape(device)
            run(f"ip link set {device} up")
            run(f"ip addr add {ip}/24 dev {device}")
            other = {"10.0.0.1": "2", "10.0.0.2": "1"}[ip]
            run(f"ip neigh replace 10.0.0.{other} lladdr 02:00:00:00:00:0{other} nud permanent dev {device}")
    with inside("h1"):
        host_index = socket.if_nametoindex("h1-eth0")
    # without somebody listening each datagram may be answered by an ICMP error
    with _sink(None), _sink("h1"):
        yield Pair(
            Port("s1-eth1", "s1", 1, socket.if_nametoindex("s1-eth1"), None, RATE_BPS, LIMIT_BYTES, 0,
                 "h1-eth0"),
            Port("h1-eth0", "h1", 0, host_index, "h1", RATE_BPS, LIMIT_BYTES, 0, "s1-eth1"))
