"""`python -m emulator.run`: from arguments to exit status. The only module that knows all others."""
from __future__ import annotations

import os
import signal

# A Ctrl-C while the modules below are read finds nothing started and needs no trace back.
signal.signal(signal.SIGINT, lambda *_: os._exit(130))

import datetime
import gc
import pickle
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from controllers.external import require_listener
from emulator import bundle, dryrun, machine, options, report, results
from emulator.asic.build import object_path, sources
from emulator.asic.cc import BPF_ALGORITHMS
from emulator.asic.libbpf import supported as asic_supported
from emulator.bundle import Bundle
from emulator.crosstable import fill
from emulator.delay import way as delay_way
from emulator.errors import BadInput, EmulatorError, Interrupted, MachineLacks, Unfinished, Untrusted, nearest
from emulator.outcome import Outcome
from emulator.plan import Plan
from emulator.planning import plan_all
from emulator.resolve import SWITCHES
from emulator.programs.mpi import require as require_mpi
from emulator.sandbox import enter
from emulator.sandbox.mounts import check_kept
from emulator.stdout import printing
from emulator.writing import keep, summarised, write
from traffic.engine import connections_of

ROOT = Path(__file__).resolve().parent.parent
DEFAULT_FILE = ROOT / "labs" / "default.yaml"
BUILD_ALLOWANCE_S = 300.0
COMMAND_LINE_S = 7 * 86400.0  # whoever types ends it; this only ends what was forgotten


def main(argv: list[str] | None = None) -> int:
    """Exit status of the command; every expected failure is one sentence on stderr."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return _main(sys.argv[1:] if argv is None else argv)
    except EmulatorError as error:
        print(f"emulator: {_one_line(error)}", file=sys.stderr)
        return error.exit_status
    except KeyboardInterrupt:
        print("emulator: interrupted.", file=sys.stderr)
        return Interrupted.exit_status


def _main(argv: list[str]) -> int:
    # Schedules are many small objects in no circles; looking them through over and over was a third of a plan.
    gc.set_threshold(100_000, 50, 100)
    now = datetime.datetime.now().strftime("%Y-%m-%d-%H%M%S")
    asked = options.parse(argv, str(DEFAULT_FILE), now)
    machine.require_mininet()
    plans = plan_all(asked.runs, _switch)
    target = Bundle(asked.out, asked.force)
    check_kept([Path(os.path.realpath(target.path))])
    folders = [target] if len(plans) == 1 else [_folder(target, plan, asked.force) for plan in plans]
    _require_congestion_controls(plans)
    if asked.dry_run:
        for plan in plans:
            _show(dryrun.describe(plan))
        return 0
    _require(plans)
    target.create()
    mode = "cli" if asked.cli else "quiet" if asked.quiet else "run"
    status, rows = 0, []
    with _stoppable() as stops:
        for plan, folder in zip(plans, folders):
            folder.create()
            stops.held = False
            try:
                if not asked.quiet:
                    name = plan.label or plan.workload.name
                    print(f"{name}: {dryrun.headline(plan)}", file=sys.stderr, flush=True)
                outcome = _run(plan, folder, mode)
            except KeyboardInterrupt:  # before the sandbox stood
                outcome = Outcome(interrupted=True)
            stops.held = True
            if asked.cli:
                keep(folder, plan, outcome)
                return _status(outcome, 0)
            if outcome.interrupted and outcome.engine is None:
                folder.discard()
                print("emulator: interrupted before anything was measured; this run left nothing.",
                      file=sys.stderr)
                status = Interrupted.exit_status
                break
            summary, listed = summarised(plan, outcome)
            write(folder, plan, outcome, summary, listed)
            rows.append((plan.label, summary))
            if outcome.engine:  # else there is nothing but the sentence that says why
                _show(report.result(summary, results.flows(plan, outcome), str(folder.path)))
            if stops.came:
                outcome = replace(outcome, interrupted=True)
            status = max(status, _status(outcome, _judged(summary)), key=_severity)
            if outcome.interrupted:
                print(f"emulator: interrupted; what was measured is in {target.path}.", file=sys.stderr)
                break
        if not rows:
            target.discard()
        elif len(plans) > 1:
            _show(report.comparison(rows))
            for more in (report.compared(rows), report.breakdowns(rows), report.classes_side_by_side(rows),
                         report.spread(rows)):
                if more:
                    _show(more)
            tables = {}
            if asked.table:
                filled = fill(asked.table, rows)
                _show(report.cross(filled))
                target.write(bundle.TABLE, report.svg(filled))
                tables = {"table": filled.as_json()}
            target.write(bundle.SUMMARY, bundle.json_text({"schema": results.SCHEMA, **tables, "runs": [
                {"label": label, **summary} for label, summary in rows]}))
    return status


def _one_line(error: EmulatorError) -> str:
    """Bad input is one line, even where a name that was typed is not; other errors may show a log's tail."""
    return " ".join(str(error).split("\n")) if isinstance(error, BadInput) else str(error)


def _show(renderable: Any) -> None:
    """Print on stdout; when that cannot be, the run still counts."""
    with printing():
        report.show(renderable)


class _Stops:
    """What signals that ask to stop do while no sandbox runs (one that runs obeys them itself): they raise
    KeyboardInterrupt, but while `held`, when files are being written, they only leave word in `came`.
    """

    def __init__(self) -> None:
        self.held = self.came = False

    def __call__(self, _number: int, _frame: object) -> None:
        if not self.held:
            raise KeyboardInterrupt
        self.came = True


@contextmanager
def _stoppable() -> Iterator[_Stops]:
    stops = _Stops()
    old = {number: signal.signal(number, stops) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        yield stops
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)


