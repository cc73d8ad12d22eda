"""summary.json and flows.csv: every field of schema 1, the field's definitions, no number that is none."""
from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator import report
from emulator.report import one
from emulator.bundle import csv_text, json_text
from emulator.fabric.pcap import Captured
from emulator.fidelity import judge
from emulator.observe import observe
from emulator.outcome import Outcome
from emulator.plan import Plan
from emulator.results import FLOW_COLUMNS, SCHEMA, Flow, flows, message_rows, summarise
from emulator.results.flows import statistics
from emulator.telemetry.packets import PacketRecord
from emulator.writing import NOTHING_TO_JUDGE
from tests.outcomes import START_S, outcome, plan

FIELDS = {
    "experiment": "rate_bps mtu seed topology routing switch workload datapath buffer_bytes cc dilation "
                  "byte_scale deadline_s target_rate_bps classes events jobs run pcap",
    "environment": "kernel switch datapath clock cpus versions",
    "setup": "up_s ready_s down_s hosts switches links",
    "workload": "name ranks completion_s ideal_s efficiency algbw_bps busbw_bps iterations bytes_sent",
    "flows": "count fct_mean_s fct_p50_s fct_p99_s fct_max_s slowdown_p50 slowdown_p99",
    "links": "utilisation_mean utilisation_peak by_tier uplink_jain uplink_max_over_mean",
    "queues": "port p50_bytes p95_bytes p99_bytes max_bytes delay_p50_s delay_p99_s delay_max_s microbursts "
              "by_port",
    "loss": "dropped_packets loss_rate retransmitted_segments ecn_marked_fraction by_link",
    "fidelity": "verdict checks"}
CONTRACT_COLUMNS = "src dst bytes start_s fct_s ideal_s slowdown retransmits path".split()


def summary(made: Plan, brought: Outcome) -> dict:
    seen = observe(made, brought)
    return summarise(made, brought, judge(seen) if seen else NOTHING_TO_JUDGE, flows(made, brought))


@pytest.fixture(scope="module")
def ring() -> Plan:
    return plan(workload="allreduce:algorithm=ring,bytes=1MB")


def test_the_verdict_is_told_of_depths_that_nobody_read(ring: Plan) -> None:
    nothing = np.zeros(0)
    for packets, lost in ((None, None), (PacketRecord((), (), nothing, nothing, nothing, 7), 7)):
        assert observe(ring, replace(outcome(ring), packets=packets)).lost_samples == lost


def test_every_field_of_the_schema_is_there(ring: Plan) -> None:
    made = summary(ring, outcome(ring))
    assert made["schema"] == SCHEMA == 1 and made["version"]
    for block, names in FIELDS.items():
        assert set(names.split()) <= set(made[block]), block
    iteration, = made["workload"]["iterations"]
    assert set(iteration) == {"time_s", "compute_s", "exposed_comm_s", "network_share"}
    assert set(made["fidelity"]["checks"][0]) == {"name", "value", "limit", "ok", "why"}
    assert {row["port"] for row in made["queues"]["by_port"]} == {port.name for port in outcome(ring).ports}
    assert set(made["links"]["by_tier"]) == {"host-leaf", "leaf-spine"}
    assert json.loads(json_text(made)) == made


def test_the_experiment_is_said_as_it_was_resolved() -> None:
    made = plan(jobs=["allreduce:bytes=100kB,ranks=2; name=a; class=storage", "alltoall:bytes=50kB; name=b"],
                workload="jobs", pcap=("l1-eth1",), events=["1s link l1-s1 down"], dilation=1000)
    said = summary(made, outcome(made))["experiment"]
    assert said["target_rate_bps"] == 5e9 and said["classes"] == "off" and said["run"] == []
    assert [(job["name"], job["class"]) for job in said["jobs"]] == [("a", "storage"), ("b", "")]
    assert said["pcap"] == ["l1-eth1"] and said["events"] == ["1s link l1-s1 down"]
    assert summary(plan(), outcome(plan()))["experiment"]["target_rate_bps"] is None


def test_flows_without_an_ideal_time_still_have_completion_times(ring: Plan) -> None:
    listed = [replace(flow, ideal_s=None, slowdown=None) for flow in flows(ring, outcome(ring))]
    said, with_ideal = statistics(listed), statistics(flows(ring, outcome(ring)))
    for key, value in with_ideal.items():
        assert said[key] == (None if key.startswith("slowdown") else value), key
    assert with_ideal["fct_p50_s"] > 0 and set(statistics([]).values()) == {0, None}
    whole = summary(ring, outcome(ring))
    with io.StringIO() as out:
        report.show(one.result({**whole, "flows": said}, listed, "x"), out)
        assert "flow completion, median of" in out.getvalue() and "slowdown" not in out.getvalue().split("Links")[0]


def test_bandwidths_are_those_of_nccl_tests(ring: Plan) -> None:
    work = summary(ring, outcome(ring))["workload"]
    assert work["algbw_bps"] == pytest.approx(8e6 / work["completion_s"])
    assert work["busbw_bps"] == pytest.approx(work["algbw_bps"] * 2 * 3 / 4)
    assert work["efficiency"] == pytest.approx(work["ideal_s"] / work["completion_s"])
    assert work["ranks"] == 4 and len(work["iterations"]) == 1


