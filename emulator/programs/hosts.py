"""Hosts as a program finds them: a namespace, a host name, names of all others, a congestion control.

All of it is in the sandbox and goes with it. A process is in the namespaces in which its parent was when
it was made, so nothing has to run between fork and exec.
"""
from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from emulator import netns, syscalls
from emulator.errors import MachineLacks
from emulator.fabric.build import NETWORK, PREFIX, Fabric
from emulator.fabric.rtnl import congestion_route
from emulator.fabric.spec import HostSite
from emulator.netlink import Netlink, NetlinkError
from topologies.graph import GATEWAY_IP

HOSTS_FILE, RESOLVER_FILE = Path("/etc/hosts"), Path("/etc/resolv.conf")
_OWN_UTS = "/proc/thread-self/ns/uts"


@contextmanager
def on(site: HostSite) -> Iterator[None]:
    """Processes started in the block run on the host: its network, and its name as their host name.

    Libraries take ranks with the same host name for neighbours on one machine and use shared memory.
    """
    home = os.open(_OWN_UTS, os.O_RDONLY | os.O_CLOEXEC)
    try:
        syscalls.unshare(syscalls.CLONE_NEWUTS)
        socket.sethostname(site.name)
        with netns.entered(site.netns):
            yield
    finally:
        syscalls.setns(home, syscalls.CLONE_NEWUTS)
        os.close(home)


def name_hosts(sites: Sequence[HostSite], directory: Path) -> None:
    """Let every process of the sandbox find the hosts by name, by a private /etc/hosts, and ask nobody else:
    a name server's address can lie within the fabric's network, and questions for it would be packets there.

    `directory` is one of the sandbox's own, to hold the files.
    """
    # sockets of both families see an IPv4 peer under its mapped address, and ask for its name
    lines = ["127.0.0.1 localhost", *(f"{site.ip} {site.name}" for site in sites),
             *(f"::ffff:{site.ip} {site.name}.mapped" for site in sites)]
    for there, text in ((HOSTS_FILE, "\n".join(lines) + "\n"),
                        (RESOLVER_FILE, "# no name server on the fabric\n")):
        written = directory / there.name
        written.write_text(text)
        written.chmod(0o644)
        if there.exists():
            syscalls.mount(str(written), str(there), None, syscalls.MS_BIND)


def use_congestion_control(fabric: Fabric, algorithm: str) -> None:
    """Every connection over the fabric uses `algorithm`, unless its program chooses another afterwards.

    The route says so (RTAX_CC_ALGO): the namespace's default takes only what the machine's administrator
    allows to everybody (net/ipv4/tcp_cong.c: tcp_set_default_congestion_control).
    """
    for site in fabric.hosts:
        ifindex = fabric.port[site.interface].ifindex
        message = congestion_route(ifindex, NETWORK, PREFIX, GATEWAY_IP, site.ip, algorithm,
                                   fabric.spec.quickack)
        with netns.entered(site.netns), Netlink() as netlink:
            try:
                netlink.batch([message])
            except NetlinkError as error:
                raise MachineLacks(f"This kernel sets no congestion control {algorithm} on routes "
                                   f"({error.strerror}); choose another with --cc.") from error
