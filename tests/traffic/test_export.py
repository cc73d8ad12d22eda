"""What is written for other simulators reads back as the same schedule and the same fabric."""
from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.errors import BadInput
from tests.traffic import samples
from topologies.catalog import resolve_topology
from topologies.htsim_topo import read_topo
from traffic.check import check_schedule
from traffic.collective_specs import ALGORITHMS
from traffic.dag import dag
from traffic.expand import Scale, expand
from traffic.export.__main__ import main
from traffic.export.cm import cm_text
from traffic.export.flow_deps import waits_of_sends
from traffic.export.goal import goal_text
from traffic.export.topo import topo_text
from traffic.importers.goal import read_goal
from traffic.importers.htsim import read_cm
from traffic.importers.htsim_flows import cm_workload
from traffic.paths import Paths
from traffic.pipeline import pipeline
from traffic.schedule import Kind
from traffic.simulate import simulate
from traffic.wire import Wire

WIRE = Wire.shaped(10e6, 1500)


def meaning(schedule, placement):
    """Each message by its hosts and number -> size, start, and the messages that it waits for."""
    graph = dag(schedule)
    counts, names = {}, {}
    for node in sorted(waits_of_sends(graph)):
        op, rank = graph.ops[node], graph.rank[node]
        pair = placement[rank], placement[op.peer]
        counts[pair] = counts.get(pair, 0) + 1
        names[node] = (*pair, counts[pair])
    return {names[node]: (graph.ops[node].size_bytes, graph.ops[node].traffic_class,
                          round(wait.after_s * 1e12) if not wait.ends else None,
                          frozenset((names[send], end) for send, end in wait.ends))
            for node, wait in waits_of_sends(graph).items()}


def exported(schedule, placement, star16):
    simulated = simulate(schedule, placement, Paths(star16), WIRE)
    return cm_text(schedule, placement, 16, simulated.end_s)


@st.composite
def matrices(draw):
    """A valid .cm: flows in some order of time, each started by nothing, a oneshot, a multishot or a barrier."""
    count = draw(st.integers(1, 12))
    flows, fires = [], {}  # fires: flow -> its send and recv trigger
    triggers = []  # (id, kind, count)
    for number in range(1, count + 1):
        a = draw(st.integers(0, 7))
        b = draw(st.integers(0, 7).filter(lambda node: node != a))
        free = [(other, end) for other in fires for end in ("send", "recv") if end not in fires[other]]
        kind = draw(st.sampled_from(["start", "oneshot", "barrier", "multishot"])) if free else "start"
        if kind == "start":
            how = f"start {draw(st.integers(0, 10**9))}"
        else:
            most = 3 if kind == "barrier" else 1
            wanted = draw(st.lists(st.sampled_from(free), min_size=1, max_size=most, unique=True))
            triggers.append((len(triggers) + 1, kind, len(wanted)))
            for other, end in wanted:
                fires[other][end] = len(triggers)
            how = f"trigger {len(triggers)}"
        fires[number] = {}
        prio = f" prio {draw(st.integers(0, 7))}" if draw(st.booleans()) else ""
        flows.append(f"{a}->{b} id {number} {how} size {draw(st.integers(1, 10**6))}{prio}")
    lines = ["Nodes 16", f"Connections {count}", f"Triggers {len(triggers)}"]
    lines += [line + "".join(f" {end}_done_trigger {place}" for end, place in fires[number].items())
              for number, line in enumerate(flows, 1)]
    lines += [f"trigger id {place} {kind}" + (f" count {wanted}" if kind == "barrier" else "")
              for place, kind, wanted in triggers]
    return "\n".join(lines) + "\n"


@given(matrices())
@settings(max_examples=60, deadline=None)
def test_a_connection_matrix_comes_back_with_the_same_meaning(tmp_path_factory, star16, text):
    path = tmp_path_factory.getbasetemp() / "round.cm"
    path.write_text(text)
    before = cm_workload(read_cm(str(path)), 16)
    again, notes = exported(before.schedule, before.placement, star16)
    assert not notes
    path.write_text(again)
    after = cm_workload(read_cm(str(path)), 16)
    assert meaning(after.schedule, after.placement) == meaning(before.schedule, before.placement)


@pytest.mark.skipif(not (samples.DATA / "htsim").is_dir(), reason="no public traffic files in "
                                                                  f"{samples.DATA}")
@pytest.mark.parametrize("name", ["incast.cm", "perm_16n_16c_2MB.cm"])
def test_the_public_matrices_come_back(tmp_path, star16, name):
    before = cm_workload(read_cm(str(samples.DATA / "htsim" / name)), 16)
    (tmp_path / "again.cm").write_text(exported(before.schedule, before.placement, star16)[0])
    after = cm_workload(read_cm(str(tmp_path / "again.cm")), 16)
    assert meaning(after.schedule, after.placement) == meaning(before.schedule, before.placement)


COLLECTIVES = [(what, name, entry) for what, each in ALGORITHMS.items() for name, entry in each.items() if entry.build]