def _switch(kind: str) -> tuple[str, str]:
    """(switch, datapath) that this machine will use; `auto` takes the fastest that it supports."""
    if kind not in SWITCHES:
        raise BadInput(f'there is no switch "{kind}"{nearest(kind, SWITCHES)}.')
    if kind != "ovs":
        reason = _asic_lacks() if os.geteuid() == 0 else None  # who plans without root cannot ask the kernel
        if reason is None:
            return "bpf", "bpf"
        if kind == "bpf":
            raise MachineLacks(f"--switch bpf does not work here: {reason}")
    return "ovs", "system" if machine.kernel_datapath() else "netdev"


def _asic_lacks() -> str | None:
    """Why this machine cannot run the bpf switch, as a sentence; None where it can."""
    if not all(object_path(path.name.removesuffix(".bpf.c")).exists() for path in sources()):
        return "its programs are not compiled; run: python -m emulator.asic.build."
    return asic_supported()


def _require(plans: list[Plan]) -> None:
    """Everything that a run needs of the machine, before anything starts."""
    machine.require_root()
    if any(plan.experiment.switch == "auto" and plan.switch == "ovs" for plan in plans):
        print(f"emulator: the bpf switch does not work here, so Open vSwitch is used: {_asic_lacks()}",
              file=sys.stderr)
    if any(plan.switch == "ovs" for plan in plans):
        machine.require_programs(machine.OVS_PROGRAMS)
    machine.require_programs(["mnexec"])
    if any(plan.wire.delay_s for plan in plans):
        way = delay_way.choose()
        delay_way.require(way)
        print(f"emulator: links are delayed by {way}.", file=sys.stderr)
    if any(plan.experiment.pcap for plan in plans):
        machine.require_programs(["tcpdump"])
    if any(plan.program and plan.program.kind == "mpi" for plan in plans):
        require_mpi()
    for address in {plan.external for plan in plans if plan.external}:
        require_listener(address)
    machine.require_qdiscs(["htb", "bfifo"])
    machine.require_open_files(max(map(_open_files, plans)))


def _require_congestion_controls(plans: list[Plan]) -> None:
    """Each is in the kernel, or is one of ours."""
    for plan in plans:
        try:  # asking loads the kernel's module, where there is one
            machine.require_congestion_control(plan.experiment.cc, BPF_ALGORITHMS)
        except MachineLacks:
            ours = plan.experiment.cc in BPF_ALGORITHMS and (os.geteuid() != 0 or asic_supported() is None)
            if not ours:
                raise


def _open_files(plan: Plan) -> int:
    """The most that one process of a run holds open: the gate's sockets or the engine's, a counter's socket
    and a namespace for each host, and Open vSwitch's two for each of its ports."""
    connections = len(connections_of(plan.workload))
    ports = 2 * len(plan.graph.links) if plan.switch == "ovs" else 0
    return max(6 * len(plan.graph.hosts), 2 * len(plan.graph.hosts) + 2 * connections, 2 * ports)


def _folder(target: Bundle, plan: Plan, force: bool) -> Bundle:
    """The folder of one run of several: its label with nothing that a path could trip over."""
    name = "".join(c if c.isascii() and c.isalnum() or c in "=.-" else "_" for c in plan.label)
    return target.folder(name)


def _run(plan: Plan, folder: Bundle, mode: str) -> Outcome:
    """Run one plan in a sandbox of its own; what it brought back, or an Outcome that says why not."""
    memory = os.memfd_create("outcome")
    outside = os.open("/proc/self/ns/net", os.O_RDONLY)  # where an external controller is
    try:
        failure: tuple[int, str] | None = None
        try:
            status = enter.run_in_sandbox(
                [sys.executable, "-m", "emulator.inside", str(memory), str(folder.path.resolve()), mode,
                 str(outside)],
                pickle.dumps(plan),
                deadline_s=COMMAND_LINE_S if mode == "cli" else plan.deadline_s + BUILD_ALLOWANCE_S,
                keep=[folder.path, *(plan.program.folders if plan.program else ())],
                pass_fds=[memory, outside], interactive=mode == "cli")
        except Unfinished as late:
            status, failure = late.exit_status, (late.exit_status, str(late))
        with os.fdopen(os.dup(memory), "rb") as file:
            file.seek(0)
            content = file.read()
    finally:
        os.close(memory)
        os.close(outside)
    if content and not failure:
        outcome = pickle.loads(content)  # written by our own child
        return replace(outcome, interrupted=outcome.interrupted or status == Interrupted.exit_status)
    if status == Interrupted.exit_status:
        return Outcome(interrupted=True, error=(status, "The run was interrupted before it had results."))
    nothing = f"The run ended with status {status} and brought nothing back; what it printed above says why."
    return Outcome(error=failure or (status or 1, nothing))


def _status(outcome: Outcome, judged: int) -> int:
    """Interrupted before broken before `judged`: the first reason for which a number is not one."""
    if outcome.interrupted:
        return Interrupted.exit_status
    if outcome.error:
        print(f"emulator: {outcome.error[1]}", file=sys.stderr)
        return outcome.error[0]
    return judged


def _judged(summary: dict[str, Any]) -> int:
    """The exit status of a run that came to its end, by its results."""
    if summary["workload"]["stuck"]:
        return Unfinished.exit_status
    return 0 if summary["fidelity"]["verdict"] == "pass" else Untrusted.exit_status


def _severity(status: int) -> int:
    mild = [0, Untrusted.exit_status, Unfinished.exit_status]
    return mild.index(status) if status in mild else 100 + status


if __name__ == "__main__":
    sys.exit(main())
