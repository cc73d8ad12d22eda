"""'llm:…' in words and in a file: sized to the machine, true to its cluster, every slip one sentence."""
from __future__ import annotations

from dataclasses import replace

import pytest

from emulator.errors import BadInput
from traffic.ideal import ideal
from traffic.load import pairs
from traffic.schedule import Kind
from traffic.setting import Setting
from traffic.specs import resolve_workload

SMALL = "llm:params=7e9,layers=32,hidden=4096"
LLAMA = "llm:params=70e9,layers=80,hidden=8192,heads=64,kvheads=8,dp=4,tp=2,pp=2"


@pytest.fixture(scope="module")
def setting(k4):
    return Setting(k4, rate_bps=5e6, mtu=1500, seed=1, auto_dilation=True, auto_byte_scale=True)


def computing_s(workload) -> float:
    return sum(op.duration_s for op in workload.schedule.ranks[0])


@pytest.mark.parametrize("more", ["pp=4", "tp=2,pp=2", "zero=1,pp=2", "zero=3,microbatches=4",
                                  "experts=8,ep=4,params=47e9",
                                  "pp=4,interleave=2", "pp=2,tp=8,nvlink=yes", "compression=1bit,pp=4"])
def test_an_iteration_takes_about_12_s_whatever_the_model(setting, more):
    workload = resolve_workload(f"{SMALL.replace('params=7e9,', '') if 'params' in more else SMALL},{more}",
                                setting)
    assert 9 < ideal(workload, setting.paths, setting.wire).ideal_s < 16
    assert len(workload.schedule.ranks) == 16 and workload.target.dilation == 400e9 / 5e6


def test_computing_and_communication_are_stretched_alike(setting):
    """Real seconds of either do not depend on the scale that was chosen."""
    real = []
    for rate_bps, byte_scale in ((5e6, 70_000.0), (5e6, 35_000.0), (10e6, 20_000.0)):
        at = replace(setting, rate_bps=rate_bps, auto_byte_scale=False, byte_scale=byte_scale)
        workload = resolve_workload(LLAMA, at)
        scale = workload.target.time_scale
        sent = sum(size for (source, _, _), size in pairs(workload.schedule).items() if source == 0)
        real.append((computing_s(workload) / scale, 8 * sent / rate_bps / scale,
                     ideal(workload, at.paths, at.wire).simulated.completion_s / scale))
    for compute_s, network_s, completion_s in real[1:]:
        assert compute_s == pytest.approx(real[0][0]) and network_s == pytest.approx(real[0][1], rel=1e-3)
        assert completion_s == pytest.approx(real[0][2], rel=0.05)


def test_a_target_rate_and_given_scales_are_kept(setting):
    given = replace(setting, target_rate_bps=100e9, auto_byte_scale=False, byte_scale=50_000.0)
    target = resolve_workload(LLAMA, given).target
    assert (target.dilation, target.byte_scale, target.rate_bps) == (20_000, 50_000, 100e9)
    exact = replace(setting, auto_dilation=False, dilation=1000.0)
    assert resolve_workload(LLAMA, exact).target.rate_bps == 5e9


def test_nvlink_takes_the_tensor_parallel_group_into_one_host(setting):
    at = replace(setting, auto_byte_scale=False, byte_scale=10_000.0)
    one = resolve_workload("llm:layers=32,hidden=4096,tp=8,pp=2,dp=8,nvlink=yes", at)
    assert len(one.schedule.ranks) == 16 and one.target.accelerators == 128
    classes = {op.traffic_class for ops in one.schedule.ranks for op in ops if op.kind is Kind.SEND}
    assert classes == {"pipeline", "gradients"}
    assert any("one of the 8 rails" in note for note in one.notes)
    four = resolve_workload("llm:layers=32,hidden=4096,tp=8,pp=2,dp=8,nvlink=yes,nics=2", at)
    assert four.schedule.bytes_sent == pytest.approx(4 * one.schedule.bytes_sent, rel=0.01)


