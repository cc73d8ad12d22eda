"""An iteration in parts, from spans made by hand and from a job's plan; its report; a real run."""
from __future__ import annotations

from dataclasses import replace

import pytest

from emulator import dryrun, report
from emulator.breakdown import breakdowns
from emulator.fidelity import judge
from emulator.ideal_parts import ideal_breakdown
from emulator.observe import observe
from emulator.resolve import resolve
from emulator.report.tables import short_labels
from emulator.results import summarise
from emulator.results.projected import projected
from tests.commands import measure, rows
from tests.outcomes import outcome, plan
from tests.test_report import text_of
from traffic.records import Iteration, Span
from traffic.schedule import Kind

JOB = "llm:layers=8,hidden=1024,seq=1024,dp=2,pp=2"


def test_parts_are_told_apart_by_phase_and_class():
    spans = [Span(0, 0, "compute", "forward", 0, 0.0, 1.0), Span(0, 0, "compute", "backward", 0, 2.0, 4.0),
             Span(0, 0, "recv", "x", 0, 0.5, 2.5, "pipeline"),
             Span(0, 0, "send", "y", 0, 4.0, 6.0, "gradients"),
             Span(0, 0, "send", "y", 0, 5.0, 7.0, "gradients"),
             Span(0, 1, "recv", "z", 0, 3.0, 4.0, "tensor"),
             Span(0, 1, "compute", "optimizer", 0, 7.0, 9.0), Span(1, 1, "compute", "forward", 0, 20.0, 21.0)]
    (only,) = breakdowns(spans, [Iteration(0, True, 0, 10), Iteration(1, False, 20, 21)], ranks=2)
    assert only.compute_s == {"backward": 1.0, "forward": 0.5, "optimizer": 1.0}
    assert only.exposed_s == {"gradients": 1.5, "pipeline": 0.5, "tensor": 0.5}
    assert only.idle_s == ((10 - 7) + (10 - 1 - 2)) / 2
    # until 4 s: rank 0 computes for 3 s, rank 1 sums for 1 s
    assert only.bubble == pytest.approx(1 - (3 + 1) / 2 / 4)


def test_no_bubble_without_a_backward_pass():
    (only,) = breakdowns([Span(0, 0, "compute", "forward", 0, 0.0, 1.0)], [Iteration(0, True, 0, 2)], ranks=1)
    assert only.bubble is None and only.idle_s == 1


def test_an_ideal_iteration_has_the_same_parts_as_a_run_that_is_ideal():
    made = plan(workload=f"{JOB},forward=10ms,backward=20ms")
    parts = ideal_breakdown(made.workload.schedule, made.ideal.simulated)
    assert parts.compute_s["backward"] == pytest.approx(2 * parts.compute_s["forward"])
    total_s = sum(op.duration_s for op in made.workload.schedule.ranks[0])
    assert sum(parts.compute_s.values()) == pytest.approx(total_s)
    assert parts.bubble >= made.workload.target.ideal_bubble and set(parts.exposed_s) == {"gradients", "pipeline"}
    whole_s = sum(parts.compute_s.values()) + sum(parts.exposed_s.values()) + parts.idle_s
    assert whole_s >= made.ideal.simulated.completion_s * 0.999  # classes may overlap, nothing is left out
    nothing = plan(workload="allreduce:bytes=100kB")
    assert ideal_breakdown(nothing.workload.schedule, nothing.ideal.simulated) is None
    said = text_of(dryrun.describe(made))
    for words in ("Where an ideal iteration goes", "real cluster", "computing over the time on the link", "Kept: ",
                  "Not kept: ", "11.1 % if transfers took no time"):
        assert words in said


def finished(**values: object) -> tuple:
    """(plan, outcome) of a job whose computations end as the simulation says."""
    made = plan(workload=JOB, **values)
    brought = outcome(made)
    ends = made.ideal.simulated.end_s
    for index, iteration in enumerate(brought.engine.iterations):
        for rank, ops in enumerate(made.workload.schedule.ranks):
            for op, end_s in zip(ops, ends[rank]):
                if op.kind is Kind.COMPUTE and op.duration_s:
                    until_s = iteration.start_s + end_s
                    brought.engine.spans.append(Span(index, rank, "compute", op.phase, op.step,
                                                     until_s - op.duration_s, until_s))
        brought.engine.iterations[index] = replace(iteration, end_s=iteration.start_s + made.ideal.ideal_s)
    return made, brought


def test_a_job_is_projected_to_its_real_cluster():
    made, brought = finished()
    said = summarise(made, brought, judge(observe(made, brought)), [])
    work, real, target = said["workload"], said["projected"], made.workload.target
    assert said["experiment"]["dilation"] == target.dilation == 400e9 / 5e6
    assert real["completion_s"] == pytest.approx(work["completion_s"] * target.byte_scale / target.dilation)
    (part,) = work["breakdown"]
    assert part["ideal_bubble"] == pytest.approx(1 / 9)
    assert real["compute_s"]["forward"] == pytest.approx(part["compute_s"]["forward"] / target.time_scale)
    tokens = 2 * 8 * 1024
    assert real["tokens_per_s"] == pytest.approx(tokens / real["completion_s"])
    assert real["mfu"] == pytest.approx(target.model_flops / (real["completion_s"] * 4 * 989e12))
    shown = text_of(report.result(said, [], "out"))
    for words in ("computing, backward", "exposed communication, gradients", "On the real cluster (400 Gb/s",
                  "model FLOPs utilisation", "pipeline bubble"):
        assert words in shown
    compared = text_of(report.breakdowns([("a", said), ("b", said)]))
    assert "a " in compared and "MFU" in compared and report.breakdowns([("a", said)]) is None


