"""Scenes with Open vSwitch and static tables; see `tests.fabric.scenes`."""
from __future__ import annotations

import contextlib
import io
import os
import socket
import sys
import threading
import time
from dataclasses import asdict, replace
from pathlib import Path

from emulator import syscalls
from emulator.errors import EmulatorError
from emulator.fabric import gate, ovs, pcap
from emulator.fabric.build import build
from emulator.fabric.command_line import run_command_line
from emulator.fabric.failures import set_link
from emulator.fabric.gate import Probe, prove
from emulator.fabric.mininet_api import open_network
from emulator.fabric.ovs_sockets import packet_sockets
from emulator.fabric.verify import verify_links
from emulator.netns import entered
from tests.fabric import static_tables
from tests.fabric.scenes import play_scene, shell, small

FAR = Probe("h1", "h3", 20_000)
CROSSING = [FAR, Probe("h2", "h4"), Probe("h3", "h2"), Probe("h4", "h1")]


@contextlib.contextmanager
def forwarding(datapath: str = "netdev"):
    """A leaf-spine 2x1x2 on Open vSwitch with static tables."""
    fabric = build(replace(small(), datapath=datapath))
    running = ovs.start(fabric, 6653)
    static_tables.install(fabric.spec.graph)
    try:
        yield fabric, running
    finally:
        running.stop()


def refusal(call, *arguments) -> str:
    """The sentence with which `call` refuses."""
    try:
        call(*arguments)
    except EmulatorError as error:
        return str(error)
    return ""


def proven(tmp: str, datapath: str = "netdev") -> dict:
    """Probes, paths, counters and what OVS says of itself."""
    with forwarding(datapath) as (fabric, running):
        proof = prove(fabric, CROSSING)
        return {
            "proof": asdict(proof), "path": running.path("h1", "h3", "tcp", 20_000, 80),
            "dropped": running.output_port("l1", "in_port=1,ip,nw_dst=10.9.9.9"),
            "lookups": asdict(running.lookups()), "faults": verify_links(fabric),
            "qos": shell("ovs-vsctl", "--columns=type", "--bare", "list", "QoS").split(),
            "ids": sorted(shell("ovs-vsctl", "get", "bridge", name, "datapath_id").strip().strip('"')
                          for name in fabric.switches),
            "room": [shared_room(running.pid)] if datapath == "netdev" else [],
            "needed": 2 * sum(port.limit_bytes for port in fabric.switch_ports),
        }


def shared_room(pid: int) -> int:
    """Buffer of the socket that sends for all ports, in bytes."""
    fd, = [fd for fd, interface in packet_sockets(pid).items() if interface == 0]
    with socket.socket(fileno=syscalls.take_fd(pid, fd)) as shared:
        return shared.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)


def broken(tmp: str) -> dict:
    """What the gate says when a table or a link is missing, and what a dead daemon looks like."""
    gate._UDP_TRIES = 2  # the failures are certain, and a test need not wait for them for long
    with forwarding() as (fabric, running):
        shell("ovs-ofctl", "-O", "OpenFlow13", "del-flows", "s1")
        no_table = refusal(prove, fabric, [FAR])
        trace = refusal(running.path, "h1", "h3", "tcp", 1, 2)
        static_tables.install(fabric.spec.graph)
        spine = fabric.port["l1-eth3"].link
        set_link(fabric, spine, False)
        no_link = refusal(prove, fabric, [FAR])
        set_link(fabric, spine, True)
        again = asdict(prove(fabric, [FAR]))
        access = fabric.port["h1-eth0"].link
        set_link(fabric, access, False)
        set_link(fabric, access, True)
        host_again = asdict(prove(fabric, [FAR]))
        shell("ovs-vsctl", "--no-wait", "del-port", "l1-eth1")
        os.kill(running.pid, 9)
        running._processes[-1].wait()
        return {"no_table": no_table, "trace": trace, "no_link": no_link, "again": again,
                "host_again": host_again, "dead": refusal(running.check_alive)}


def refused(tmp: str) -> dict:
    """A start that fails ends with a sentence and the log's tail, and with no daemon left."""
    fabric = build(small())
    shell("ip", "link", "del", "s1-eth1")
    said = refusal(ovs.start, fabric, 6653)
    return {"said": said, "left": shell("ps", "-eo", "comm").count("ovs")}


def goodput(tmp: str) -> dict:
    """One TCP flow over two switches: payload bits per second that arrive in some seconds of backlog."""
    with forwarding() as (fabric, running):
        prove(fabric, CROSSING)
        with entered("h3"):
            listener = socket.create_server((fabric.site["h3"].ip, 5000))
        with entered("h1"):
            sender = socket.socket()
        sender.connect((fabric.site["h3"].ip, 5000))
        receiver, _ = listener.accept()
        receiver.settimeout(5)
        threading.Thread(target=send_until_closed, args=(sender,), daemon=True).start()
        end_s = time.monotonic() + 0.5
        while time.monotonic() < end_s:
            receiver.recv(1 << 16)
        begin_s, got = time.monotonic(), 0
        while time.monotonic() < begin_s + 3:
            got += len(receiver.recv(1 << 16))
        return {"rate_bps": fabric.spec.rate_bps, "lost": running.lookups().lost,
                "got_bps": 8 * got / (time.monotonic() - begin_s)}


def send_until_closed(sender: socket.socket) -> None:
    with contextlib.suppress(ConnectionError):
        while True:
            sender.sendall(bytes(1 << 14))


def captured(tmp: str) -> dict:
    """Two captures, and their files as tcpdump reads them."""
    with forwarding() as (fabric, _):
        unknown = refusal(pcap.capture, fabric, ["h1-eth1"], Path(tmp))
        running = pcap.capture(fabric, ["h1-eth0", "s1-eth1"], Path(tmp), 20_000)
        prove(fabric, [FAR])
        results = pcap.stop(running)
        return {"unknown": unknown, "results": [{**asdict(result), "file": str(result.file)}
                                                for result in results],
                "read": {result.port: shell("tcpdump", "-n", "-r", str(result.file)) for result in results},
                "sizes": [result.file.stat().st_size for result in results]}


def mininet(tmp: str, commands: str) -> dict:
    """Mininet's API, then its command line fed by a pipe."""
    with forwarding() as (fabric, _):
        network = open_network(fabric)
        h1, h3 = network.get("h1", "h3")
        there = h3.popen("hostname -I").communicate()[0].decode().split()
        opened_before = [node.name for node in network.values() if node.shell]
        out = {"address": h1.IP(), "cmd": h1.cmd("ip -br addr show h1-eth0"), "opened_before": opened_before,
               "opened": [node.name for node in network.values() if node.shell],
               "switch": network["s1"].cmd("ip -br link show s1-eth1"),
               "there": there,
               "refused": refusal(network.addHost, "h99")}
        read, write = os.pipe()
        os.write(write, commands.encode())
        os.close(write)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), os.fdopen(read) as stdin:
            run_command_line(network, stdin)
        out["printed"] = printed.getvalue()
        out["left"] = shell("ps", "-eo", "args").count("mininet:")
        return out


def waiting(tmp: str) -> dict:
    """A running fabric with shells and a capture, to be killed."""
    with forwarding() as (fabric, _):
        open_network(fabric)["h1"].cmd("sleep 300 &")
        pcap.capture(fabric, ["h1-eth0"], Path(tmp))
        time.sleep(40)
    return {}


if __name__ == "__main__":
    play_scene(globals(), sys.argv)