@pytest.mark.parametrize("what, name, entry", COLLECTIVES, ids=[f"{what}-{name}" for what, name, _ in COLLECTIVES])
@pytest.mark.parametrize("slices", [1, 3])
def test_collectives_as_a_matrix_keep_to_the_format(tmp_path, star16, what, name, entry, slices):
    schedule = entry.build(6, 6000, slices, 1)
    text, notes = exported(schedule, tuple(range(6)), star16)
    (tmp_path / "x.cm").write_text(text)
    back = cm_workload(read_cm(str(tmp_path / "x.cm")), 16)  # checks header counts, ids from 1, triggers that fire
    check_schedule(back.schedule, 16)
    assert back.schedule.bytes_sent == schedule.bytes_sent
    if not notes:
        assert meaning(back.schedule, back.placement) == meaning(schedule, tuple(range(6)))
    assert (what, name) != ("allreduce", "ring") or not notes, "a ring can be said in full"


def test_what_a_matrix_cannot_say_is_noted(star16):
    schedule = pipeline(3, 4, 1000, 0.1, 0.2)
    text, notes = exported(schedule, (0, 1, 2), star16)
    assert re.search(r"[0-9]+ of [0-9]+ flows wait for one message", notes[0])
    assert "the computing and waiting before" in notes[1]
    ids = [int(word) for word in re.findall(r"->[0-9]+ id ([0-9]+)", text)]
    assert ids == list(range(1, 17))


@given(st.sampled_from(COLLECTIVES), st.integers(2, 6), st.integers(1, 3000), st.integers(1, 3))
@settings(max_examples=40, deadline=None)
def test_goal_comes_back_the_same(tmp_path_factory, entry, ranks, size_bytes, slices):
    schedule = entry[2].build(ranks, size_bytes, slices, 1)
    path = tmp_path_factory.getbasetemp() / "round.goal"
    path.write_text(goal_text(schedule)[0])
    if not schedule.bytes_sent:
        return
    back = expand(read_goal(str(path)), Scale())
    kinds = {Kind.REDUCE: Kind.COMPUTE}
    assert [[(kinds.get(op.kind, op.kind), op.deps, op.peer, op.size_bytes if op.peer >= 0 else 0) for op in ops]
            for ops in back.ranks] == [
        [(kinds.get(op.kind, op.kind), op.deps, op.peer, op.size_bytes if op.peer >= 0 else 0) for op in ops]
        for ops in schedule.ranks]
    matches = [sorted(dag(each).match.items()) for each in (schedule, back)]
    assert matches[0] == matches[1]


def test_sizes_that_htsim_cannot_read(star16):
    with pytest.raises(BadInput, match="a message of 3000000000 bytes is more than the 2147483647"):
        exported(ALGORITHMS["sendrecv"]["ring"].build(2, 3_000_000_000, 1, 1), (0, 1), star16)


def test_triggers_cannot_be_goal(tmp_path):
    (tmp_path / "x.cm").write_text(samples.CM)
    with pytest.raises(BadInput, match="GOAL cannot say; write a .cm"):
        goal_text(cm_workload(read_cm(str(tmp_path / "x.cm")), 16).schedule)


@pytest.mark.parametrize("spec", [
    "fat-tree:k=4", "fat-tree:k=6", "leaf-spine:leaves=4,spines=2,hosts=4,oversubscription=2", "clos3",
    "clos3:pods=3,leaves=2,spines=2,cores=2,hosts=4,oversubscription=2"])
def test_fabrics_come_back(tmp_path, spec):
    graph = resolve_topology(spec)
    (tmp_path / "x.topo").write_text(topo_text(graph, 100e9, 1e-6))
    back = read_topo(Path(tmp_path / "x.topo"))
    assert back.host_rate_bps == 100e9 and set(back.link_delay_s) == {1e-6}
    shape = [sorted((graph.switch[link.b].tier, round(link.speed, 9)) for link in each.links)
             for graph, each in ((graph, graph), (back.graph, back.graph))]
    assert shape[0] == shape[1] and len(back.graph.hosts) == len(graph.hosts)


@pytest.mark.parametrize("spec, rate_bps, says", [
    ("star:hosts=4", 1e11, "1 tiers of switches"), ("dragonfly", 1e11, "cannot be written as a .topo"),
    ("fat-tree:k=4", 5e6, "whole Gb/s; name the target's host link")])
def test_fabrics_that_no_topo_can_say(spec, rate_bps, says):
    with pytest.raises(BadInput, match=says):
        topo_text(resolve_topology(spec), rate_bps)


