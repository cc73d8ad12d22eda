"""What root tests do inside a sandbox: `python -m tests.fabric.scenes SCENE RESULT.json`.

Each scene takes the payload's arguments and returns plain data for the test to judge.
"""
from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path

from emulator import netns
from emulator.fabric import rtnl
from emulator.fabric.build import build, queue_messages
from emulator.fabric.link import shape, tc_lines
from emulator.fabric.spec import FabricSpec
from emulator.fabric.verify import verify_links, wait_until_verified
from emulator.netlink import Netlink
from emulator.sandbox.enter import payload
from tests.fabric.graphs import fat_tree, leaf_spine

RATE_BPS, MTU, BUFFER_BYTES = 10e6, 1500, 60_000


def shell(*argv: str, netns_name: str | None = None, timeout_s: float = 20) -> str:
    """The standard output of a program, which must succeed."""
    prefix = ["ip", "netns", "exec", netns_name] if netns_name else []
    return subprocess.run([*prefix, *argv], check=True, capture_output=True, text=True,
                          timeout=timeout_s).stdout


def small(switch: str = "ovs", **size: int) -> FabricSpec:
    return FabricSpec(leaf_spine(**size), RATE_BPS, MTU, BUFFER_BYTES, switch, "netdev", 1)


def link_count() -> int:
    with Netlink() as netlink:
        return len(rtnl.links(netlink))


def built(tmp: str) -> dict:
    """The kernel's own words about one host and one switch port of a built fabric."""
    fabric = build(small())
    wait_until_verified(fabric)
    return {
        "address": shell("ip", "-j", "addr", netns_name="h1"), "route": shell("ip", "route", netns_name="h1"),
        "neighbour": shell("ip", "neigh", netns_name="h1"),
        "host_queue": shell("tc", "-d", "class", "show", "dev", "h1-eth0", netns_name="h1"),
        "switch_queue": shell("tc", "-d", "class", "show", "dev", "s1-eth1"),
        "leaf": shell("tc", "qdisc", "show", "dev", "s1-eth1"),
        "offloads": shell("ethtool", "-k", "s1-eth1") + shell("ethtool", "-k", "h1-eth0", netns_name="h1"),
        "settings": shell("sysctl", "-n", "net.ipv4.tcp_slow_start_after_idle",
                          "net.ipv4.tcp_no_metrics_save", "net.ipv4.tcp_ecn", netns_name="h1").split(),
        "ipv6": Path("/proc/net/if_inet6").read_text() + shell("cat", "/proc/net/if_inet6", netns_name="h1")
        if Path("/proc/net/if_inet6").exists() else "",
        "indexes": [port.ifindex for port in fabric.ports],
        "links": link_count(), "hosts": [site.name for site in fabric.hosts],
    }


TAMPERINGS = {  # what somebody does behind our back: the words that must appear
    "tc qdisc del dev l1-eth1 root": "l1-eth1 is not shaped any more: its root qdisc is noqueue",
    "tc class change dev l1-eth2 parent 1: classid 1:1 htb rate 11mbit": "l1-eth2 has rate 11 Mb/s",
    "tc qdisc change dev l1-eth3 parent 1:1 handle 10: bfifo limit 3000": "queue 3 kB instead of",
    "tc class add dev l2-eth1 parent 1: classid 1:2 htb rate 1mbit": "l2-eth1 has 2 HTB classes",
    "tc qdisc replace dev l2-eth2 root pfifo": "l2-eth2 is not shaped any more: its root qdisc is pfifo",
    "tc qdisc del dev l2-eth3 parent 1:1 handle 10:": "The queue of l2-eth3 is",
    "ip link set s1-eth1 mtu 1400": "s1-eth1 has an MTU of 1400",
    "ip link set s1-eth2 down": "s1-eth2 is down",
    "ip netns exec h4 tc qdisc del dev h4-eth0 root": "h4-eth0 is not shaped any more",
    "ip netns exec h3 ip link del h3-eth0": "h3-eth0 is gone",
}


def tampered(tmp: str) -> dict:
    """For each tampering: the faults found."""
    fabric = build(small())
    wait_until_verified(fabric)
    found = {}
    for command in TAMPERINGS:
        shell(*command.split())
        found[command] = verify_links(fabric)
    return found


def tc_says(device: str) -> str:
    return shell("tc", "-d", "class", "show", "dev", device) + shell("tc", "qdisc", "show", "dev", device)


def same_as_tc(tmp: str) -> dict:
    """Our netlink messages and the lines for tc must leave the same class and qdisc behind."""
    texts = {}
    for rate_bps in (0.5e6, 10e6, 1e9, 40e9):
        made = shape(rate_bps, MTU, BUFFER_BYTES)
        shell("ip", "link", "add", "probe", "type", "veth", "peer", "name", "other")
        subprocess.run(["tc", "-batch", "-"], input="\n".join(tc_lines(made, "probe")), text=True, check=True)
        by_tc = tc_says("probe")
        shell("tc", "qdisc", "del", "dev", "probe", "root")
        with Netlink() as netlink:
            netlink.batch(queue_messages(rtnl.links(netlink)["probe"][0], made))
        ours = tc_says("probe")
        shell("ip", "link", "del", "probe")
        texts[f"{rate_bps:g}"] = (by_tc, ours)
    return texts


def namespaces(tmp: str) -> dict:
    """Namespaces made and entered by us, as `ip netns` and sockets see them."""
    netns.create("one")
    twice = ""
    try:
        netns.create("one")
    except FileExistsError as error:
        twice = str(error.filename)
    home = Path("/proc/thread-self/ns/net").readlink()
    with netns.entered("one"):
        there = Path("/proc/thread-self/ns/net").readlink()
        links = [name for _, name in socket.if_nameindex()]
    try:
        with netns.entered("one"):
            raise ValueError
    except ValueError:
        back = Path("/proc/thread-self/ns/net").readlink()
    return {"home": str(home), "there": str(there), "back": str(back), "links": links, "twice": twice,
            "names": netns.names(), "exec": shell("readlink", "/proc/self/ns/net", netns_name="one").strip()}


def large(tmp: str, k: int) -> dict:
    """Counts of a fat-tree, all read back."""
    fabric = build(FabricSpec(fat_tree(k), RATE_BPS, MTU, BUFFER_BYTES, "ovs", "netdev", 1))
    wait_until_verified(fabric)
    return {"hosts": len(netns.names()), "ports": len(fabric.ports), "links": link_count()}


def play_scene(scenes: dict, argv: list[str]) -> None:
    """Run the scene that the command line names and write what it returns."""
    _, scene, result = argv
    Path(result).write_text(json.dumps(scenes[scene](**json.loads(payload()))))


if __name__ == "__main__":
    play_scene(globals(), sys.argv)
