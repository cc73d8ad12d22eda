"""`python -m traffic.export [EXPERIMENT.yaml] [options of a run] --cm F --topo F --goal F`.

Writes what an experiment would run for other simulators, in the target's units: neither dilation nor
byte-scale is applied. Needs no root.
"""
from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import NoReturn

from emulator import options
from emulator.errors import BadInput, EmulatorError
from emulator.experiment import Experiment
from emulator.plan import Plan
from emulator.resolve import resolve
from emulator.units import parse_rate, parse_time
from topologies.htsim_topo import read_topo
from traffic.export.cm import cm_text
from traffic.export.goal import goal_text
from traffic.export.jobs import as_one, notes
from traffic.export.topo import topo_text
from traffic.paths import Paths
from traffic.simulate import simulate

KINDS = ("cm", "topo", "goal")


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise BadInput(f"{message[0].upper()}{message[1:]}; --help lists the options.")


def _parser() -> argparse.ArgumentParser:
    made = _Parser(prog="python -m traffic.export", allow_abbrev=False, description=__doc__.split("\n\n")[1],
                   epilog="All other options are those of python -m emulator.run.")
    made.add_argument("--cm", metavar="FILE", help="the workload as an htsim connection matrix")
    made.add_argument("--topo", metavar="FILE", help="the fabric as an htsim topology")
    made.add_argument("--goal", metavar="FILE", help="the workload as a GOAL schedule")
    made.add_argument("--host-link", metavar="RATE", help="the target's host link in the .topo "
                      "(default: --target-rate, or --rate times --dilation)")
    made.add_argument("--latency", metavar="TIME", default="0s", help="of each link in the .topo (default: "
                                                                      "0s)")
    made.add_argument("--force", action="store_true", help="replace files that are there")
    return made


def texts(plan: Plan, wanted: tuple[str, ...], host_rate_bps: float, delay_s: float
          ) -> dict[str, tuple[str, tuple[str, ...]]]:
    """kind -> (file, notes) of each kind that is wanted."""
    made: dict[str, tuple[str, tuple[str, ...]]] = {}
    if {"cm", "goal"} & set(wanted):
        schedule, placement = as_one(plan)
        left_out = notes(plan)
    if "cm" in wanted:
        end_s = simulate(schedule, placement, Paths(plan.graph), plan.wire).end_s
        text, said = cm_text(schedule, placement, len(plan.graph.hosts), end_s)
        made["cm"] = text, (*said, *left_out)
    if "goal" in wanted:
        text, said = goal_text(schedule)
        if placement != tuple(range(len(placement))):
            hosts = " ".join(plan.graph.hosts[host].name for host in placement)
            said = (*said, f"GOAL has ranks, not hosts; rank 0, 1, … stand on {hosts}.")
        made["goal"] = text, (*said, *left_out)
    if "topo" in wanted:
        made["topo"] = topo_text(plan.graph, host_rate_bps, delay_s), ()
    return made


def _plan(rest: list[str]) -> tuple[Plan, Experiment]:
    """The plan in the target's units, and the experiment as it was asked for."""
    runs = options.parse(rest, "", "export").runs
    if len(runs) != 1:
        raise BadInput(f"the experiment has {len(runs)} runs; export one, without matrix and repeat.")
    asked = runs[0].experiment
    target = asked.model_copy(update={"dilation": 1.0, "byte_scale": 1.0, "target_rate": "auto"})
    return resolve(runs[0].label, target, "bpf", "bpf"), asked


def _host_rate_bps(host_link: str | None, plan: Plan, asked: Experiment) -> float:
    """The target's host link: as named, or what the experiment's rate stands for."""
    if host_link:
        return parse_rate(host_link, "--host-link")
    if asked.target_rate != "auto":
        return parse_rate(asked.target_rate, "--target-rate")
    return plan.wire.rate_bps * (1.0 if asked.dilation == "auto" else asked.dilation)


def _main(argv: list[str]) -> None:
    given, rest = _parser().parse_known_args(options.joined(argv))
    files = {kind: Path(getattr(given, kind)) for kind in KINDS if getattr(given, kind)}
    if not files:
        raise BadInput("nothing to write; give --cm FILE, --topo FILE or --goal FILE.")
    if len(set(files.values())) < len(files):
        raise BadInput("two of the files have the same name.")
    for file in files.values():
        if file.exists() and not given.force:
            raise BadInput(f"{file} is there already; choose another name or add --force.")
    plan, asked = _plan(rest)
    latency_s, rate_bps = parse_time(given.latency, "--latency"), _host_rate_bps(given.host_link, plan, asked)
    for kind, (text, said) in texts(plan, tuple(files), rate_bps, latency_s).items():
        try:
            files[kind].write_text(text)
        except OSError as error:
            raise BadInput(f"{files[kind]} cannot be written ({error.strerror}).") from None
        if kind == "topo":  # what was written says the same fabric
            again = read_topo(files[kind]).graph
            if [len(part) for part in (again.hosts, again.switches, again.links)] != [
                    len(part) for part in (plan.graph.hosts, plan.graph.switches, plan.graph.links)]:
                files[kind].unlink()
                raise BadInput(f"{plan.graph.name} cannot be written as a .topo: its tiers are not wired as "
                               "htsim "
                               "would wire them.")
        print(f"{files[kind]}: {len(text.splitlines())} lines.")
        for note in (*said, *(plan.workload.notes if kind != "topo" else ())):
            print(f"Note: {note}")


def main(argv: list[str] | None = None) -> int:
    """Exit status: 0, or 2 with one sentence for bad input."""
    try:
        _main(sys.argv[1:] if argv is None else argv)
    except EmulatorError as error:
        print(f"export: {' '.join(str(error).split())}", file=sys.stderr)
        return error.exit_status
    return 0


if __name__ == "__main__":
    sys.exit(main())
