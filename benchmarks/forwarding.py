"""What each kind of switch carries at the highest rate that still passes the fidelity verdict.

    sudo .venv/bin/python -m benchmarks.forwarding [--topology fat-tree:k=4] [--pattern stride=4]

For each switch the rate climbs 1, 2, 5, 10, … until a run fails the verdict `--tries` times in a row; the
baseline is Open vSwitch on the same fabric in the same call. Prints what it measured, every run.
"""
from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

from emulator import machine
from emulator.errors import EmulatorError
from emulator.units import show_rate

STEPS = (1, 2, 5)
START_BPS = {"ovs": 2e5, "bpf": 5e6}
HIGHEST_BPS = 1e9
RUN_S = 8
TIMEOUT_S = 240


def run(switch: str, rate_bps: float, asked: argparse.Namespace) -> dict:
    """One run of the command line; its summary."""
    size_bytes = int(rate_bps / 8 * RUN_S / 2)  # half of what a host link could carry in RUN_S
    done = subprocess.run(
        [sys.executable, "-m", "emulator.run", "--topology", asked.topology, "--switch", switch,
         "--rate", f"{rate_bps:.0f}bit", "--workload", f"pattern:{asked.pattern},bytes={size_bytes}B",
         "--out", str(asked.out), "--force", "--quiet"],
        capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    if done.returncode not in (0, 5):
        raise EmulatorError(f"{switch} at {show_rate(rate_bps)} ended with status {done.returncode}: "
                            f"{done.stderr.strip().splitlines()[-1]}")
    return json.loads((asked.out / "summary.json").read_text())


def climb(switch: str, asked: argparse.Namespace) -> float:
    """The goodput of all hosts at the highest rate that passed, bits per second; 0 where none did."""
    best = 0.0
    rates = [step * 10.0**e for e in range(5, 10) for step in STEPS]
    for rate_bps in (r for r in rates if START_BPS[switch] <= r <= HIGHEST_BPS):
        for _ in range(asked.tries):
            summary = run(switch, rate_bps, asked)
            passed = summary["fidelity"]["verdict"] == "pass"
            goodput = summary["workload"]["goodput_bps"]
            failed = ", ".join(c["name"] for c in summary["fidelity"]["checks"] if not c["ok"])
            print(f"  {switch} at {show_rate(rate_bps)} a host: {show_rate(goodput)} in all, "
                  f"{'pass' if passed else 'fail: ' + failed}", flush=True)
            if passed:
                break
        if not passed:
            break
        best = goodput
    return best


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--topology", default="fat-tree:k=4")
    parser.add_argument("--pattern", default="stride=4")
    parser.add_argument("--tries", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("results/benchmark-forwarding"))
    asked = parser.parse_args()
    try:
        machine.require_root()
        print(f"{asked.topology}, pattern:{asked.pattern}, runs of about {RUN_S} s")
        ovs, bpf = climb("ovs", asked), climb("bpf", asked)
    except EmulatorError as error:
        print(f"benchmarks.forwarding: {error}", file=sys.stderr)
        return error.exit_status
    print(f"  highest trusted: ovs {show_rate(ovs)}, bpf {show_rate(bpf)}"
          + (f": {bpf / ovs:.0f} times" if ovs else ""))
    return 0


if __name__ == "__main__":
    sys.exit(main())
