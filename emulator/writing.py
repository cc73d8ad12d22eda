"""A run's outcome as the files of its bundle."""
from __future__ import annotations

from typing import Any

from emulator import bundle, results, timeline
from emulator.bundle import Bundle
from emulator.events.aftermath import instants
from emulator.experiment import dump
from emulator.fidelity import Check, Verdict, judge
from emulator.observe import observe
from emulator.outcome import Outcome
from emulator.plan import Plan
from emulator.results import Flow
from emulator.telemetry.series_io import write_links, write_queues
from emulator.traffic_files import write_traffic

_BROKEN_OFF = Check("complete", 0, 1, False, "the run broke off before it was measured")
NOTHING_TO_JUDGE = Verdict("fail", (_BROKEN_OFF,))


def summarised(plan: Plan, outcome: Outcome) -> tuple[dict[str, Any], list[Flow]]:
    """The summary of a run, judged, and its flows; nothing is written."""
    seen = observe(plan, outcome)
    verdict = judge(seen) if seen else NOTHING_TO_JUDGE
    listed = results.flows(plan, outcome)
    return results.summarise(plan, outcome, verdict, listed), listed


def write(folder: Bundle, plan: Plan, outcome: Outcome, summary: dict[str, Any], listed: list[Flow]) -> None:
    """All files of the bundle, the summary last; OSError where the disk takes no more."""
    keep(folder, plan, outcome)
    folder.write("flows.csv", bundle.csv_text(results.FLOW_COLUMNS, results.message_rows(listed)))
    if outcome.engine:
        hosts = [plan.graph.hosts[index].name for index in plan.workload.placement]
        folder.write("timeline.json", timeline.trace(
            outcome.engine.spans, outcome.engine.iterations, hosts, outcome.started_s,
            instants(results.followed(outcome), outcome.started_s)))
    if plan.classes and outcome.packets:
        folder.write("classes.csv", bundle.csv_text(results.CLASS_COLUMNS, results.class_rows(plan, outcome)))
    if outcome.recording:
        series = [part.between(outcome.started_s, outcome.ended_s) for part in outcome.recording.series]
        for name, writer in (("queues.csv", write_queues), ("links.csv", write_links)):
            with folder.writing(name) as path:
                writer(path, series, outcome.started_s)
    write_traffic(folder, plan, outcome, summary)
    folder.write(bundle.SUMMARY, bundle.json_text(summary))


def keep(folder: Bundle, plan: Plan, outcome: Outcome) -> None:
    """What every run leaves, measured or not: how to repeat it, what it said, what was captured."""
    folder.write("experiment.yaml", dump(plan.resolved))
    folder.write("log.txt", outcome.log)
    for captured in outcome.captures:
        folder.adopt(captured.file.name)
    folder.adopt_ranks()
