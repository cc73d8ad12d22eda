"""From a trace to a schedule: collectives over groups, mappings, and each format's own meaning."""
from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.errors import BadInput
from tests.traffic import samples
from traffic.check import check_schedule
from traffic.expand import Scale, expand
from traffic.file_specs import FileSpec, file_spec, file_workload
from traffic.importers.aicb import read_aicb
from traffic.importers.cdf import read_points
from traffic.importers.chakra import read_chakra
from traffic.importers.goal import read_goal
from traffic.importers.groups import KINDS, parallel
from traffic.importers.simai import read_simai
from traffic.importers.torch_trace import read_torch
from traffic.mapping import pack, without
from traffic.paths import Paths
from traffic.schedule import Kind
from traffic.setting import Setting
from traffic.simulate import simulate
from traffic.trace import Does, Step, Trace, chain, first_ranks
from traffic.wire import Wire

WIRE = Wire.shaped(10e6, 1500)


def write(tmp_path, name, content):
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(tmp_path / name)


def collective(what, size_bytes, group, **more):
    return Step(Does.COLLECTIVE, 1, collective=what, size_bytes=size_bytes, group=group, **more)


@given(st.sampled_from(["allreduce", "allgather", "reducescatter", "alltoall", "broadcast", "reduce"]),
       st.integers(2, 7), st.integers(1, 5000), st.sampled_from(["ring", "halving-doubling", "double-binary-tree"]))