def test_a_file_is_the_same_job(setting, tmp_path):
    file = tmp_path / "llama.yaml"
    file.write_text("workload: llm\nparams: 70e9\nlayers: 80\nhidden: 8192\nheads: 64\n"
                    "kvheads: 8\ndp: 4\ntp: 2\npp: 2\n"
                    "overlap: yes\n")
    for form in (f"job:{file}", f"job {file}"):
        workload = resolve_workload(form, setting)
        assert workload.schedule == resolve_workload(LLAMA, setting).schedule and workload.name == form
    file.write_text("workload: allreduce\nbytes: 1MB\n")
    assert resolve_workload(f"job:{file}", setting).collective.size_bytes == 1_000_000


@pytest.mark.parametrize("text, spec", [
    ("workload: pattern\nstride: 4\nbytes: 10kB\n", "pattern:stride=4,bytes=10kB"),
    ("workload: pattern\nrandom-bijection: yes\n", "pattern:random-bijection"),
    ("workload: training\nstages: 2\n", "training:stages=2"), ("workload: barrier\n", "barrier"),
    ("workload: pipeline\nstages: 3\n", "pipeline:stages=3"),
    ("workload: alltoall\nbytes: 1MB\n", "alltoall:bytes=1MB")])
def test_a_file_describes_any_workload_that_is_no_file(setting, tmp_path, text, spec):
    file = tmp_path / "job.yaml"
    file.write_text(text)
    assert resolve_workload(f"job:{file}", setting).schedule == resolve_workload(spec, setting).schedule


@pytest.mark.parametrize("text, sentence", [
    ("", "needs a file"), ("/nowhere.yaml", "does not exist"),
    ("params: [1]", r"params: \[1\] is not a single value"),
    ("- a", "is a mapping"), ("a: b: c", "not valid YAML"), ("params: 1\nparams: 2", "twice"),
    ("params: 70e9\nlayer: 3", 'did you mean "layers"'),
    ("workload: job", "describes no workload \"job\"; name its file directly .--workload job:FILE.yaml"),
    ("workload: cm", "name its file directly .--workload FILE.cm"), ("workload: patern", 'did you mean "pattern"'),
    ("workload: x", "known: allgather, allreduce, alltoall, barrier, broadcast, llm, parameterserver, pattern, "
                    "pipeline, reduce, reducescatter, sendrecv and 1 more")])
def test_job_file_slips(setting, tmp_path, text, sentence):
    file = tmp_path / "j.yaml"
    file.write_text(text)
    with pytest.raises(BadInput, match=sentence):
        resolve_workload(f"job:{text if text.startswith('/') or not text else file}", setting)


