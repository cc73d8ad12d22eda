"""Controller, agent and programs together: a weighted group over many flows, and a link that goes down."""
from __future__ import annotations

import socket
import subprocess
import tempfile
from pathlib import Path

from controllers.process import start_controller
from emulator import machine, netns
from emulator.asic import switches
from emulator.asic.queueing import one_queue
from emulator.fabric.build import Fabric, build
from emulator.fabric.diagnose import port_counts
from emulator.fabric.failures import set_link
from emulator.fabric.spec import FabricSpec
from emulator.fabric.switches import openflow_target
from tests.asic.fabrics import udp
from tests.fabric.graphs import leaf_spine

FLOWS, FIRST_PORT, SINK_PORT, CONTROLLER_PORT = 1000, 20000, 7000, 6653


def weighted() -> dict:
    """The leaf's group as the controller installed it, with weights 3:1, and after a link went down."""
    graph = leaf_spine(2, 2, 1)
    fabric = build(FabricSpec(graph, 50e6, 1500, 200_000, "bpf", "bpf", 1))
    with tempfile.TemporaryDirectory() as place:
        run_dir = Path(place)
        controller = start_controller(graph, "ecmp", 1, run_dir, CONTROLLER_PORT)
        made = switches.start(fabric, one_queue(), "ecmp", CONTROLLER_PORT, run_dir)
        try:
            controller.wait_ready(20.0)
            return _seen(fabric)
        finally:
            made.stop()
            controller.stop()


def _seen(fabric: Fabric) -> dict:
    equal = _spread(fabric)
    _ofctl(fabric, "mod-group", "group_id=1,type=select,selection_method=hash,selection_method_param=7,"
                                "bucket=bucket_id:0,weight=3,actions=output:2,"
                                "bucket=bucket_id:1,weight=1,actions=output:3")
    groups, weighted_ = _ofctl(fabric, "dump-groups"), _spread(fabric)
    uplink = fabric.port["l1-eth2"]
    set_link(fabric, uplink.link, up=False)
    after = _spread(fabric)
    return {"equal": equal, "groups": groups, "weighted": weighted_, "after": after}


def _ofctl(fabric: Fabric, command: str, *arguments: str) -> str:
    done = subprocess.run([machine.program("ovs-ofctl"), "-O", "OpenFlow15", command,
                           openflow_target(fabric.spec, "l1"), *arguments],
                          capture_output=True, text=True, timeout=20, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _spread(fabric: Fabric) -> dict[str, int]:
    """One datagram of each of FLOWS flows from h1 to h2: how many arrived, and what each uplink sent."""
    before, sink = port_counts(fabric), udp("h2", SINK_PORT)
    with netns.entered("h1"):
        sources = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(FLOWS)]
    for number, source in enumerate(sources):
        with source:
            source.bind(("0.0.0.0", FIRST_PORT + number))
            source.sendto(b"x", (fabric.site["h2"].ip, SINK_PORT))
    sink.settimeout(1.0)
    arrived = 0
    try:
        while arrived < FLOWS:
            sink.recv(10)
            arrived += 1
    except TimeoutError:  # the rest was lost
        pass
    sink.close()
    after = port_counts(fabric)
    return {"arrived": arrived, **{name: after[name] - before[name] for name in ("l1-eth2", "l1-eth3")}}
