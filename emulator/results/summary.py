"""summary.json: everything that a run says, put together from its blocks."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from emulator import __version__
from emulator.fidelity import Verdict
from emulator.outcome import Outcome
from emulator.plan import Plan
from emulator.results.background import background
from emulator.results.classes import classes
from emulator.results.events import events
from emulator.results.flows import Flow, background_flows, statistics
from emulator.results.jobs import jobs
from emulator.results.network import measured
from emulator.results.program import program
from emulator.results.projected import projected
from emulator.results.routing import scheduled
from emulator.results.workload import workload

SCHEMA = 1


def summarise(plan: Plan, outcome: Outcome, verdict: Verdict, listed: Sequence[Flow]) -> dict[str, Any]:
    """summary.json, schema 1. Values that a broken-off run does not have are null."""
    beside = background_flows(plan, outcome)
    return {
        "schema": SCHEMA, "version": __version__, "experiment": _experiment(plan),
        "environment": dict(outcome.environment), "notes": _notes(plan, outcome),
        "setup": _setup(plan, outcome),
        "workload": workload(plan, outcome), "jobs": jobs(plan, outcome), "program": program(plan, outcome),
        "flows": statistics(listed), "background": background(plan, outcome, beside),
        **measured(plan, outcome),
        "routing": scheduled(outcome), "classes": classes(plan, outcome, [*listed, *beside]),
        "events": events(outcome), "projected": projected(plan, outcome),
        "fidelity": {"verdict": verdict.verdict, "checks": [asdict(check) for check in verdict.checks]},
        "interrupted": outcome.interrupted, "sampling": _sampling(outcome),
        "captures": [{"port": c.port, "file": c.file.name, "packets": c.packets, "dropped_packets": c.dropped,
                      "full": c.full} for c in outcome.captures],
    }


def _sampling(outcome: Outcome) -> dict[str, Any] | None:
    """How often the queues were looked at, as asked and as the machine allowed, and what that cost."""
    r = outcome.recording
    return r and {"asked_hz": r.asked_hz, "rate_hz": r.rate_hz, "cpu_share": r.cpu_share,
                  "ended_early": r.ended_early}


REORDERS = ("packets of one flow overtake each other under this routing, so the hosts have "
            "tcp_min_rtt_wlen=0: TCP takes a packet for lost an eighth of a round trip after it was "
            "overtaken (docs/routing.md)")


def _notes(plan: Plan, outcome: Outcome) -> list[str]:
    """What a reader should know besides the numbers: of the input, and of the run."""
    return [*plan.notes, *([REORDERS] if plan.fabric.reorders else []),
            *([outcome.switch_failure] if outcome.switch_failure else []),
            *(outcome.program.notes if outcome.program else ())]


def _experiment(plan: Plan) -> dict[str, Any]:
    """What was asked for, with nothing left to choose. target_rate_bps: null where nothing is dilated."""
    e, asked = plan.experiment, plan.resolved.model_dump(by_alias=True, mode="json")
    return {**{key: asked[key] for key in ("classes", "events", "jobs", "run", "pcap")},
            "target_rate_bps": plan.wire.rate_bps * e.dilation if e.dilation != 1 else None,
            "label": plan.label, "varied": dict(plan.varied), "reference": plan.reference,
            "topology": e.topology, "routing": e.routing, "switch": plan.switch,
            "datapath": plan.datapath, "workload": e.workload, "only": e.only,
            "background": e.background, "rate_bps": plan.wire.rate_bps,
            "mtu": plan.wire.mtu, "buffer_bytes": plan.buffer_bytes, "cc": e.cc,
            "swift_target_s": plan.swift.target_s if e.cc == "swift" else None,
            "ecn_bytes": plan.ecn_bytes, "delay_s": plan.wire.delay_s, "bit_error_rate": plan.bit_error_rate,
            "seed": e.seed,
            "dilation": e.dilation, "byte_scale": e.byte_scale, "verify": e.verify,
            "deadline_s": plan.deadline_s, "iterations": plan.workload.iterations,
            "warmup": plan.workload.warmup}


def _setup(plan: Plan, outcome: Outcome) -> dict[str, Any]:
    times = outcome.setup
    used = times.memory if times else None
    return {"up_s": times and times.up_s, "ready_s": times and times.ready_s,
            "down_s": times and times.down_s,
            "memory_processes_bytes": used and used.processes,
            "memory_largest_process_bytes": used and used.largest,
            "memory_kernel_bytes": used and used.kernel,
            "hosts": len(plan.graph.hosts), "switches": len(plan.graph.switches),
            "links": len(plan.graph.links)}