@pytest.mark.parametrize("more, sentence", [
    ("dp=4,tp=2,pp=4", "dp.tp.pp is 32, but fat-tree:k=4 has 16 hosts; with nvlink=yes .* 16 are enough"),
    ("dp=4,tp=2,pp=2,ranks=8", "dp.tp.pp is 16, but ranks=8"),
    ("tp=3", "16 ranks are not divisible by tp.pp=3; give dp"),
    ("pp=3,dp=2", "layers=32 is not divisible by pp=3"),
    ("pp=4,dp=2,interleave=3", "layers=32 is not divisible by pp.interleave=12"),
    ("pp=4,dp=2,interleave=2,microbatches=6", "microbatches=6 is not divisible by pp"),
    ("dp=16,interleave=2", "needs a pipeline"),
    ("tp=16", None), ("tp=2,heads=1", "heads=1 is not divisible by tp=2"),
    ("dp=16,experts=8,ep=3,params=47e9", "dp=16 is not divisible by ep=3"),
    ("dp=16,ep=2", "needs a model with experts"),
    ("dp=16,experts=6,ep=4,params=47e9", "experts=6 is not divisible by ep=4"),
    ("dp=16,experts=2,topk=3,params=47e9", "topk=3 is more than experts=2"),
    ("dp=16,topk=3", "topk=3 needs experts"),
    ("dp=16,microbatches=8,accumulation=3", "microbatches=8 is not divisible by accumulation=3"),
    ("dp=16,allreduce=hierarchical,zero=1", "needs zero=0"), ("dp=16,allreduce=tree", "allreduce"),
    ("dp=16,zero=4", "4 is outside 0 to 3"), ("dp=16,zero=1,compression=int8", "use zero=0"),
    ("dp=16,dtype=int4", 'dtype "int4"'), ("dp=16,compression=zip", 'compression "zip" is not known'),
    ("dp=16,compression=topk", "needs the fraction"), ("dp=16,compression=topk:2", "above 0 and at most 1"),
    ("dp=16,compression=topk:x", "above 0 and at most 1"),
    ("dp=16,params=1e30", "params"), ("dp=16,params=1e6", "are fewer than hidden=4096"),
    ("dp=16,params=-1", "params"),
    ("dp=16,params=many", "is not a number above 0"),
    ("dp=16,seq=100000000,microbatch=100000", "more than 10.18"),
    ("dp=16,forward=-1ms", "negative"), ("dp=16,optimizer=5", "no unit"), ("dp=16,flops=0", "above 0"),
    ("dp=16,efficiency=2", "efficiency"), ("dp=16,overlap=maybe", "overlap"), ("dp=16,order=tp-pp", "order"),
    ("dp=16,bucket=0B", "more than zero"), ("dp=16,nics=2", "belongs to nvlink=yes"),
    ("tp=8,pp=1,dp=2,nvlink=yes,nics=3", "tp=8 is not divisible by nics=3"),
    ("dp=16,kvheads=99", "do not divide heads"), ("dp=16,heads=32,kvheads=5", "do not divide heads"),
    ("dp=16,heads=7", "heads=7 do not divide hidden=4096"),
    ("dp=16,blocks=5", "does not divide the 32 layers"), ("dp=1", "nobody to send to"),
    ("dp=16,layer=3", "layers"),
    ("dp=16,zero=3,microbatches=1000", "messages, and one engine cannot")])
def test_slips(setting, more, sentence):
    text = SMALL + "," + more if "params" not in more else SMALL.replace("params=7e9,", "") + "," + more
    if sentence is None:
        resolve_workload(text, setting)
        return
    with pytest.raises(BadInput, match=sentence) as refused:
        resolve_workload(text, setting)
    assert str(refused.value).endswith(".") and "\n" not in str(refused.value)


def test_128_ranks_are_planned_within_bounds(k8):
    setting = Setting(k8, rate_bps=1e6, mtu=1500, seed=1, auto_dilation=True, auto_byte_scale=True)
    workload = resolve_workload("llm:params=70e9,layers=80,hidden=8192,heads=64,kvheads=8,dp=8,tp=4,pp=4",
                                setting)
    sends = sum(op.kind is Kind.SEND for ops in workload.schedule.ranks for op in ops)
    assert len(workload.schedule.ranks) == 128 and sends < 30_000


def test_overlap_hides_gradients_until_they_take_longer_than_the_backward_pass(setting):
    """The curve of labs/overlap.yaml: of eight buckets the last cannot hide, nor any once backward is over."""

    def real_s(target_bps: float, overlap: str) -> tuple[float, float]:
        at = replace(setting, target_rate_bps=target_bps)
        workload = resolve_workload(f"{SMALL},dp=16,microbatches=1,microbatch=4,overlap={overlap}", at)
        scale = workload.target.time_scale
        took_s = ideal(workload, at.paths, at.wire).simulated.completion_s
        return took_s / scale, computing_s(workload) / scale

    for target_bps in (800e9, 400e9, 200e9, 100e9, 50e9):
        (overlapped_s, compute_s), (plain_s, _) = (real_s(target_bps, each) for each in ("yes", "no"))
        gradients_s = plain_s - compute_s
        backward_s = compute_s * 2 / 3
        hidden_s = plain_s - overlapped_s
        assert hidden_s == pytest.approx(7 / 8 * min(gradients_s, backward_s), rel=0.12), target_bps
