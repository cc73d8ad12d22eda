"""Do the switch and the kernel count the same drops? Short overloads through the command line.

    sudo .venv/bin/python -m benchmarks.drops [--runs 10]

Each run is an incast of cubic flows into a queue that is too short for them, with another seed. For every
switch port the drops that the switch counts (emulator/asic/telemetry.py) are compared with those of the
port's qdiscs (netlink), and every packet on every link is accounted for. Exit status 1 if any differs.
"""
from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

from emulator import machine
from emulator.errors import EmulatorError

TIMEOUT_S = 120
ARGUMENTS = ("--switch", "bpf", "--topology", "star:hosts=5", "--workload", "pattern:incast=4,bytes=250kB",
             "--rate", "5mbit", "--buffer", "20kB", "--force", "--quiet")


def run(seed: int, out: Path) -> dict:
    """The summary of one overload."""
    command = [sys.executable, "-m", "emulator.run", *ARGUMENTS, "--seed", str(seed), "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    if done.returncode not in (0, 5):
        raise EmulatorError(f"the run with seed {seed} ended with status {done.returncode}: "
                            f"{done.stderr.strip()}")
    return json.loads((out / "summary.json").read_text())


def main() -> int:
    """Print a line a run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--out", type=Path, default=Path("results/benchmark-drops"))
    asked = parser.parse_args()
    faults = 0
    try:
        machine.require_root()
        print(f"{'seed':>4} {'by the switch':>14} {'by the kernel':>14} {'difference':>11} "
              f"{'unaccounted':>12}")
        for seed in range(1, asked.runs + 1):
            summary = run(seed, asked.out)
            loss = summary["loss"]
            missing = next(c["value"] for c in summary["fidelity"]["checks"] if c["name"] == "conservation")
            print(f"{seed:>4} {loss['dropped_by_switch_count']:>14} {loss['dropped_by_kernel_count']:>14} "
                  f"{loss['count_difference']:>11} {missing:>12}", flush=True)
            faults += loss["count_difference"] + missing
    except EmulatorError as error:
        print(f"benchmarks.drops: {error}", file=sys.stderr)
        return error.exit_status
    print(f"{'no difference' if not faults else f'{faults} packets of difference'} over {asked.runs} runs")
    return int(faults > 0)


if __name__ == "__main__":
    sys.exit(main())
