"""A fabric of Open vSwitch bridges under the real controller, inside namespaces of its own.

    unshare --net --mount --pid --fork --kill-child --mount-proc python ovs_scenario.py SCENARIO …

Everything the scenario makes (daemons, interfaces, files under /run) goes when its namespaces go. It
prints one JSON object of what it saw; the assertions are in test_on_ovs.py.
"""
from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from controllers.process import ControllerProcess, ControllerState, start_controller  # noqa: E402
from emulator.errors import EmulatorError  # noqa: E402
from topologies.catalog import resolve_topology  # noqa: E402
from topologies.graph import Graph, interface  # noqa: E402

GRAPH = resolve_topology("leaf-spine:leaves=3,spines=2,hosts=1")
PORT = 6653


def run(*command: str, stdin: str | None = None) -> str:
    return subprocess.run(command, input=stdin, check=True, capture_output=True, text=True, timeout=20).stdout


def enter_sandbox() -> None:
    for place in ("/run", "/etc/openvswitch", "/var/log/openvswitch"):
        run("mount", "-t", "tmpfs", "tmpfs", place)
    run("ip", "link", "set", "lo", "up")


def start_open_vswitch() -> None:
    Path("/run/openvswitch").mkdir()
    database = "/etc/openvswitch/conf.db"
    run("ovsdb-tool", "create", database, "/usr/share/openvswitch/vswitch.ovsschema")
    for daemon in (["ovsdb-server", database, "--remote=punix:/run/openvswitch/db.sock"], ["ovs-vswitchd"]):
        run(*daemon, "--pidfile", "--detach", "--no-chdir", f"--log-file=/run/{daemon[0]}.log")


def build(graph: Graph, protocols: str) -> None:
    """veth pairs for links, userspace bridges for switches; a host is the bare end of its veth."""
    commands = []
    for link in graph.links:
        a, b = interface(link.a, link.a_port), interface(link.b, link.b_port)
        commands += [f"link add {a} type veth peer name {b}", f"link set {a} up", f"link set {b} up"]
    run("ip", "-batch", "-", stdin="\n".join(commands))
    order = ["ovs-vsctl"]
    for switch in graph.switches:
        order += ["--", "add-br", switch.name, "--", "set", "bridge", switch.name, "datapath_type=netdev",
                  "fail_mode=secure", f"protocols={protocols}",
                  f"other-config:datapath-id={switch.dpid:016x}"]
        for port in graph.neighbours[switch.name]:
            name = interface(switch.name, port)
            order += ["--", "add-port", switch.name, name, "--", "set", "interface", name,
                      f"ofport_request={port}"]
        order += ["--", "set-controller", switch.name, f"tcp:127.0.0.1:{PORT}"]
    run(*order)


def flows(switch: str) -> str:
    """What the switch holds, without what changes by itself."""
    return run("ovs-ofctl", "-O", "OpenFlow15", "--no-stats", "dump-flows", switch)


def choices(leaf: str, flows: int) -> list[int]:
    """The bucket that the group of `leaf` takes for each of `flows` flows from h1 to h3."""
    a, b = GRAPH.host["h1"], GRAPH.host["h3"]
    chosen = []
    for i in range(flows):
        text = run("ovs-appctl", "ofproto/trace", leaf, f"in_port=1,tcp,nw_src={a.ip},nw_dst={b.ip},"
                                                        f"tcp_src={40000 + i},tcp_dst=5001")
        chosen.append(int(re.search(r"using bucket (\d+)", text)[1]))
    return chosen


def wait_for(controller: ControllerProcess, true_of, timeout_s: float = 8) -> ControllerState:
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        state = controller.state()
        if true_of(state):
            return state
        time.sleep(0.05)
    raise TimeoutError(f"after {timeout_s} s still {state}")


def ecmp() -> dict:
    """Tables, seeds and spread; then a link fails, a switch loses its connection, and both come back."""
    start_open_vswitch()
    with start_controller(GRAPH, "ecmp", 1, Path("/run"), PORT) as controller:
        build(GRAPH, "OpenFlow13,OpenFlow15")
        state = controller.wait_ready(15)
        seen = {"versions": sorted({switch["openflow"] for switch in state.switches.values()})}
        seen["groups"] = {leaf: run("ovs-ofctl", "-O", "OpenFlow15", "dump-groups", leaf)
                          for leaf in ("l1", "l2", "l3")}
        seen["flows"] = run("ovs-ofctl", "-O", "OpenFlow15", "--no-stats", "dump-flows", "l1")
        seen["l1"], seen["l2"] = choices("l1", 60), choices("l2", 60)

        run("ip", "link", "set", "s1-eth1", "down")
        state = wait_for(controller, lambda s: s.switches["l1"]["ports_down"] == [2])
        seen["events"] = [[event["switch"], event["port"], event["up"]] for event in state.port_events]
        state = wait_for(controller, lambda s: s.ready and s.settled and len(s.repairs) == 1)
        seen["repair"] = dict(state.repairs[0])
        seen["without_s1"] = {name: flows(name) for name in ("l1", "l2", "s1")}
        run("ip", "link", "set", "s1-eth1", "up")
        wait_for(controller, lambda s: s.ready and s.settled and len(s.repairs) == 2)
        seen["l1_again"] = choices("l1", 15)

        run("ovs-vsctl", "del-controller", "l1")
        seen["unready"] = wait_for(controller, lambda s: not s.switches["l1"]["connected"]).unready
        run("ovs-ofctl", "-O", "OpenFlow15", "del-flows", "l1")
        run("ovs-vsctl", "set-controller", "l1", f"tcp:127.0.0.1:{PORT}")
        state = wait_for(controller, lambda s: s.ready)
        seen["connections"] = state.switches["l1"]["connections"]
        seen["errors"], seen["packet_ins"] = list(state.errors), state.packet_ins
        return seen


