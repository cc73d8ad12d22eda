"""The plan as a person reads it: fabric, ideal times, bytes per tier, what ECMP will leave, CPU."""
from __future__ import annotations

from typing import Any

from rich.console import Group

from emulator.capacity import BUSY_LIMIT
from emulator.ideal_parts import ideal_breakdown
from emulator.plan import Plan
from emulator.report.breakdown import planned
from emulator.report.scale import scale
from emulator.report.tables import percent, table
from emulator.units import show_rate, show_size, show_time


def headline(plan: Plan) -> str:
    """One line that says what will run."""
    e, g = plan.experiment, plan.graph
    kind = {"netdev": "userspace", "system": "kernel"}.get(plan.datapath, plan.datapath)
    delay = f", delay {show_time(plan.wire.delay_s)}" if plan.wire.delay_s else ""
    delay += f", bit errors {plan.bit_error_rate:g}" if plan.bit_error_rate else ""
    return (f"{e.topology}, {len(g.hosts)} hosts, {len(g.switches)} switches, {len(g.links)} links; host "
            f"link {show_rate(plan.wire.rate_bps)}{delay}, MTU {plan.wire.mtu}, buffer "
            f"{show_size(plan.buffer_bytes)}; {plan.switch} switch ({kind} datapath), {e.routing}, {e.cc}, "
            f"seed {e.seed}")


def describe(plan: Plan) -> Group:
    """Everything that is known before a run."""
    first = f"{plan.label}: {headline(plan)}" if plan.label else headline(plan)
    return Group(first, "", _times(plan), *scale(plan.workload.target), *_jobs(plan), *_parts(plan),
                 _tiers(plan), *_expected(plan), *_classes(plan),
                 *(f"Note: {note}" for note in plan.notes), _capacity(plan))


def _times(plan: Plan) -> Any:
    made = table(f"Plan: {plan.workload.name}", "", "value")
    perfect, w = plan.ideal, plan.workload
    made.add_row("ranks", str(len(w.schedule.ranks)))
    if perfect is None:
        made.add_row("ideal time", "none: what a program sends is known when it has run")
        made.add_row("ended after (--deadline)", show_time(plan.deadline_s))
        return made
    made.add_row("iterations", f"{w.iterations} measured after {w.warmup} to warm up")
    made.add_row("payload sent, one iteration", show_size(w.schedule.bytes_sent))
    made.add_row("ideal time, one iteration", show_time(perfect.ideal_s))
    if perfect.formula_s is not None:
        made.add_row("  by the closed form", show_time(perfect.formula_s))
    made.add_row("  by simulation without contention", show_time(perfect.simulated.delivered_s))
    if perfect.busiest:
        b = perfect.busiest
        made.add_row(f"  by the busiest link ({b.source} to {b.destination})", show_time(b.time_s))
    made.add_row("given up after (--deadline)", show_time(plan.deadline_s))
    return made


def _jobs(plan: Plan) -> list[Any]:
    """Whose hosts are whose, when each job begins, and what runs beside."""
    parts: list[Any] = []
    if plan.workload.jobs:
        made = table("Jobs", "job", "workload", "hosts", "begins", "iterations", "ideal, alone")
        for job, ideal in zip(plan.workload.jobs, plan.alone):
            begins = show_time(job.start_s)
            if job.after is not None:
                begins += f" after {plan.workload.jobs[job.after].name}"
            hosts = " ".join(plan.graph.hosts[index].name for index in job.workload.placement)
            made.add_row(job.name, job.workload.name, hosts, begins,
                         f"{job.workload.warmup} + {job.workload.iterations}", show_time(ideal.ideal_s))
        parts.append(made)
    back = plan.workload.background
    if back:
        parts.append(f"Background {back.name}: {len(back.flows)} flows of {len(back.hosts)} hosts until the "
                     f"deadline, {show_size(sum(flow.size_bytes for flow in back.flows))} in all.")
    return parts


def _parts(plan: Plan) -> list[Any]:
    """Where the time of an ideal iteration goes, for a single workload that computes."""
    if plan.workload.jobs or plan.program:
        return []
    simulated, target = plan.ideal.simulated, plan.workload.target
    return planned(ideal_breakdown(plan.workload.schedule, simulated), simulated.completion_s,
                   target.ideal_bubble if target else None)


def _tiers(plan: Plan) -> Any:
    made = table("Payload by tier, one iteration, both directions", "tier", "links", "bytes")
    for tier, size in plan.tier_bytes.items():
        count = sum(link.tier == tier for link in plan.graph.links)
        made.add_row(tier, str(count), show_size(size))
    return made


def _expected(plan: Plan) -> list[Any]:
    if plan.expected is None:
        return []
    made = table(f"Expected under {plan.experiment.routing} (fluid model, over seeds)", "of what the host "
                 "links alone would give", "mean", "sd", "5th percentile", "95th percentile")
    for name, spread in (("throughput while all flows run", plan.expected.throughput),
                         ("efficiency (the slowest flow of each step)", plan.expected.efficiency)):
        made.add_row(name, *(percent(v) for v in (spread.mean, spread.sd, spread.p5, spread.p95)))
    return [made]


def _classes(plan: Plan) -> list[Any]:
    """The table of classes, and what each has of a port's buffer."""
    if plan.classes is None:
        return []
    made = table("Classes of service", "class", "DSCP", "service", "buffer", "marks above", "lossless")
    for each, queue in zip(plan.classes.classes, plan.queueing.classes):
        made.add_row(each.name, str(each.dscp), each.service, show_size(queue.limit_bytes),
                     "-" if queue.mark_bytes is None else show_size(queue.mark_bytes),
                     "yes" if each.lossless else "no")
    return [made]


def _capacity(plan: Plan) -> str:
    c = plan.capacity
    verdict = "fits" if c.fits else "does NOT fit; expect the verdict fail, lower --rate or use --rate auto"
    return (f"CPU: {c.packet_hops_per_s:.0f} packets x switches a second predict a core {percent(c.busy, 0)} "
            f"busy; the limit is {percent(BUSY_LIMIT, 0)}: {verdict}.")
