"""How long a fabric takes to come up and go, beside stock Mininet with the same topology, switches and links.

    sudo .venv/bin/python -m benchmarks.build --k 4 [--repeat 3]    (k=8 takes some minutes: stock Mininet's)

All build the same fat-tree with HTB on every link end: stock Mininet with TCLink and OVSSwitch in one
sandbox (userspace Open vSwitch, or the kernel's where there is one), the emulator with either kind of
switch in others, in turn. "up" is until all switches and links stand, "down" until all is gone again. The
emulator's controller, which Mininet is run without, is timed apart. Prints what it measured.
"""
from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from emulator import machine
from emulator.errors import EmulatorError
from emulator.fabric import ovs_daemons
from emulator.sandbox.enter import run_in_sandbox
from topologies.fat_tree import FatTree

DEADLINE_S = 900.0
RATE_MBIT = 1


def stock(k: int, datapath: str) -> dict[str, float]:
    """Inside a sandbox: stock Mininet up and down; seconds."""
    from mininet.link import TCLink
    from mininet.net import Mininet
    from mininet.node import OVSSwitch

    Mininet.inited = True  # it would raise limits of the whole kernel
    processes: list[subprocess.Popen] = []
    ovs_daemons.start_database(processes)
    ovs_daemons.start_switch(processes)
    began = time.monotonic()
    network = Mininet(topo=FatTree(k), controller=None, autoSetMacs=False,
                      switch=lambda name, **options: OVSSwitch(name, datapath=datapath, **options),
                      link=lambda *ends, **options: TCLink(*ends, bw=RATE_MBIT, **options))
    network.start()
    up = time.monotonic()
    network.stop()
    return {"up_s": up - began, "down_s": time.monotonic() - up}


def stock_run(k: int, datapath: str) -> dict[str, float]:
    """One run of stock Mininet in a sandbox of its own."""
    memory = os.memfd_create("result")
    began = time.monotonic()
    run_in_sandbox([sys.executable, "-m", "benchmarks.build", "--stock", str(memory), "--k", str(k),
                            "--datapath", datapath], deadline_s=DEADLINE_S, pass_fds=[memory])
    whole = time.monotonic() - began
    with os.fdopen(memory, "rb") as file:
        file.seek(0)
        return {**json.load(file), "whole_s": whole}


def emulator_run(k: int, switch: str, out: Path) -> dict[str, float]:
    """One run of the emulator's command line on the same fabric, left at once; seconds of its own account."""
    began = time.monotonic()
    command = [sys.executable, "-m", "emulator.run", "--topology", f"fat-tree:k={k}", "--switch", switch,
               "--rate", f"{RATE_MBIT}mbit", "--workload", "pattern:pair=0-1,bytes=1kB", "--out", str(out),
               "--force", "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    if done.returncode not in (0, 5):
        raise EmulatorError(f"the emulator ended with status {done.returncode}: {done.stderr.strip()}")
    setup = json.loads((out / "summary.json").read_text())["setup"]
    return {"up_s": setup["up_s"], "ready_s": setup["ready_s"], "down_s": setup["down_s"],
            "whole_s": time.monotonic() - began}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--k", type=int, default=4)
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("results/benchmark-build"))
    parser.add_argument("--stock", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--datapath", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.stock is not None:
        with os.fdopen(asked.stock, "w") as out:
            json.dump(stock(asked.k, asked.datapath), out)
        return 0
    try:
        machine.require_root()
        datapath = "kernel" if machine.kernel_datapath() else "user"
        theirs: list[dict[str, float]] = []
        ours: dict[str, list[dict[str, float]]] = {"ovs": [], "bpf": []}
        for _ in range(asked.repeat):
            theirs.append(stock_run(asked.k, datapath))
            for switch, runs in ours.items():
                runs.append(emulator_run(asked.k, switch, asked.out))
    except EmulatorError as error:
        print(f"benchmarks.build: {error}", file=sys.stderr)
        return error.exit_status
    print(f"fat-tree k={asked.k}, {datapath} datapath, {asked.repeat} run(s) each, medians in seconds")
    named = {"stock Mininet": theirs, **{f"emulator, {switch}": runs for switch, runs in ours.items()}}
    for name, runs in named.items():
        print(f"  {name:<14}", "  ".join(
            f"{key[:-2]} {statistics.median(run[key] for run in runs):7.2f}" for key in runs[0]))
    for switch, runs in ours.items():
        ratios = [(a["up_s"] + a["down_s"]) / (b["up_s"] + b["down_s"]) for a, b in zip(theirs, runs)]
        print(f"  up + down: {switch} is {statistics.median(ratios):.1f} times faster "
              f"({min(ratios):.1f} to {max(ratios):.1f})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
