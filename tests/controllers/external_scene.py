"""A run under a controller outside of it, in a network namespace that stands for the user's machine.

    unshare --net --fork --kill-child python -m tests.controllers.external_scene ROUTING OUT

The user's own controller is ours, started by hand on another port, with ROUTING ('none': one that accepts
connections and says nothing).
"""
from __future__ import annotations

import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from controllers.process import start_controller
from emulator.run import main as run
from topologies.catalog import resolve_topology

FABRIC = "leaf-spine:leaves=2,spines=2,hosts=1"
PORT = 16653


def main(routing: str, out: str) -> int:
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True, timeout=10)
    arguments = ["--topology", FABRIC, "--rate", "2mbit", "--workload", "pattern:stride=1,bytes=200kB", "--switch",
                 "bpf", "--routing", f"external:127.0.0.1:{PORT}", "--out", out, "--force"]
    if routing == "none":
        with socket.create_server(("127.0.0.1", PORT)):
            return run(arguments)
    with tempfile.TemporaryDirectory() as folder:
        with start_controller(resolve_topology(FABRIC), routing, 7, Path(folder), PORT) as controller:
            end_s = time.monotonic() + 20
            while time.monotonic() < end_s:  # until it listens
                try:
                    socket.create_connection(("127.0.0.1", PORT), 1).close()
                    break
                except ConnectionRefusedError:
                    time.sleep(0.1)
            status = run(arguments)
            print("books:", sorted(controller.state().switches), controller.state().packet_ins)
            return status


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