SCALED = {"topology": "star:hosts=8", "workload": "jobs", "dilation": 80000, "byte_scale": 30000}


def test_several_models_are_projected_by_their_own_scale():
    """Times were multiplied by K / S, a start too; so they are divided by that."""
    made = plan(jobs=[f"{JOB}; name=a", f"{JOB}; name=b; start=3s"], **SCALED)
    assert made.workload.jobs[1].start_s == pytest.approx(3 * 80000 / 30000)
    real = projected(made, outcome(made))
    assert real["time_scale"] == pytest.approx(80000 / 30000) and real["rate_bps"] == 80000 * 5e6
    assert real["ideal_s"] == pytest.approx(made.ideal.ideal_s * 30000 / 80000)
    assert real["not_scaled"] == list(made.workload.jobs[0].workload.target.lost)
    alone = plan(jobs=[f"{JOB}; name=a", "allreduce:bytes=1GB,ranks=4; name=b"], only="a", **SCALED)
    assert projected(alone, outcome(alone))["time_scale"] == pytest.approx(80000 / 30000)
    mixed = plan(jobs=[f"{JOB}; name=a", "allreduce:bytes=1GB,ranks=4; name=b"], **SCALED)
    real = projected(mixed, outcome(mixed))
    assert real["time_scale"] == 80000 and any("times of a:" in said for said in real["not_scaled"])


def test_a_resolved_job_is_the_same_job_again():
    made = plan(workload=JOB)
    again = resolve("", made.resolved, "ovs", "netdev")
    assert again.workload.schedule == made.workload.schedule and again.workload.target == made.workload.target


def test_long_labels_are_cut_to_what_differs():
    jobs = [f"target-rate={rate} workload=llm:layers=32,hidden=4096,dp=16,overlap={overlap}"
            for rate in ("200gbit", "50gbit") for overlap in ("yes", "no")]
    assert short_labels(jobs)[:2] == ["target-rate=200gbit overlap=yes", "target-rate=200gbit overlap=no"]
    assert short_labels(["routing=ecmp", "routing=spray"]) == ["routing=ecmp", "routing=spray"]
    assert short_labels([jobs[0], jobs[0]]) == [jobs[0], jobs[0]] and short_labels([]) == []


@pytest.mark.root
@pytest.mark.long
def test_a_job_on_a_real_fabric_sends_its_bytes_and_fills_its_pipeline(tmp_path):
    """A pipeline with small transfers: its bubble is the formula's; every class sends what was planned."""
    job = f"{JOB},microbatches=4,forward=200ms,backward=400ms,optimizer=10ms,blocks=1,warmup=0"
    said = measure(tmp_path / "out", "--topology", "star:hosts=4", "--rate", "10mbit", "--workload", job,
                   "--byte-scale", "40000", "--target-rate", "400gbit", "--verify")
    (part,), real = said["workload"]["breakdown"], said["projected"]
    assert part["bubble"] == pytest.approx(1 / 5, rel=0.05), part
    assert real["completion_s"] == pytest.approx(said["workload"]["completion_s"])
    assert real["compute_s"]["forward"] == pytest.approx(4 * 0.2, rel=0.05)
    sent: dict[str, int] = {}
    for row in rows(tmp_path / "out" / "flows.csv"):
        if row["measured"] == "True":
            sent[row["traffic_class"]] = sent.get(row["traffic_class"], 0) + int(row["bytes"])
    assert sent["pipeline"] == 2 * 2 * 4 * round(1024 * 1024 * 2 / 40000)
    params = 8 * 12 * 1024**2 + 2 * 32000 * 1024
    assert sent["gradients"] == pytest.approx(4 * params / 2 * 2 / 40000, rel=0.001)
    assert said["workload"]["wrong_values"] == said["workload"]["checksum_errors"] == 0


@pytest.mark.root
@pytest.mark.long
def test_sharded_experts_on_a_real_fabric_end_with_the_right_data(tmp_path):
    """ZeRO-3, experts and tensor parallelism at once: every class is there, every sum is right."""
    job = ("llm:layers=4,hidden=1024,seq=256,vocab=1000,dp=4,tp=2,ep=2,experts=4,zero=3,microbatches=2,forward=10ms,"
           "backward=20ms,warmup=0")
    said = measure(tmp_path / "out", "--topology", "star:hosts=8", "--rate", "5mbit", "--workload", job,
                   "--byte-scale", "10000", "--verify")
    (part,) = said["workload"]["breakdown"]
    assert set(part["bytes_sent"]) == {"tensor", "expert", "gradients", "parameters"}
    assert part["bytes_sent"]["parameters"] == pytest.approx(2 * part["bytes_sent"]["gradients"], rel=0.01)
    assert said["workload"]["wrong_values"] == said["workload"]["checksum_errors"] == 0
    assert said["workload"]["stuck"] == [] and said["projected"]["mfu"] > 0
