"""The highest rate at which each kind of switch still passes the fidelity verdict, and what a hop costs.

    sudo .venv/bin/python -m benchmarks.forwarding [--topology fat-tree:k=4] [--pattern stride=4] [--mtu 1500]

For each switch the rate of a host link climbs 1, 2, 5, 10, … until `--tries` runs in a row fail the verdict,
and is then bisected `--bisections` times between the last that passed and the first that failed. The baseline
is Open vSwitch on the same fabric in the same call. Says what it measures as it goes, then one table. Takes
five to ten minutes on a quiet machine; on a busy one the verdicts fail early, and the figures are low.
"""
from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks import hop_cost
from emulator import machine
from emulator.errors import EmulatorError
from emulator.report.tables import show, table
from emulator.units import show_rate

STEPS = (1, 2, 5)
START_BPS = {"ovs": 2e5, "bpf": 5e6}
LEAST_BPS, HIGHEST_BPS = 5e4, 1e9
RUN_S = 6
TIMEOUT_S = 240


@dataclass(frozen=True)
class Carried:
    """A run: the rate of a host link, the goodput of all hosts in bits per second, the checks that failed."""

    rate_bps: float
    goodput_bps: float
    failed: tuple[str, ...]

    @property
    def passed(self) -> bool:
        return not self.failed


def run(switch: str, rate_bps: float, asked: argparse.Namespace) -> Carried:
    """One run of the command line."""
    size_bytes = int(rate_bps / 8 * RUN_S / 2)  # half of what a host link could carry in RUN_S
    done = subprocess.run(
        [sys.executable, "-m", "emulator.run", "--topology", asked.topology, "--switch", switch,
         "--rate", f"{rate_bps:.0f}bit", "--mtu", str(asked.mtu), "--workload",
         f"pattern:{asked.pattern},bytes={size_bytes}B", "--out", str(asked.out), "--force", "--quiet"],
        capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    if done.returncode not in (0, 4, 5):
        raise EmulatorError(f"{switch} at {show_rate(rate_bps)} ended with status {done.returncode}: "
                            f"{(done.stderr.strip() or 'it said nothing').splitlines()[-1]}")
    summary = json.loads((asked.out / "summary.json").read_text())
    failed = tuple(c["name"] for c in summary["fidelity"]["checks"] if not c["ok"])
    made = Carried(rate_bps, summary["workload"]["goodput_bps"] or 0.0, failed)
    print(f"  {switch} at {show_rate(rate_bps)} a host: {show_rate(made.goodput_bps)} in all, "
          f"{'pass' if made.passed else 'fail: ' + ', '.join(failed)}", flush=True)
    return made


def highest(measure: Callable[[float], Carried], start_bps: float, bisections: int) -> Carried | None:
    """The run at the highest rate that passed; None where none did.

    `measure` runs at a rate, as often as it takes. Climbs from `start_bps` in steps, or goes down from it
    where it fails already, and bisects (geometrically) between pass and fail.
    """
    ladder = [step * 10.0**e for e in range(3, 10) for step in STEPS]
    ladder = [rate for rate in ladder if LEAST_BPS <= rate <= HIGHEST_BPS]
    place, best, above = ladder.index(start_bps), None, math.inf
    while 0 <= place < len(ladder):
        made = measure(ladder[place])
        if made.passed:
            best = made
            place += 1
            if ladder[place:place + 1] == [above]:
                break
        else:
            above = made.rate_bps
            if best:
                break
            place -= 1
    for _ in range(bisections if best and above < math.inf else 0):
        made = measure(math.sqrt(best.rate_bps * above))
        if made.passed:
            best = made
        else:
            above = made.rate_bps
    return best


def main() -> int:
    """Print the runs and the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--topology", default="fat-tree:k=4")
    parser.add_argument("--pattern", default="stride=4")
    parser.add_argument("--mtu", type=int, default=1500)
    parser.add_argument("--tries", type=int, default=2, help="runs at a rate before it failed (default 2)")
    parser.add_argument("--bisections", type=int, default=1)
    parser.add_argument("--repeat", type=int, default=3, help="fabrics for each cost of a hop (default 3)")
    parser.add_argument("--out", type=Path, default=Path("results/benchmark-forwarding"))
    asked = parser.parse_args()

    def measured(switch: str) -> Carried | None:
        def tried(rate_bps: float) -> Carried:
            runs: list[Carried] = []
            while len(runs) < asked.tries and not (runs and runs[-1].passed):
                runs.append(run(switch, rate_bps, asked))
            return runs[-1]

        return highest(tried, START_BPS[switch], asked.bisections)

    try:
        machine.require_root()
        print(f"{asked.topology}, pattern:{asked.pattern}, MTU {asked.mtu}, runs of {RUN_S} s or less")
        best = {switch: measured(switch) for switch in ("ovs", "bpf")}
        plain, seen = hop_cost.hops(asked.repeat)
    except EmulatorError as error:
        print(f"benchmarks.forwarding: {error}", file=sys.stderr)
        return error.exit_status
    made = table("Highest rate that passes the verdict", "switch", "host link", "goodput of all hosts",
                 "times ovs")
    for switch, carried in best.items():
        ratio = carried and best["ovs"] and carried.goodput_bps / best["ovs"].goodput_bps
        made.add_row(switch, *((show_rate(carried.rate_bps), show_rate(carried.goodput_bps)) if carried else
                               ("none passed", "-")), f"{ratio:.1f}" if ratio else "-")
    show(made)
    print(f"A hop of the bpf switch: {plain * 1e9:.0f} ns; with telemetry {seen * 1e9:.0f} ns, "
          f"{(seen - plain) / plain:.0%} more")
    return 0


if __name__ == "__main__":
    sys.exit(main())