def test_the_command(tmp_path, capsys):
    options = ["--workload", "allreduce:bytes=16kB", "--topology", "fat-tree:k=4", "--rate", "5mbit",
               "--dilation", "20000"]
    files = [word for kind in ("cm", "topo", "goal") for word in (f"--{kind}", str(tmp_path / f"x.{kind}"))]
    assert main([*options, *files]) == 0
    assert len(read_cm(str(tmp_path / "x.cm")).flows) == 16 * 30
    assert read_topo(tmp_path / "x.topo").host_rate_bps == 100e9
    assert len(read_goal(str(tmp_path / "x.goal")).ranks) == 16
    real = ["--target-rate", "400gbit", "--topo", str(tmp_path / "real.topo")]
    assert main([*options[:-2], *real]) == 0 and read_topo(tmp_path / "real.topo").host_rate_bps == 400e9
    capsys.readouterr()
    for words, says in (([*options, *files], "is there already"), (options, "nothing to write"),
                        ([*options, "--topo", str(tmp_path / "y.topo"), "--latency", "-1us"], '"-1us" is negative'),
                        ([*options, "--topo", str(tmp_path / "y.topo"), "--host-link", "-1gbit"], "is negative"),
                        ([*options, "--cm", str(tmp_path / "no" / "x.cm")], "cannot be written"),
                        ([*options, "--repeat", "2", "--cm", str(tmp_path / "y.cm")], "has 2 runs"),
                        ([*options[:-2], "--topo", str(tmp_path / "y.topo")], "whole Gb/s"),
                        (["--workload", "nope", "--cm", str(tmp_path / "y.cm")], "Unknown workload")):
        assert main(words) == 2
        said = capsys.readouterr().err
        assert says in said and said.count("\n") == 1


STAR8 = ["--topology", "star:hosts=8", "--rate", "5mbit"]


def test_several_jobs_keep_their_starts_and_their_order(tmp_path, capsys):
    """One begins later, one when another has ended: on other hosts, beside each other."""
    jobs = ["--job", "allreduce:algorithm=double-binary-tree,bytes=1MB,ranks=4; name=a",
            "--job", "allreduce:bytes=10kB,ranks=2,slices=1,warmup=0; name=b; start=5s",
            "--job", "alltoall:bytes=4kB,ranks=2,warmup=0; name=c; hosts=h7-h8; after=b"]
    file = str(tmp_path / "x.cm")
    assert main([*STAR8, *jobs, "--dilation", "7", "--cm", file]) == 0
    said = capsys.readouterr().out
    assert "one iteration of each job is written; the run makes 2 of a, 1 of b, 1 of c" in said
    matrix = read_cm(file)
    of = {name: [flow for flow in matrix.flows if flow.source in nodes]
          for name, nodes in (("a", range(4)), ("b", (4, 5)), ("c", (6, 7)))}
    assert sum(flow.size_bytes for flow in of["a"]) == 2 * 3 * 1_000_000
    assert {flow.start_ps for flow in of["a"] if flow.trigger is None} == {0}
    assert [flow.start_ps for flow in of["b"] if flow.trigger is None] == [5e12] * 2
    assert len({flow.trigger for flow in of["c"]}) == 1 and of["c"][0].trigger is not None
    fires = {flow.line for flow, _ in matrix.fired_by[of["c"][0].trigger]}
    assert fires <= {flow.line for flow in of["b"]} and len(fires) == len(of["b"]) == 4


def test_sizes_come_one_after_the_other_and_only_names_one(tmp_path, capsys):
    sizes = [*STAR8, "--workload", "alltoall:bytes=8kB+16kB,slices=1"]
    assert main([*sizes, "--cm", str(tmp_path / "all.cm")]) == 0
    flows = read_cm(str(tmp_path / "all.cm")).flows
    assert sorted({flow.size_bytes for flow in flows if flow.start_ps == 0}) == [1000]
    assert {flow.size_bytes for flow in flows} == {1000, 2000}
    assert main([*sizes, "--only", "16kB", "--cm", str(tmp_path / "one.cm")]) == 0
    only = read_cm(str(tmp_path / "one.cm")).flows
    assert {flow.size_bytes for flow in only} == {2000} and 2 * len(only) == len(flows)
    capsys.readouterr()
    assert main([*sizes, "--goal", str(tmp_path / "x.goal")]) == 2
    assert "GOAL cannot say; write a .cm instead" in capsys.readouterr().err


@pytest.mark.parametrize("words, says", [
    (["--workload", "alltoall", "--background", "cdf:websearch,load=0.1"], "--background lasts until the jobs"),
    (["--run", "each", "true"], "What the program of --run sends")])
def test_what_has_no_schedule_is_refused(tmp_path, capsys, words, says):
    for kind in ("cm", "goal"):
        assert main([*STAR8, f"--{kind}", str(tmp_path / "x"), *words]) == 2
        said = capsys.readouterr().err
        assert says in said and said.count("\n") == 1 and not (tmp_path / "x").exists()


def test_what_a_run_does_more_is_noted(tmp_path, capsys):
    words = ["--workload", "alltoall:bytes=8kB,iterations=3", "--event", "1s link s1-h1 down", "--switch", "bpf"]
    assert main([*STAR8, *words, "--cm", str(tmp_path / "x.cm")]) == 0
    said = capsys.readouterr().out
    assert "one iteration is written; the run makes 4" in said and "1 events (--event) are left out" in said
    assert main([*STAR8, "--workload", "pattern:stride=1", "--cm", str(tmp_path / "y.cm")]) == 0
    assert "Note" not in capsys.readouterr().out
