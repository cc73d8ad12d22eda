"""Several jobs, from options to plan, results and report; no root."""
from __future__ import annotations

import io

import numpy
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from emulator import dryrun, report
from emulator.errors import BadInput
from emulator.experiment import dump, make, read_file
from emulator.matrix import expand
from emulator.job_entry import parse_job
from emulator.report.jobs import alone_s
from emulator.results import link_bytes, matrix
from tests.outcomes import outcome, plan, refusal
from tests.test_results import summary

TOPOLOGY = "leaf-spine:leaves=2,spines=2,hosts=4"


def several(*jobs: object, **values: object):
    return plan(topology=TOPOLOGY, workload="jobs", jobs=jobs, **values)


# ---------------------------------------------------------------- jobs


def test_jobs_take_the_hosts_that_are_left():
    made = several("allreduce:bytes=100kB,ranks=3; name=a", {"workload": "alltoall:bytes=50kB", "name": "b"})
    a, b = made.workload.jobs
    assert a.workload.placement == (0, 1, 2) and b.workload.placement == (3, 4, 5, 6, 7)
    assert made.workload.placement == tuple(range(8)) and (a.first_rank, b.first_rank) == (0, 3)
    assert made.workload.schedule.bytes_sent == sum(j.workload.schedule.bytes_sent for j in (a, b))
    assert {op.peer for op in made.workload.schedule.ranks[3]} == {4, 5, 6, 7}
    assert made.workload.bytes_sent == 2 * made.workload.schedule.bytes_sent  # the warming iterations too


def test_a_job_keeps_to_its_hosts_classes_and_start():
    made = several({"workload": "allreduce:bytes=100kB,placement=random", "hosts": ["h5-h7", "h2"],
                    "class": "storage", "start": "2s"}, dilation=3)
    job, = made.workload.jobs
    assert set(job.workload.placement) == {4, 5, 6, 1} and job.start_s == 6.0 and job.name == "job1"
    messages = [op for ops in made.workload.schedule.ranks for op in ops if op.peer >= 0]
    assert {op.traffic_class for op in messages} == {"storage"}


def test_addresses_of_a_pattern_file_are_those_of_the_jobs_own_hosts(tmp_path):
    ips = [host.ip for host in plan(topology=TOPOLOGY).graph.hosts]
    file = tmp_path / "pattern"
    file.write_text(f"{ips[6]} {ips[5]} 5001 TCP 1 0 60 100000\n")
    jobs = "allreduce:ranks=4,bytes=100kB; hosts=h1-h4", f"hedera:{file}; hosts=h6-h8"
    assert several(*jobs).workload.jobs[1].workload.placement == (5, 6)
    file.write_text(f"{ips[6]} {ips[0]} 5001 TCP 1 0 60 100000\n")
    said = refusal(topology=TOPOLOGY, workload="jobs", jobs=jobs)
    assert f"for this workload has the address {ips[0]}; its hosts are {ips[5]} to {ips[7]}" in said


def test_jobs_that_follow_one_another_may_share_hosts():
    made = several("allreduce:bytes=100kB; name=a", "alltoall:bytes=50kB; name=b; after=previous; start=1s",
                   "broadcast:bytes=50kB; name=c; after=b")
    assert [job.after for job in made.workload.jobs] == [None, 0, 1]
    assert [job.workload.placement for job in made.workload.jobs[:2]] == [tuple(range(8))] * 2
    a, b, _ = (ideal.ideal_s for ideal in made.alone)
    assert made.ideal.ideal_s >= 2 * a + 1.0 + 2 * b


@pytest.mark.parametrize("jobs, sentence", [
    (["allreduce:ranks=6", "alltoall:ranks=3"], "job job2: 3 ranks do not fit on 2 hosts"),
    (["allreduce", "alltoall"], "job job2: of 8 hosts 0 are left for it"),
    (["allreduce; hosts=h1-h4", "alltoall; hosts=h4,h5"], "jobs job1 and job2 both want host h4"),
    (["allreduce; hosts=h1-h4", "alltoall; hosts=h4-h1"], "end before they begin"),
    (["allreduce; hosts=h1-h9"], 'no host "h9"'), (["allreduce; hosts=h1,h1"], "h1 is named twice"),
    (["allreduce; class=gold"], 'there is no class "gold"'),
    (["allreduce; name=a", "allreduce; name=a"], "two are called"),
    (["allreduce; after=b"], 'after "b" is not the name'), (["allreduce; start=soon"], 'start "soon"'),
    (["allreduce:placement=nearby"], 'job job1: Unknown placement "nearby"'),
    (["allreduce:bytes=1kB+2kB"], "several jobs by itself"), (["allredduce"], "did you mean"),
    (["; name=a"], "begins with no workload"), (["allreduce; hots=h1"], 'has "hots=h1"'),
    (["allreduce; name=a; name=b"], "gives name twice"), ([{"name": "a"}], "workload"),
    ([{"workload": "allreduce", "colour": "red"}], "a job has no key")])
