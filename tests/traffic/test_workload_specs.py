"""--workload: every form resolves to a checked workload of the right size, every slip is one sentence."""
from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.errors import BadInput
from traffic.catalogue import WORKLOADS
from traffic.check import check_schedule
from traffic.file_specs import FORMS
from traffic.ideal import ideal
from traffic.schedule import Collective, Kind
from traffic.setting import Setting
from traffic.specs import resolve_workload


@pytest.fixture(scope="module")
def setting(k4):
    return Setting(k4, rate_bps=10e6, mtu=1500, seed=1)


def ideal_s(workload, setting):
    return ideal(workload, setting.paths, setting.wire).ideal_s


def message_sizes(workload):
    return {op.size_bytes for ops in workload.schedule.ranks for op in ops if op.kind is Kind.SEND}


def computes(workload):
    return {round(op.duration_s, 9) for ops in workload.schedule.ranks for op in ops
            if op.kind is Kind.COMPUTE}


def test_everything_said(setting):
    workload = resolve_workload("allreduce:algorithm=ring,bytes=1MB,ranks=8,placement=random,slices=2,"
                                "channels=5,iterations=3,warmup=2", setting)
    assert workload.collective == Collective("all-reduce", 1_000_000)
    assert len(workload.schedule.ranks) == len(set(workload.placement)) == 8
    assert (workload.iterations, workload.warmup) == (3, 2)
    assert message_sizes(workload) == {1_000_000 // 8 // 5 // 2}
    assert workload.name.startswith("allreduce:algorithm=ring,bytes=1MB")


@pytest.mark.parametrize("text, ranks, warmup", [
    ("allreduce", 16, 1), ("allreduce:algorithm=halving-doubling", 16, 1), ("reducescatter", 16, 1),
    ("allreduce:algorithm=halving-doubling,ranks=11", 11, 1),
    ("allreduce:algorithm=double-binary-tree", 16, 1), ("allreduce:algorithm=bidirectional-ring", 16, 1),
    ("allreduce:algorithm=hierarchical", 16, 1),
    ("allreduce:algorithm=hierarchical,levels=3,ranks=13", 13, 1),
    ("reducescatter:algorithm=halving-doubling", 16, 1), ("allgather:algorithm=halving-doubling", 16, 1),
    ("broadcast", 16, 1), ("reduce", 16, 1), ("alltoall", 16, 1), ("sendrecv", 16, 1),
    ("parameterserver", 16, 1), ("parameterserver:servers=16,colocated=yes", 16, 1),
    ("allgather:bytes=auto", 16, 1), ("allreduce:ranks=5,placement=random", 5, 1), ("pipeline", 4, 1),
    ("pipeline:stages=16,microbatches=3", 16, 1), ("training", 16, 1), ("training:stages=2,replicas=3", 6, 1),
    ("training:activation=50kB", 16, 1), ("pattern:stride=4", 16, 0), ("pattern:pair=0-2", 2, 0),
    ("pattern:incast=15", 16, 0), ("pattern:random-bijection", 16, 0),
    ("pattern:staggered=0.2-0.3", 16, 0), ("pattern:stride=8,flows=4", 16, 0)])
@pytest.mark.parametrize("rate_bps", [1e6, 50e6])
def test_sizes_left_out_make_an_ideal_of_ten_seconds(setting, text, ranks, warmup, rate_bps):
    setting = replace(setting, rate_bps=rate_bps)
    workload = resolve_workload(text, setting)
    assert len(workload.schedule.ranks) == len(workload.placement) == ranks
    assert (workload.iterations, workload.warmup) == (1, warmup)
    # the sizes of patterns rest on the host link alone; at 1 Mb/s a frame takes 12 ms at each hop
    assert ideal_s(workload, setting) == pytest.approx(10.0, rel=0.05)


def test_where_delays_alone_take_ten_seconds_a_frame_a_chunk_remains(setting):
    workload = resolve_workload("allreduce", replace(setting, rate_bps=50e3, delay_s=0.2))
    assert workload.collective.size_bytes == 16 * 1448


def test_figures_that_are_given_are_kept(setting):
    workload = resolve_workload(
        "pipeline:stages=3,microbatches=2,activation=70kB,forward=20ms,backward=30ms", setting)
    assert message_sizes(workload) == {70_000} and computes(workload) == {0.02, 0.03}
    workload = resolve_workload("training:stages=2,replicas=2,forward=20ms,gradient=64kB,slices=1", setting)
    assert computes(workload) == {0.02, 0.04} and workload.schedule.buffer_bytes == 64_000
    assert 32_000 in message_sizes(workload)
    assert computes(resolve_workload("pipeline:backward=30ms", setting)) == {0.015, 0.03}


def test_dilation_and_byte_scale_apply_to_what_is_given(setting):
    scaled = replace(setting, dilation=100.0, byte_scale=1000.0)
    workload = resolve_workload("pipeline:activation=70kB,forward=20us,backward=30us", scaled)
    assert message_sizes(workload) == {70} and computes(workload) == {0.002, 0.003}
    assert message_sizes(resolve_workload("pattern:stride=1,bytes=10B", scaled)) == {1}
    assert message_sizes(resolve_workload("pattern:stride=1", scaled)) == message_sizes(
        resolve_workload("pattern:stride=1", setting))


def test_slices_by_default_are_at_least_eight_frames(setting):
    assert message_sizes(resolve_workload("allreduce:bytes=1600kB", setting)) == {25_000}
    assert message_sizes(resolve_workload("allreduce:bytes=16kB", setting)) == {1000}


def test_seeds(setting):
    for text in ("pattern:random-bijection", "allreduce:placement=random,bytes=16kB"):
        one, again, other = (resolve_workload(text, replace(setting, seed=seed)) for seed in (1, 1, 2))
        assert one == again and one != other


def test_files(setting, tmp_path):
    matrix = tmp_path / "two.cm"
    matrix.write_text("Nodes 16\nConnections 2\n0->15 start 1000000 size 2000\n3->4 start 0 size 5\n")
    workload = resolve_workload(str(matrix), replace(setting, dilation=1e6, byte_scale=2))
    assert message_sizes(workload) == {1000, 2} and computes(workload) == {1.0} and workload.warmup == 0
    pattern = tmp_path / "pattern"
    pattern.write_text("10.0.0.2 10.1.1.2 12345 TCP 1 0.0 60.0 100 random\n"
                       "10.0.0.3 10.1.1.3 12345 TCP 1 0.0 60.0 50 random\n")
    workload = resolve_workload(f"hedera:{pattern}", setting)
    large = max(message_sizes(workload))
    assert ideal_s(workload, setting) == pytest.approx(10.0, rel=0.02)
    assert large // 2 in message_sizes(workload)
    assert workload.notes


@pytest.mark.parametrize("text, says", [
    ("", "has no name"),
    ("alreduce", 'did you mean "allreduce"'), ("traning:stages=2", 'did you mean "training"'),
    ("file.goal", "does not exist"), ("file.gaol", "Unknown workload"),
    ("allreduce:algorithm=rign", 'did you mean "ring"'),
    ("allreduce:algorithm=tree",
     "known: bidirectional-ring, double-binary-tree, halving-doubling, hierarchical, ring"),
    ("allreduce:byte=1MB", 'did you mean "bytes"'),
    ("allreduce:bytes=1", "no unit"),
    ("allreduce:bytes=0MB", "more than zero"),
    ("allreduce:bytes=-1MB", "negative"),
    ("allreduce:bytes=1.5B", "whole number of bytes"),
    ("allreduce:bytes=much", "not a number"),
    ("allreduce:ranks=17", "17 ranks do not fit on 16 hosts"),
    ("allreduce:ranks=1", "ranks: 1 is outside 2"),
    ("allreduce:ranks=two", 'ranks: "two" is not a whole number'),
    ("allreduce:ranks=1e9", "not a whole number"),
    ("allreduce:ranks=", "not of the form key=value"),
    ("allreduce:ranks", "not of the form key=value"),
    ("allreduce:ranks=4,ranks=4", "gives ranks twice"),
    ("allreduce:placement=lineal", 'did you mean "linear"'),
    ("allreduce:slices=0", "slices: 0 is outside"),
    ("allreduce:channels=65", "channels: 65 is outside"),
    ("allreduce:iterations=0", "iterations: 0 is outside"),
    ("allreduce:warmup=-1", "warmup: -1 is outside"),
    ("allreduce:levels=3", "belongs to algorithm=hierarchical"),
    ("allreduce:algorithm=hierarchical,levels=4", "levels: 4 is outside 2 to 3"),
    ("broadcast:levels=2", 'no parameter "levels"'),
    ("parameterserver:servers=16", "leave no worker; use 1 to 15"),
    ("parameterserver:colocated=maybe", "neither yes nor no"),
    ("barrier:bytes=1MB", 'no parameter "bytes"'),
    ("pipeline:stages=17", "17 ranks do not fit"),
    ("pipeline:stages=1", "nobody to send to"),
    ("pipeline:forward=5", "no unit"),
    ("pipeline:forward=-5ms", "negative"),
    ("pipeline:replicas=2", "no parameter"),
    ("training:stages=4,replicas=5", "20 ranks do not fit"),
    ("training:stages=1,replicas=1", "nobody to send to"),
    ("training:microbatches=0", "microbatches: 0 is outside"),
    ("pattern", "must name one of stride"),
    ("pattern:bytes=1MB", "must name one of"),
    ("pattern:stride=1,incast=2", "not stride and incast"),
    ("pattern:stride=16", "send to itself"),
    ("pattern:stride=x", "not a whole number"),
    ("pattern:pair=0-16", "no host 16"),
    ("pattern:pair=3-3", "cannot send to itself"),
    ("pattern:pair=3", "such as 0-2"),
    ("pattern:incast=16", "1 to 15 senders"),
    ("pattern:random-bijection=no", "takes no value"),
    ("pattern:random", "not of the form"),
    ("hedera", "needs a file"), ("simai", "needs a file: simai:FILE"), ("cm", "needs a file: FILE.cm"),
    ("job", "needs a file: job:FILE.yaml"),
    ("hedera:", "needs a file"),
    ("hedera:/nowhere", "does not exist"),
    ("/nowhere.cm", "does not exist"),
    ("hedera:/tmp", "is a directory")])
def test_slips(setting, text, says):
    with pytest.raises(BadInput) as error:
        resolve_workload(text, setting)
    assert says in str(error.value) and "\n" not in str(error.value) and str(error.value).endswith(".")


def test_scales_must_be_positive(setting):
    for wrong in (replace(setting, dilation=0.0), replace(setting, byte_scale=-1.0)):
        with pytest.raises(BadInput, match="more than zero"):
            resolve_workload("allreduce", wrong)


def test_a_fabric_with_one_host(k4):
    alone = replace(k4, hosts=k4.hosts[:1])
    for text in ("allreduce", "training", "pattern:stride=1", "pattern:random-bijection", "pattern:incast=1"):
        with pytest.raises(BadInput):
            resolve_workload(text, Setting(alone, 10e6, 1500, 1))


def test_every_catalogued_example_and_parameter_is_real(setting, tmp_path):
    for entry in WORKLOADS:
        assert entry.meaning and "\n" not in entry.meaning
        if entry.name in ("hedera", "job", *FORMS):
            continue  # their examples are files, see test_files and test_traces
        assert resolve_workload(entry.example, setting).schedule.bytes_sent
        with pytest.raises(BadInput) as error:
            resolve_workload(f"{entry.name}:zzzzzzzz=1", setting)
        assert "no parameter" in str(error.value)
        for key in (word for keys, _, _ in entry.parameters for word in keys.replace(",", " ").split()):
            with pytest.raises(BadInput) as error:
                resolve_workload(f"{entry.name}:{key}=@", setting)
            assert "no parameter" not in str(error.value)


@given(st.text(alphabet="allreducepatternstridebytesMBpipeline:=,-0123456789.", max_size=40))
@settings(max_examples=200, deadline=None)
def test_any_text_is_resolved_or_refused(k4, text):
    try:
        workload = resolve_workload(text, Setting(k4, 10e6, 1500, 1))
    except BadInput as error:
        assert str(error).endswith(".")
    else:
        check_schedule(workload.schedule, 16)
