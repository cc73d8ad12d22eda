"""The agent and its clients as real processes in one namespace; run by test_real_clients.py under unshare.

`rig.py DIR` brings lo up, starts an agent for two fake switches and prints one JSON object of what
the clients saw. Every wait is bounded.
"""
from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

from emulator.asic.agentprocess import start_agent

HERE = Path(__file__).parent
CONTROLLER_PORT, CLIENT_PORT = 6653, 6701
FRAME = "020000000002020000000001" + "88b5" + "00" * 46
WAIT_S = 12.0


class Controller:
    """An os-ken app and the facts it tells."""

    def __init__(self, version: int) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / "osken_app.py"), str(CONTROLLER_PORT), str(version)],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.facts: list[dict] = []
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for line in self.process.stdout:
            self.facts.append(json.loads(line))

    def wait_for(self, event: str, count: int = 1) -> list[dict]:
        """All facts of a kind once there are `count`; fewer if they do not come in time."""
        end_s = time.monotonic() + WAIT_S
        while True:
            found = [fact for fact in self.facts if fact["event"] == event]
            if len(found) >= count or time.monotonic() > end_s:
                return found
            time.sleep(0.05)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


def ofctl(version: str, *words: str) -> str:
    done = subprocess.run(["ovs-ofctl", "-O", version, *words], capture_output=True, text=True, timeout=10)
    return done.stdout + done.stderr


def talk_to_controller(version: int, events: Path, seen: dict) -> None:
    controller = Controller(version)
    try:
        seen["barriers"] = sorted(fact["dpid"] for fact in controller.wait_for("barrier", 2))
        with events.open("a") as out:
            out.write(f"frame 2 1 {FRAME}\ndown 1 3\n")
        seen["packet_in"] = controller.wait_for("packet-in")
        seen["port"] = controller.wait_for("port")
    finally:
        controller.kill()


def errors_of(version: int) -> list[dict]:
    """A second controller, after the first was killed: it is found again, and told what is refused."""
    controller = Controller(version)
    try:
        return controller.wait_for("error", 2)
    finally:
        controller.kill()


def main(folder: Path) -> dict:
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True, timeout=5)
    events = folder / "events"
    unix = f"unix:{folder}/s2.mgmt"
    tcp = f"tcp:127.0.0.1:{CLIENT_PORT}"
    os.environ["PYTHONPATH"] = os.pathsep.join(sys.path)
    agent = start_agent("fake_datapath:open_fake", {"dpids": [1, 2], "events": str(events)},
                        ("127.0.0.1", CONTROLLER_PORT), {1: tcp, 2: unix}, folder)
    seen: dict = {}
    for version, name in ((6, "OpenFlow15"), (4, "OpenFlow13")):
        here = seen[name] = {}
        talk_to_controller(version, events, here)
        here["flows_without_controller"] = ofctl(name, "dump-flows", tcp)
        here["groups"] = ofctl(name, "dump-groups", tcp)
        here["errors"] = errors_of(version)
        here["clients"] = client_session(name, unix)
    seen["failure_while_running"] = agent.failure()
    agent.process.kill()
    agent.process.wait()
    seen["failure_when_killed"] = agent.failure()
    again = start_agent("fake_datapath:open_fake", {"dpids": [2]}, None, {2: unix}, folder)
    seen["show_after_restart"] = ofctl("OpenFlow13", "show", unix)
    again.stop()
    seen["left"] = sorted(path.name for path in folder.iterdir())
    return seen


def client_session(name: str, at: str) -> dict[str, str]:
    """Everything a person does with ovs-ofctl, by the name of the check."""
    run = {"show": ("show", at), "dump-ports": ("dump-ports", at),
           "queue-stats": ("queue-stats", at, "1", "2"),
           "dump-tables": ("dump-tables", at), "table-features": ("dump-table-features", at),
           "desc": ("dump-desc", at),
           "group": ("add-group", at, "group_id=7,type=select" + (
               ",selection_method=hash,selection_method_param=77" if name == "OpenFlow15" else "")
               + ",bucket=weight:3,output:1,bucket=weight:1,output:2"),
           "group-all": ("add-group", at, "group_id=8,type=all,bucket=output:1"),
           "flow": ("add-flow", at,
                    "priority=9,tcp,nw_dst=10.0.0.0/16,tp_dst=80,actions=set_queue:2,group:7"),
           "bundle": ("--bundle", "add-flow", at, "actions=output:1"),
           "mod": ("mod-flows", at, "tcp,nw_dst=10.0.0.0/16,tp_dst=80,actions=output:4"),
           "groups": ("dump-groups", at), "group-stats": ("dump-group-stats", at, "group_id=7"),
           "flows": ("dump-flows", at, "tcp"), "del": ("del-flows", at), "del-groups": ("del-groups", at),
           "flows-left": ("dump-flows", at), "groups-left": ("dump-groups", at)}
    return {check: ofctl(name, *words) for check, words in run.items()}


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]))))