@settings(max_examples=10, deadline=None)
@given(late=st.floats(1, 50), size_kb=st.integers(1, 1000))
def test_flows_are_as_slow_as_they_were(late: float, size_kb: int) -> None:
    made = plan(workload=f"pattern:stride=2,bytes={size_kb}kB")
    brought = outcome(made, late)
    listed = flows(made, brought)
    assert len(listed) == 4
    for flow in listed:
        assert flow.slowdown == pytest.approx(late, rel=1e-6)
        assert flow.fct_s == pytest.approx(late * flow.ideal_s, rel=1e-6)
        assert flow.start_s == 0 and flow.bytes == 1000 * size_kb
        assert flow.path.split()[0] == flow.src and flow.path.split()[-1] == flow.dst
    statistics = summary(made, brought)["flows"]
    assert statistics["count"] == 4 and statistics["slowdown_p99"] == pytest.approx(late, rel=1e-6)


def test_warming_flows_are_listed_but_not_counted(ring: Plan) -> None:
    brought = outcome(ring)
    listed = flows(ring, brought)
    assert ring.workload.warmup == 1
    assert sum(flow.measured for flow in listed) * 2 == len(listed)
    assert summary(ring, brought)["flows"]["count"] * 2 == len(listed)


def test_goodput_of_long_flows_is_their_rate() -> None:
    made = plan(workload="pattern:stride=2,bytes=10MB")
    work = summary(made, outcome(made))["workload"]
    assert work["host_links_bps"] == 4 * 5e6
    assert work["host_links_share"] == pytest.approx(0.956, abs=0.003)


def test_an_iteration_that_took_no_time_has_no_rates() -> None:
    made = plan(run=["each", "true"], workload="program")
    brought = outcome(plan(workload="pattern:stride=2,bytes=10kB,iterations=2"))
    engine = brought.engine
    first = replace(engine.iterations[0], end_s=engine.iterations[0].start_s)
    said = summary(made, replace(brought, engine=replace(engine, iterations=[first, *engine.iterations[1:]])))
    assert said["workload"]["goodput_bps"] is None and said["workload"]["completion_s"] > 0
    assert json.loads(json_text(said))["workload"]["iterations"][0]["time_s"] == 0


def test_the_csv_of_flows_has_the_columns_of_the_contract(ring: Plan) -> None:
    assert set(CONTRACT_COLUMNS) | {"src_port", "dst_port"} <= set(FLOW_COLUMNS)
    lines = csv_text(FLOW_COLUMNS, message_rows(flows(ring, outcome(ring)))).splitlines()
    assert lines[0].split(",") == list(FLOW_COLUMNS)
    assert len(lines) == 1 + len(flows(ring, outcome(ring)))


BROKEN_OFF = {
    "before the fabric stood": lambda o: Outcome(error=(1, "it broke.")),
    "interrupted while building": lambda o: Outcome(interrupted=True, error=(130, "stopped.")),
    "before any message": lambda o: replace(o, engine=replace(o.engine, messages=[], iterations=[], spans=[],
                                                              received=[], bytes_received=0)),
    "before the counters were read": lambda o: replace(o, between=None),
    "before the first sample": lambda o: replace(o, started_s=START_S - 9, ended_s=START_S - 8),
    "after one sample": lambda o: replace(o, ended_s=START_S),
    "with no way known": lambda o: replace(o, paths={}),
    "with a stuck rank": lambda o: replace(o, engine=replace(o.engine, stuck=["rank 1 is stuck."])),
}


@pytest.mark.parametrize("when", BROKEN_OFF)
@pytest.mark.parametrize("workload", ["pattern:stride=2,bytes=100kB", "allreduce:algorithm=ring,bytes=100kB",
                                      "pipeline:stages=4,microbatches=2"])
def test_a_run_that_broke_off_still_has_a_summary(when: str, workload: str) -> None:
    made = plan(workload=workload)
    brought = BROKEN_OFF[when](outcome(made))
    with np.errstate(all="raise"):
        said = summary(made, brought)
    text = json_text(said)
    assert set(FIELDS) <= set(json.loads(text))
    if when not in ("with no way known", "after one sample"):
        assert said["fidelity"]["verdict"] == "fail"


def test_numbers_that_are_none_are_refused() -> None:
    for value in (float("nan"), float("inf")):
        with pytest.raises(ValueError):
            json_text({"x": value})


def test_the_target_is_projected_from_the_emulation() -> None:
    slow = plan(workload="allreduce:algorithm=ring,bytes=1MB", dilation=1000)
    said = summary(slow, outcome(slow))
    target, work = said["projected"], said["workload"]
    assert target["rate_bps"] == 5e9
    assert target["completion_s"] == pytest.approx(work["completion_s"] / 1000)
    assert target["busbw_bps"] == pytest.approx(work["busbw_bps"] * 1000)
    assert target["not_scaled"]
    assert target["byte_scale"] == 1 and not any("bytes" in said for said in target["not_scaled"])
    assert summary(plan(), outcome(plan()))["projected"] is None


def test_a_projection_of_fewer_bytes_says_so() -> None:
    small = plan(workload="allreduce:bytes=1GB", dilation=10000, byte_scale=1000)
    target = summary(small, outcome(small))["projected"]
    assert target["byte_scale"] == 1000 and target["time_scale"] == 10000
    assert "message sizes: completion is that of 1/1000 of the bytes" in target["not_scaled"]


def test_a_flow_is_plain() -> None:
    assert all(kind in ("int", "bool", "str", "float", "float | None") for kind in Flow.__annotations__.values())


def test_what_was_captured_and_sampled_is_said(ring: Plan) -> None:
    capture = Captured("l1-eth1", Path("/x/l1-eth1.pcap"), 9, 2, True)
    said = summary(ring, replace(outcome(ring), captures=(capture,)))
    assert said["captures"] == [{"port": "l1-eth1", "file": "l1-eth1.pcap", "packets": 9,
                                 "dropped_packets": 2, "full": True}]
    assert said["sampling"]["rate_hz"] == 100.0
    assert "2 more were not captured" in one._captures(said)[0]