def test_jobs_that_cannot_be(jobs, sentence):
    said = refusal(topology=TOPOLOGY, workload="jobs", jobs=jobs)
    assert sentence in said and "\n" not in said


def test_the_same_hosts_where_it_is_asked_for():
    made = several("allreduce:ranks=4", {"workload": "alltoall:ranks=4", "hosts": "h1-h4", "share": True})
    assert made.workload.placement == (0, 1, 2, 3, 0, 1, 2, 3)


def test_jobs_and_a_workload_are_one_too_many():
    with pytest.raises(BadInput, match="workload and jobs are both given"):
        make({"workload": "alltoall", "jobs": ["allreduce"]})
    assert make({"jobs": ["allreduce"]}).workload == "jobs"


def test_an_experiment_with_jobs_runs_again_as_it_was_written_down(tmp_path, monkeypatch):
    (tmp_path / "ranks").write_text("h2\nh1\n")
    (tmp_path / "own.cdf").write_text("1000 50\n2000 100\n")
    monkeypatch.chdir(tmp_path)
    made = several("allreduce:bytes=10kB,placement=file:ranks,ranks=2; name=a; hosts=h1,h2",
                   "alltoall:bytes=10kB; start=1s; class=expert",
                   background="cdf:own.cdf,load=0.2,hosts=h1-h3+h8")
    (tmp_path / "again.yaml").write_text(dump(made.resolved))
    again = make(read_file(str(tmp_path / "again.yaml")))
    assert again == made.resolved and str(tmp_path / "ranks") in again.jobs[0].workload
    monkeypatch.chdir("/")
    repeated = plan(**again.model_dump(by_alias=True)).workload
    assert repeated.endpoints == made.workload.endpoints
    assert repeated.schedule.ranks == made.workload.schedule.ranks
    assert repeated.background.flows == made.workload.background.flows


def test_files_of_jobs_lie_beside_the_experiment(tmp_path):
    (tmp_path / "own.cm").write_text("")
    file = tmp_path / "e.yaml"
    file.write_text(yaml.safe_dump({"jobs": [{"workload": "own.cm"}, "own.cm; name=b"]}))
    assert {job.workload for job in make(read_file(str(file))).jobs} == {str(tmp_path / "own.cm")}


def test_only_varies_in_a_matrix_and_jobs_do_not():
    runs = expand({"jobs": ["allreduce; name=a"], "matrix": {"only": ["all", "a"]}})
    assert [run.label for run in runs] == ["only=all", "only=a"]
    with pytest.raises(BadInput, match='matrix cannot vary "jobs"'):
        expand({"matrix": {"jobs": [["allreduce"]]}})


def test_one_job_alone_keeps_its_place_among_all():
    both = several("allreduce:bytes=100kB,ranks=4; name=a", "alltoall:bytes=900kB; name=b")
    only = several("allreduce:bytes=100kB,ranks=4; name=a", "alltoall:bytes=900kB; name=b", only="a")
    assert only.workload == both.workload and only.only == frozenset({0})
    assert only.ideal.ideal_s < both.ideal.ideal_s
    assert "not one of several jobs" in refusal(topology=TOPOLOGY, workload="jobs", only="b",
                                                jobs=["allreduce; name=a"])
    assert "chooses among several jobs" in refusal(topology=TOPOLOGY, workload="allreduce", only="a")


@given(st.text("abc=;,: ", max_size=30))
def test_any_text_of_a_job_is_read_or_refused(text):
    try:
        assert parse_job(text)["workload"]
    except ValueError as error:
        assert str(error)


def test_the_plan_says_whose_hosts_are_whose():
    made = several("allreduce:bytes=400kB,ranks=3; name=a", "alltoall:bytes=200kB; name=b; start=2s",
                   "broadcast:bytes=90kB; name=c; after=b", background="cdf:websearch,load=0.2")
    out = io.StringIO()
    report.show(dryrun.describe(made), out)
    said = " ".join(out.getvalue().split())
    assert "a allreduce:bytes=400kB,ranks=3 h1 h2 h3 0 s 1 + 1" in said and "h4 h5 h6 h7 h8 2 s 1 + 1" in said
    assert "0 s after b" in said and "Background cdf:websearch,load=0.2" in said
    assert made.ideal.simulated.delivered_s <= made.ideal.ideal_s


# ---------------------------------------------------------------- results