@settings(max_examples=60, deadline=None)
def test_a_collective_sends_what_it_must_and_ends_after_all_have_begun(star16, what, ranks, size_bytes, algorithm):
    """The last rank computes for 3 s first; nobody may be through before, but for a broadcast's source side."""
    group = tuple(range(ranks))
    late = Step(Does.COMPUTE, 1, duration_s=3.0)
    after = Step(Does.COMPUTE, 2, duration_s=1.0)
    lists = [chain([late, collective(what, size_bytes, group), after] if rank == ranks - 1 else
                   [collective(what, size_bytes, group), after]) for rank in group]
    schedule = expand(Trace("t", tuple(lists)), Scale(), algorithm)
    check_schedule(schedule, ranks)
    kept = sum(size_bytes * (r + 1) // ranks - size_bytes * r // ranks for r in group)
    least = {"allreduce": 2 * (ranks - 1) * size_bytes, "allgather": (ranks - 1) * size_bytes,
             "reducescatter": (ranks - 1) * size_bytes, "alltoall": ranks * size_bytes - kept,
             "broadcast": (ranks - 1) * size_bytes, "reduce": (ranks - 1) * size_bytes}[what]
    if algorithm == "ring" or what in ("alltoall", "broadcast", "reduce"):
        assert schedule.bytes_sent == least
    assert schedule.bytes_sent >= least
    ended = simulate(schedule, tuple(range(ranks)), Paths(star16), WIRE).end_s
    if what in ("allreduce", "reducescatter") and size_bytes >= ranks:
        assert min(max(ends) for ends in ended) >= 4.0
    assert max(ended[-1]) >= 4.0


def test_a_root_other_than_the_first_sends_first():
    lists = [(collective("broadcast", 9, (0, 1, 2), root=2),)] * 3
    schedule = expand(Trace("t", tuple(lists)), Scale())
    assert [(rank, op.peer) for rank, ops in enumerate(schedule.ranks) for op in ops if op.kind is Kind.SEND] == [
        (0, 1), (2, 0)]


@pytest.mark.parametrize("lists, says", [
    ([[collective("allreduce", 8, (0, 1))], []], "rank 1 never joins this allreduce, the group's number 1"),
    ([[collective("allreduce", 8, (0, 1))], [collective("allreduce", 9, (0, 1))]], "allreduce of 9 bytes "
                                                                                   "where rank 0"),
    ([[collective("allreduce", 8, (0, 1))], [collective("allgather", 8, (0, 1))]], "has a allgather"),
    ([[collective("allreduce", 0, (0, 1))], [collective("allreduce", 0, (0, 1))]], "0 bytes sends nothing"),
    ([[collective("allreduce", 8, (1,))], []], "does not belong to"),
    ([[collective("allreduce", 8, (0,))], []], "nothing would be emulated"),
    ([[Step(Does.SEND, 1, peer=1, size_bytes=8)], []], "no receive at rank 1 matches this send"),
    ([[Step(Does.SEND, 1, peer=1, size_bytes=8)], [Step(Does.RECV, 1, peer=0, size_bytes=9)]], "expects 9 bytes"),
    ([[], [Step(Does.RECV, 1, peer=0, size_bytes=8)]], "no send at rank 0 matches"),
    ([[Step(Does.SEND, 1, peer=5, size_bytes=8)], []], "the trace has 2 ranks"),
    ([[Step(Does.SEND, 1, peer=0, size_bytes=8)], []], "sends to itself")])
def test_what_no_schedule_can_come_of(lists, says):
    with pytest.raises(BadInput, match=says):
        expand(Trace("t", tuple(map(tuple, lists))), Scale())


RING = [chain([Step(Does.SEND, 1, peer=(r + 1) % 6, size_bytes=100 + r), Step(Does.COMPUTE, 2, duration_s=1.0),
               Step(Does.RECV, 3, peer=(r - 1) % 6, size_bytes=100 + (r - 1) % 6),
               collective("allreduce", 600, tuple(range(6)))]) for r in range(6)]


@pytest.mark.parametrize("host_of", [(0, 0, 1, 1, 2, 2), (0, 1, 2, 0, 1, 2), (0, 1, 2, 3, 4, 5), (3, 3, 3, 3, 3, 4)])
def test_packing_keeps_what_crosses_hosts_and_the_order(star16, host_of):
    schedule = expand(Trace("ring", tuple(RING)), Scale())
    packed, placement = pack(schedule, host_of)
    assert placement == tuple(sorted(set(host_of)))
    check_schedule(packed, len(placement))
    crossing = sum(op.size_bytes for r, ops in enumerate(schedule.ranks) for op in ops
                   if op.kind is Kind.SEND and host_of[op.peer] != host_of[r])
    assert packed.bytes_sent == crossing
    assert sum(map(len, packed.ranks)) == sum(map(len, schedule.ranks))
    took = simulate(packed, placement, Paths(star16), WIRE).completion_s
    assert took >= 1.0, "the compute between send and collective is still waited for"


def test_packing_onto_one_host_is_refused():
    with pytest.raises(BadInput, match="share a host"):
        pack(expand(Trace("ring", tuple(RING)), Scale()), (0,) * 6)


def test_the_first_ranks_go_on_without_the_others():
    cut = first_ranks(Trace("ring", tuple(RING)), 4)
    assert len(cut.ranks) == 4 and cut.ranks[0][3].group == (0, 1, 2, 3)
    assert cut.ranks[3][0].does is Does.COMPUTE and cut.ranks[0][2].does is Does.COMPUTE
    assert "103 bytes of messages to other ranks" in cut.notes[0]
    check_schedule(expand(cut, Scale()), 4)
    with pytest.raises(BadInput, match="groups of 5, which do not fit on 4"):
        first_ranks(Trace("ring", tuple(RING), block=5), 4)


def test_messages_of_ranks_that_are_left_out_cost_nothing():
    schedule = expand(Trace("ring", tuple(RING)), Scale())
    cut = without(schedule, {5})
    assert cut.bytes_sent == sum(op.size_bytes for r, ops in enumerate(schedule.ranks) for op in ops
                                 if op.kind is Kind.SEND and 5 not in (r, op.peer))
    check_schedule(cut, 6)


@given(st.integers(1, 4), st.integers(1, 3), st.integers(1, 3), st.integers(1, 3))
def test_groups_part_the_ranks(tp, pp, ep, copies):
    groups = parallel("t", tp * pp * ep * copies, tp, pp, ep)
    for kind in KINDS:
        found = {groups.group(kind, rank) for rank in range(groups.ranks)}
        assert sorted(rank for group in found for rank in group) == list(range(groups.ranks))
        assert all(rank in groups.group(kind, rank) for rank in range(groups.ranks))
    assert groups.group("tp", 0) == tuple(range(tp))


def test_goal(tmp_path):
    trace = read_goal(write(tmp_path, "a.goal", samples.GOAL))
    assert [step.deps for step in trace.ranks[0]] == [(), (0,), (0,)], "l3 may start when l2 has started"
    assert trace.ranks[0][0].duration_s == pytest.approx(1e-6)
    assert "2 sends and receives of 0 bytes carry 1 byte" in trace.notes[0]
    check_schedule(expand(trace, Scale()), 3)


def test_simai_runs_in_the_simulators_order(tmp_path):
    trace = read_simai(write(tmp_path, "a.txt", samples.SIMAI), None, 16)
    assert len(trace.ranks) == 4 and trace.block == 2
    steps = trace.ranks[1]
    assert [(step.phase, step.collective, step.where) for step in steps if step.does is Does.COLLECTIVE] == [
        ("forward embedding", "allreduce", 3), ("forward attention", "allreduce", 4),
        ("input gradient mlp", "alltoall", 5), ("weight gradient mlp", "reducescatter", 5),
        ("forward embedding", "allreduce", 3),  # again, because layer 1 starts a recomputation
        ("input gradient attention", "allreduce", 4)]
    assert steps[1].group == (0, 1) and [step.group for step in steps if step.where == 5 and step.collective] == [
        (1,), (1, 3)]
    assert "expert-parallel of 1" in " ".join(trace.notes)


def test_aicb_without_sizes_and_header(tmp_path):
    text = "\n".join(samples.AICB.splitlines()[1:])
    trace = read_aicb(write(tmp_path, "a.csv", text), None)
    assert len(trace.ranks) == 4 and len(trace.ranks[0]) == 4
    assert [step.group for step in trace.ranks[2]] == [(2, 3), (2, 3), (2, 3), (0, 2)]
    assert "1 computation rows are left out" in " ".join(trace.notes)


def test_chakra_with_groups_and_both_integers(tmp_path):
    for name, content in samples.chakra().items():
        (tmp_path / name).write_bytes(content)
    trace = read_chakra(str(tmp_path))
    assert [[step.size_bytes for step in steps] for steps in trace.ranks] == [
        [0, 4096, 4000, 512], [0, 4096, 4000], [0, 4096, 4000], [0, 4096, 4000, 512]]
    assert trace.ranks[2][1].group == (2, 3) and trace.ranks[0][0].duration_s == pytest.approx(5e-6)
    dimensions = b"\x52\x12\x0a\x0cinvolved_dim\xe2\x01\x01\x01"  # a list of bools, field 28
    one = samples.node(1, 7, samples.attribute("comm_type", 0), samples.attribute("comm_size", 8), dimensions)
    alone = tmp_path / "alone"
    alone.mkdir()
    (alone / "x.0.et").write_bytes(samples.et_file(one))
    assert "1 collectives name dimensions" in read_chakra(str(alone)).notes[-1]
    (tmp_path / "groups.json").write_text(json.dumps({"a": [0, 1]}))
    with pytest.raises(BadInput, match=r'run.2.et: node 7: the group "b" is not in the JSON'):
        read_chakra(str(tmp_path))
    (tmp_path / "run.1.et").unlink()
    with pytest.raises(BadInput, match="none of rank 1"):
        read_chakra(str(tmp_path))


def test_chakra_nodes_that_wait_in_a_circle(tmp_path):
    one = samples.node(1, 5, samples.attribute("comm_size", 9), samples.attribute("comm_dst", 1), deps=(2,))
    two = samples.node(2, 4, deps=(1,))
    recv = samples.node(1, 6, samples.attribute("comm_size", 9), samples.attribute("comm_src", 0))
    write(tmp_path, "x.0.et", samples.et_file(one, two))
    write(tmp_path, "x.1.et", samples.et_file(recv))
    with pytest.raises(BadInput, match="in a circle"):
        check_schedule(expand(read_chakra(str(tmp_path)), Scale()), 2)


def test_torch_with_one_file_and_with_all(tmp_path):
    for rank in range(4):
        write(tmp_path, f"trace_{rank}.json", samples.torch_trace(rank))
    whole = read_torch(str(tmp_path))
    alone = read_torch(str(tmp_path / "trace_0.json"))
    assert [[(step.collective, step.size_bytes, step.group) for step in steps] for steps in whole.ranks] == [
        [(step.collective, step.size_bytes, step.group) for step in steps] for steps in alone.ranks]
    assert [(step.collective, step.size_bytes, step.group) for step in whole.ranks[3]] == [
        ("allreduce", 2000, (0, 1, 2, 3)), ("allgather", 800, (2, 3)), ("broadcast", 256, (0, 1, 2, 3))]


def test_torch_messages_need_every_rank(tmp_path):
    for rank in range(4):
        write(tmp_path, f"trace_{rank}.json", samples.torch_trace(rank, messages=True))
    trace = read_torch(str(tmp_path))
    assert [(step.does, step.peer, step.size_bytes) for step in (trace.ranks[1][-1], trace.ranks[2][-1])] == [
        (Does.SEND, 2, 100), (Does.RECV, 1, 100)]
    check_schedule(expand(trace, Scale()), 4)
    with pytest.raises(BadInput, match="node 8: a send differs from rank to rank; give a folder"):
        read_torch(str(tmp_path / "trace_1.json"))


def test_a_profilers_timeline(tmp_path):
    for rank in range(4):
        write(tmp_path, f"rank{rank}.json", samples.timeline(rank))
    trace = read_torch(str(tmp_path))
    assert [(step.collective, step.size_bytes, step.group) for step in trace.ranks[2]] == [
        ("allreduce", 4000, (0, 1, 2, 3)), ("reducescatter", 256, (2, 3))], "in order of time"


def test_cdf(tmp_path):
    assert read_points(write(tmp_path, "a.cdf", samples.CDF)) == (
        (0.0, 0.0), (10000.0, 0.15), (20000.0, 0.2), (1000000.0, 1.0))
    assert read_points(write(tmp_path, "b.cdf", "1 1 0\n7 1 0.5\n9 1 1\n"))[1] == (7.0, 0.5)
    for text, says in (("0 0\n5 40\n3 100\n", r":3:1: sizes and percentages must not fall"),
                       ("0 0\n5 99\n", "100 percent"),
                       ("0 0\nx 100\n", r':2:1: size "x"')):
        with pytest.raises(BadInput, match=says):
            read_points(write(tmp_path, "c.cdf", text))


def test_flows_of_hpcc(tmp_path, star16):
    path = write(tmp_path, "flow.txt", samples.FLOWS)
    workload = file_workload(file_spec(f"hpcc:{path}"), Setting(star16, 10e6, 1500, 1, dilation=10, byte_scale=100))
    sends = [(r, op) for r, ops in enumerate(workload.schedule.ranks) for op in ops if op.kind is Kind.SEND]
    assert [(r, op.peer, op.size_bytes, op.traffic_class) for r, op in sends] == [
        (0, 2, 2000, "prio3"), (1, 3, 1000, "prio3"), (3, 0, 50, "prio1")]
    starts = [op.duration_s for ops in workload.schedule.ranks for op in ops if op.kind is Kind.COMPUTE]
    assert starts == [pytest.approx(0.001), pytest.approx(5.0)]


@pytest.mark.parametrize("text, spec", [
    ("a/b.cm", FileSpec("cm", "a/b.cm", {})), ("cm:x,map=first", FileSpec("cm", "x", {"map": "first"})),
    ("x,y.goal,map=pack,iterations=2", FileSpec("goal", "x,y.goal", {"map": "pack", "iterations": "2"})),
    ("simai:a.txt", FileSpec("simai", "a.txt", {})), ("allreduce:bytes=1MB,ranks=4", None), ("pattern:stride=1", None)])
def test_specs_of_files(text, spec):
    assert file_spec(text) == spec


@pytest.mark.parametrize("text, says", [
    ("simai:", "needs a file"), ("simai:/nowhere", "does not exist"), ("chakra:/nowhere", "not a folder"),
    ("torch:/nowhere", "does not exist"), ("x.goal,map=all", 'map="all" is no mapping'),
    ("x.goal,ranks=2", 'no parameter "ranks"'), ("simai:x,ranks=1", "ranks: 1 is outside"),
    ("simai:x,algorithm=rign", 'did you mean "ring"'), ("simai:x,map=pack,map=pack", "given twice")])
def test_slips_in_specs(k4, text, says):
    with pytest.raises(BadInput, match=says):
        file_workload(file_spec(text), Setting(k4, 10e6, 1500, 1))


def test_more_nodes_than_hosts(tmp_path, star16):
    path = write(tmp_path, "wide.cm", "Nodes 64\nConnections 3\nTriggers 1\n"
                 "0->1 id 1 start 0 size 9 recv_done_trigger 1\n1->40 id 2 trigger 1 size 90\n"
                 "63->5 id 3 start 5000 size 900\ntrigger id 1 oneshot\n")
    setting = Setting(star16, 10e6, 1500, 1)
    with pytest.raises(BadInput, match=r":5: node 40 needs a host .* add ,map=pack"):
        file_workload(file_spec(path), setting)
    packed = file_workload(file_spec(f"{path},map=pack"), setting)
    assert packed.placement == (0, 1, 10, 15) and packed.schedule.bytes_sent == 990
    first = file_workload(file_spec(f"{path},map=first"), setting)
    assert first.placement == (0, 1, 5) and first.schedule.bytes_sent == 9
    for workload in (packed, first):
        check_schedule(workload.schedule, 16)
