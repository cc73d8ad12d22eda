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
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from emulator import bundle, dryrun, machine, options, report, requirements, results
from emulator.bundle import CAPTURE, Bundle, folder_names
from emulator.crosstable import CrossTable, fill
from emulator.errors import BadInput, EmulatorError, Interrupted, Unfinished, Untrusted
from emulator.outcome import Outcome
from emulator.plan import Plan
from emulator.planning import plan_all
from emulator.sandbox import enter
from emulator.sandbox.mounts import check_kept
from emulator.stdout import complain, printing
from emulator.stops import Stops, stoppable
from emulator.writing import keep, summarised, write

ROOT = Path(__file__).resolve().parent.parent
DEFAULT_FILE = ROOT / "labs" / "default.yaml"
BUILD_ALLOWANCE_S = 300.0
COMMAND_LINE_S = 7 * 86400.0  # whoever types ends it; this only ends what was forgotten
Row = tuple[str, dict[str, Any]]
"""(label, summary) of a run that has been."""


def main(argv: list[str] | None = None) -> int:
    """Exit status of the command; every expected failure is one sentence on stderr."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return _main(sys.argv[1:] if argv is None else argv)
    except EmulatorError as error:
        _say(_one_line(error))
        return error.exit_status
    except KeyboardInterrupt:
        _say("interrupted.")
        return Interrupted.exit_status


def _main(argv: list[str]) -> int:
    # Schedules are many small objects in no circles; looking them through over and over was a third of a plan.
    gc.set_threshold(100_000, 50, 100)
    now = datetime.datetime.now().strftime("%Y-%m-%d-%H%M%S")
    asked = options.parse(argv, str(DEFAULT_FILE), now)
    machine.require_mininet()
    plans = plan_all(asked.runs, requirements.choose_switch)
    target = Bundle(asked.out, asked.force, _captures(plans[0]) if len(plans) == 1 else (), asked.dated)
    check_kept([Path(os.path.realpath(target.path))])
    _folders(target, plans)  # what is wrong with the last one is said before the first run
    requirements.require_congestion_controls(plans)
    if asked.dry_run:
        for plan in plans:
            _show(dryrun.describe(plan))
        return 0
    requirements.require(plans)
    with closing(target), stoppable() as stops:
        stops.held = True
        folders = _create(target, plans)
        if asked.cli:
            return _command_line(plans[0], target, stops, asked.quiet)
        status, rows = _run_all(list(zip(plans, folders)), target, stops, asked.quiet)
        for folder in folders[len(rows):]:  # of runs that never were
            folder.discard()
        if not rows:
            target.discard()
        elif len(plans) > 1 and not _conclude(target, asked.table, rows):
            status = max(status, Unfinished.exit_status, key=_severity)
    return status


def _folders(target: Bundle, plans: Sequence[Plan]) -> list[Bundle]:
    """A folder for each run: the target itself for a single one, else one in it."""
    if len(plans) == 1:
        return [target]
    names = folder_names([plan.label for plan in plans])
    return [target.folder(name, _captures(plan)) for name, plan in zip(names, plans)]


def _create(target: Bundle, plans: Sequence[Plan]) -> list[Bundle]:
    """Make the folder and those of all runs, so that none is refused when others have been measured."""
    target.create()
    folders = _folders(target, plans)
    try:
        for folder in folders:
            if folder is not target:
                folder.create()
                folder.close()  # the target is held for all of them
    except BadInput:
        for folder in (*folders, target):
            folder.discard()
        raise
    return folders


def _captures(plan: Plan) -> list[str]:
    return [f"{port}{CAPTURE}" for port in plan.experiment.pcap]


def _command_line(plan: Plan, folder: Bundle, stops: Stops, quiet: bool) -> int:
    """Mininet's command line on the fabric of a single run; the exit status."""
    outcome = _obeying(stops, plan, folder, "cli", quiet)
    lost = _lost(lambda: keep(folder, plan, outcome), folder)
    return max(_status(outcome, 0), _reported(lost), key=_severity)


def _obeying(stops: Stops, plan: Plan, folder: Bundle, mode: str, quiet: bool) -> Outcome:
    """One run, which a signal that asks to stop ends, also before its sandbox stands."""
    try:
        stops.held = False
        if stops.came:
            raise KeyboardInterrupt
        if not quiet:
            complain(f"{plan.label or plan.workload.name}: {dryrun.headline(plan)}\n")
        return _run(plan, folder, mode)
    except KeyboardInterrupt:
        return Outcome(interrupted=True)
    finally:
        stops.held = True


def _run_all(runs: Sequence[tuple[Plan, Bundle]], target: Bundle, stops: Stops, quiet: bool
             ) -> tuple[int, list[Row]]:
    """Run, report and keep one after the other; the worst exit status, and what each that began has to say."""
    status, rows = 0, []
    for plan, folder in runs:
        outcome = _obeying(stops, plan, folder, "quiet" if quiet else "run", quiet)
        if outcome.interrupted and outcome.engine is None:
            folder.discard()
            _say("interrupted before anything was measured; this run left nothing.")
            return Interrupted.exit_status, rows
        summary, listed = summarised(plan, outcome)
        rows.append((plan.label, {"folder": folder.path.name, **summary}))
        lost = _lost(lambda: write(folder, plan, outcome, summary, listed), folder)
        if outcome.engine:  # else there is nothing but the sentence that says why
            _show(report.result(summary, listed, str(folder.path)))
        if stops.came:
            outcome = replace(outcome, interrupted=True)
        status = max(status, _status(outcome, _judged(summary)), _reported(lost), key=_severity)
        if outcome.interrupted:
            _say(f"interrupted; what was measured is in {target.path}.")
            break
    return status, rows


def _conclude(target: Bundle, asked: CrossTable | None, rows: Sequence[Row]) -> bool:
    """What several runs say together, shown and kept; False where it could not be kept."""
    _show(report.comparison(rows))
    for more in (report.compared(rows), report.breakdowns(rows), report.classes_side_by_side(rows),
                 report.spread(rows)):
        if more:
            _show(more)
    filled = fill(asked, rows) if asked else None
    if filled:
        _show(report.cross(filled))

    def write_both() -> None:
        tables = {}
        if filled:
            target.write(bundle.TABLE, report.svg(filled))
            tables = {"table": filled.as_json()}
        target.write(bundle.SUMMARY, bundle.json_text({"schema": results.SCHEMA, **tables, "runs": [
            {"label": label, **summary} for label, summary in rows]}))

    return not _reported(_lost(write_both, target))


def _lost(act: Callable[[], None], folder: Bundle) -> str:
    """Write results; a sentence where the disk took no more of them, for after the report."""
    try:
        act()
    except OSError as error:
        return (f"the files in {folder.path} are not complete: {error.strerror}; what is printed is. Make room, "
                "or name another directory with --out, before you run it again.")
    return ""


def _reported(lost: str) -> int:
    """Say what `_lost` gave; its exit status."""
    if lost:
        _say(lost)
        return Unfinished.exit_status
    return 0


def _say(sentence: str) -> None:
    complain(f"emulator: {sentence}\n")


def _one_line(error: EmulatorError) -> str:
    """Bad input is one line, even where a name that was typed is not; other errors may show a log's tail."""
    return " ".join(str(error).split("\n")) if isinstance(error, BadInput) else str(error)


def _show(renderable: Any) -> None:
    """Print on stdout; when that cannot be, the run still counts."""
    with printing():
        report.show(renderable)


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
        _say(outcome.error[1])
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