def test_each_job_has_a_row_and_all_of_them_a_table():
    made = several("allreduce:bytes=400kB,ranks=4,warmup=0; name=a", "alltoall:bytes=200kB,warmup=0; name=b")
    said = summary(made, outcome(made))
    assert [job["name"] for job in said["jobs"]] == ["a", "b"]
    assert said["workload"]["name"].startswith("2 jobs")
    assert said["jobs"][0]["hosts"] == ["h1", "h2", "h3", "h4"] and said["jobs"][1]["hosts"][0] == "h5"
    table = report.collectives(said["jobs"])
    assert "ring all-reduce (4)" in table and "pairwise all-to-all (4)" in table


def test_one_job_is_a_row_too_with_the_workloads_figures():
    made = plan(workload="allreduce:bytes=1MB")
    said = summary(made, outcome(made))
    job, = said["jobs"]
    for key in ("completion_s", "ideal_s", "efficiency", "algbw_bps", "busbw_bps", "bytes_sent"):
        assert job[key] == said["workload"][key]
    assert said["background"] is None and report.background(said) == [] and report.jobs_table(said) is None


def row(**values: object) -> dict[str, object]:
    return {"collective": "all-reduce", "size_bytes": 16_000_000, "ranks": 16, "runs": True,
            "completion_s": 0.5, "algbw_bps": 256e6, "busbw_bps": 480e6, "wrong_values": None,
            "algorithm": "ring all-reduce", **values}


def test_the_table_of_nccl_tests():
    table = report.collectives([row(), row(collective="all-gather", wrong_values=3),
                                row(collective="broadcast"), row(collective=None), row(completion_s=None, algbw_bps=None, busbw_bps=None)])
    lines = [line.split() for line in table.splitlines()]
    assert lines[0][:9] == "size count type redop root time algbw busbw #wrong".split()
    assert lines[2][:9] == "16000000 16000000 uint8 sum -1 500000.0 32.0000 60.0000 N/A".split()
    assert lines[3][:5] == ["16000000", "1000000", "uint8", "none", "-1"] and lines[3][8] == "3"
    assert lines[4][:5] == ["16000000", "16000000", "uint8", "none", "0"] and lines[5][5:8] == ["-", "-", "-"]
    assert report.collectives([row(collective=None)]) == ""
    assert "GB/s" in report.collectives([row(busbw_bps=80e9)])


def test_planned_and_measured_bytes_of_the_matrix_agree():
    made = several("allreduce:bytes=400kB,ranks=4; name=a; hosts=h1,h3,h5,h7",
                   "alltoall:bytes=70kB,warmup=0; name=b")
    brought = outcome(plan(topology=TOPOLOGY, workload="allreduce:bytes=400kB,ranks=4"))
    seen = matrix(made, brought)  # what another run brought: the first job's four ranks alone
    assert seen.planned[:4, :4].sum() == 2 * made.workload.jobs[0].workload.schedule.bytes_sent
    assert numpy.array_equal(seen.planned[:4, :4], seen.measured[:4, :4]) and not seen.measured[4:].any()
    assert seen.labels[:5] == ("a 0", "a 1", "a 2", "a 3", "b 0")
    assert {(r[0], r[3], r[4]) for r in seen.rows[:2]} == {("a", "h1", "h3"), ("a", "h3", "h5")}
    assert sum(r[5] for r in seen.rows) == made.workload.bytes_sent
    picture = report.heatmap(seen.planned, seen.labels, "<bytes>")
    assert picture.count("<title>") == len(seen.rows) and "&lt;bytes&gt;" in picture


@pytest.mark.parametrize("workload", ["allreduce:bytes=1MB", "alltoall:bytes=300kB,placement=spread",
                                      "broadcast:bytes=1MB"])
def test_bytes_over_links_follow_the_paths_of_the_connections(workload):
    made = plan(workload=workload, topology=TOPOLOGY)
    brought = outcome(made)
    listed = link_bytes(made, brought)
    assert len(listed) == 2 * len(made.graph.links)
    sent = made.workload.bytes_sent
    hosts = [link for link in listed if link.source in made.graph.host]
    assert sum(link.payload_bytes for link in hosts) == sent  # every byte leaves a host once
    assert all(link.expected_data_bytes >= link.payload_bytes * 1514 / 1448 - 1e-6 for link in listed)
    used = {node for path in brought.paths.values() for node in brought.nodes(path)}
    assert all(not link.payload_bytes for link in listed if link.destination not in used)


def test_slowdown_against_the_run_that_had_the_job_alone():
    def run(only: str, **times: float):
        return {"experiment": {"only": only, "varied": {"only": only}, "reference": False}, "jobs": [
            {"name": name, "completion_s": times[name], "ideal_s": 1.0, "efficiency": 1.0,
             "expected_efficiency": None, "runs": only in ("all", name)} for name in times]}

    rows = [("only=all", run("all", a=4.0, b=3.0)), ("only=a", run("a", a=2.0, b=0.0))]
    together = rows[0][1]
    assert alone_s(rows, together, "a") == 2.0 and alone_s(rows, together, "b") is None
    assert report.compared(rows).row_count == 3