def adopt() -> dict:
    """The controller is killed; while it is away a rule goes and one comes; then it returns."""
    start_open_vswitch()
    ofctl = ("ovs-ofctl", "-O", "OpenFlow15")
    with start_controller(GRAPH, "ecmp", 1, Path("/run"), PORT) as controller:
        build(GRAPH, "OpenFlow13,OpenFlow15")
        controller.wait_ready(15)
        before = {name: flows(name) for name in GRAPH.switch}
        controller.kill()
        time.sleep(1.2)  # a rule that is installed again later is seen by its age
        run(*ofctl, "del-flows", "--strict", "l2", "priority=100,ip,nw_dst=10.0.1.2")
        run(*ofctl, "add-flow", "l2", "priority=7,tcp,nw_dst=10.9.9.9,tp_dst=80,actions=drop")
        controller.restart()
        state = controller.wait_ready(15)
        ages = re.findall(r"duration=([0-9.]+)s", run(*ofctl, "dump-flows", "l1"))
        return {"same": {name: flows(name) == before[name] for name in GRAPH.switch},
                "youngest_s": min(map(float, ages)), "rules": len(ages), "errors": list(state.errors),
                "log": controller.log.read_text()}


def attempt(routing: str, protocols: str) -> dict:
    """Is the fabric ready under this routing, or how is it refused?"""
    start_open_vswitch()
    with start_controller(GRAPH, routing, 1, Path("/run"), PORT) as controller:
        build(GRAPH, protocols)
        try:
            return {"ready": controller.wait_ready(15).ready}
        except EmulatorError as error:
            return {"refused": str(error), "status": error.exit_status}


def nobody() -> dict:
    """No switch ever connects; a second controller finds the port taken."""
    first, second = Path("/run/first"), Path("/run/second")
    first.mkdir()
    second.mkdir()
    with start_controller(GRAPH, "ecmp", 1, first, PORT) as controller:
        seen = {"alone": refusal(controller, timeout_s=1.5)}
        with start_controller(GRAPH, "ecmp", 1, second, PORT) as late:
            seen["second"] = refusal(late, timeout_s=10)
        seen["listening"] = run("ss", "-Hltn")
    return seen


def refusal(controller: ControllerProcess, timeout_s: float) -> str:
    try:
        controller.wait_ready(timeout_s)
    except EmulatorError as error:
        return str(error)
    return "ready"


def orphan() -> dict:
    """The process that started the controller is killed: how does the controller end?"""
    read, write = os.pipe()
    starter = os.fork()
    if starter == 0:
        controller = start_controller(GRAPH, "ecmp", 1, Path("/run"), PORT)
        while not Path("/run/controller.sock").exists():
            time.sleep(0.05)
        os.write(write, str(controller.pid).encode())
        time.sleep(30)
        os._exit(1)
    pid = int(os.read(read, 20))
    os.kill(starter, signal.SIGKILL)
    os.waitpid(starter, 0)
    deadline = time.monotonic() + 5
    ended = 0
    while not ended and time.monotonic() < deadline:  # orphans fall to us, the first process of the namespace
        ended, status = os.waitpid(pid, os.WNOHANG)
        time.sleep(0.02)
    return {"ended": ended == pid, "signal": os.WTERMSIG(status), "listening": run("ss", "-Hltn")}


def mininet(*arguments: str) -> dict:
    """Stock `mn` with the distribution's Python. It raises limits of the whole kernel, so it may not."""
    run("mount", "--bind", "/proc/sys", "/proc/sys")
    run("mount", "-o", "remount,bind,ro", "/proc/sys")
    start_open_vswitch()
    done = subprocess.run(["mn", *arguments], cwd="/", capture_output=True, text=True, timeout=30)
    return {"status": done.returncode, "said": done.stdout + done.stderr}


if __name__ == "__main__":
    enter_sandbox()
    scenario = {"ecmp": ecmp, "adopt": adopt, "attempt": attempt, "nobody": nobody, "orphan": orphan,
                "mininet": mininet}[sys.argv[1]]
    print(json.dumps(scenario(*sys.argv[2:])))
