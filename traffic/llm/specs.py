"""'llm:params=70e9,layers=80,…' on the command line: from text to a scaled Workload."""
from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import replace

from emulator.errors import BadInput, nearest
from emulator.specs import Spec
from emulator.units import parse_rate, parse_size, parse_time
from traffic.compression import parse_scheme
from traffic.ideal import bounds_s
from traffic.llm.cut import Cut, choose_cut
from traffic.llm.describe import notes_of, target_of
from traffic.llm.job import DTYPES, WHAT, LlmJob, check_job
from traffic.llm.layout import ORDERS, Layout
from traffic.llm.model import Model, counted_params
from traffic.llm.scale import Scale, rounded
from traffic.llm.timing import rank_pass_s
from traffic.llm.volumes import gradient_bytes_sent, pipeline_bytes, tensor_bytes
from traffic.llm.write import write_iteration
from traffic.placement import place
from traffic.schedule import Workload
from traffic.setting import Setting, count, values

DEFAULT_TARGET_BPS = 400e9
GOAL_S = 12.0
"""How long an iteration ideally takes on the emulated fabric where the byte scale is left to us."""
_SUFFIX = {"M": 1e6, "B": 1e9, "T": 1e12}


def llm(spec: Spec, setting: Setting) -> Workload:
    """The workload of an llm spec: checked, placed, scaled; `target` says what it stands for."""
    v = _read(spec)
    job = _job(v, setting)
    layout = Layout(1 if job.nvlink else job.tp, job.dp, job.pp, job.ep, v["order"])
    _check_ranks(job, layout, v["ranks"], setting)
    placement = place(v["placement"], layout.ranks, setting.graph.hosts, setting.seed)
    dilation = _dilation(setting)
    if v["allreduce"] == "hierarchical" and (job.zero or job.compression):
        raise BadInput(f"{WHAT}: allreduce=hierarchical sums whole gradients; it needs zero=0 and "
                       "compression=none.")
    hosts = setting.graph.hosts
    racks = [hosts[host].rack for host in placement] if v["allreduce"] == "hierarchical" else []

    def at(byte_scale: float) -> tuple[Workload, Scale, Cut]:
        scale = Scale(dilation, byte_scale, job.tp // job.nics if job.nvlink else 1)
        cut = choose_cut(job, byte_scale / scale.per_card, setting.wire.payload_bytes, v["blocks"])
        schedule = write_iteration(job, layout, cut, scale, racks)
        return Workload(spec.name, schedule, placement, v["iterations"], v["warmup"]), scale, cut

    byte_scale = setting.byte_scale
    if setting.auto_byte_scale:
        byte_scale = rounded(dilation * _guess_s(job, setting.rate_bps * dilation) / GOAL_S)
        trial, _, _ = at(byte_scale)
        byte_scale = rounded(byte_scale * max(bounds_s(trial, setting.paths, setting.wire)) / GOAL_S)
    workload, scale, cut = at(byte_scale)
    return replace(workload, notes=notes_of(job, cut), target=target_of(
        job, layout, scale, setting.rate_bps * dilation, setting.wire.burst_bytes, workload))


def _read(spec: Spec) -> dict[str, object]:
    yes = {"yes": True, "no": False}
    known: dict[str, Callable[[str], object]] = {
        "params": _number("params", 1e15), "flops": _number("flops", 1e21),
        "efficiency": _number("efficiency", 1.0),
        "compression": parse_scheme, "bucket": _bucket, "placement": str,
        "dtype": _one_of("dtype", DTYPES), "order": _one_of("order", ORDERS),
        "allreduce": _one_of("allreduce", ("ring", "hierarchical")), "scaleup": parse_rate,
        "forward": parse_time, "backward": parse_time, "optimizer": parse_time,
        **{key: _one_of(key, yes) for key in ("overlap", "recompute", "nvlink")},
        **{key: count(f"{WHAT}: {key}", 1, most) for key, most in (
            ("layers", 10_000), ("hidden", 1_000_000), ("heads", 10_000), ("kvheads", 10_000),
            ("seq", 100_000_000), ("vocab", 10_000_000), ("dp", 100_000), ("tp", 1024), ("pp", 1024),
            ("ep", 1024), ("microbatches", 10_000), ("microbatch", 100_000), ("interleave", 1000),
            ("accumulation", 10_000), ("nics", 1024), ("blocks", 1000), ("topk", 1000),
            ("ranks", 100_000))},
        "experts": count(f"{WHAT}: experts", 0, 100_000), "zero": count(f"{WHAT}: zero", 0, 3)}
    given = values(spec, known, {
        "layers": 32, "hidden": 4096, "seq": 4096, "vocab": 32_000, "tp": 1, "pp": 1, "ep": 1,
        "microbatches": 8, "microbatch": 1, "dtype": "bf16", "zero": 0, "experts": 0, "interleave": 1,
        "overlap": "yes",
        "bucket": 25_000_000, "recompute": "no", "nvlink": "no", "scaleup": 3.6e12, "flops": 989e12,
        "efficiency": 0.5, "placement": "linear", "order": ORDERS[0], "allreduce": "ring",
        "warmup": 1})
    return {key: yes[value] if key in ("overlap", "recompute", "nvlink") else value
            for key, value in given.items()}


def _job(v: dict[str, object], setting: Setting) -> LlmJob:
    heads = v["heads"] or max(1, v["hidden"] // 128)
    kv_heads, topk = v["kvheads"] or heads, v["topk"] or (2 if v["experts"] > 1 else 1 if v["experts"] else 0)
    if v["hidden"] % heads and v["heads"]:
        raise BadInput(f"{WHAT}: heads={heads} do not divide hidden={v['hidden']}; all heads are alike.")
    if kv_heads > heads or heads % kv_heads:
        raise BadInput(f"{WHAT}: kvheads={kv_heads} do not divide heads={heads}; each serves as many.")
    if v["topk"] and not v["experts"]:
        raise BadInput(f"{WHAT}: topk={topk} needs experts, such as experts=8.")
    params = v["params"] or counted_params(v["layers"], v["hidden"], heads, kv_heads, v["vocab"],
                                           v["experts"])
    model = Model(params, v["layers"], v["hidden"], heads, kv_heads, v["seq"], v["vocab"], v["experts"], topk)
    ranks, within = v["ranks"] or setting.hosts, v["pp"] if v["nvlink"] else v["tp"] * v["pp"]
    dp = v["dp"]
    if dp is None:
        if ranks % within:
            raise BadInput(f"{WHAT}: {ranks} ranks are not divisible by {_product(v)}={within}; give dp.")
        dp = ranks // within
    accumulation = v["accumulation"] or (v["microbatches"] if v["zero"] < 2 else 1)
    job = LlmJob(model, v["tp"], dp, v["pp"], v["ep"], v["microbatches"], v["microbatch"], v["dtype"],
                 v["zero"], v["interleave"], v["overlap"], v["bucket"], accumulation, v["compression"],
                 v["recompute"],
                 v["nvlink"], v["nics"] or (v["tp"] if v["nvlink"] else 1), v["scaleup"], v["flops"],
                 v["efficiency"], v["forward"], v["backward"], v["optimizer"])
    check_job(job)
    return job


def _product(v: dict[str, object]) -> str:
    return "pp" if v["nvlink"] else "tp*pp"


def _check_ranks(job: LlmJob, layout: Layout, asked: int | None, setting: Setting) -> None:
    product = "dp*pp (nvlink=yes: a rank is a tensor-parallel group)" if job.nvlink else "dp*tp*pp"
    if asked and asked != layout.ranks:
        raise BadInput(f"{WHAT}: {product} is {layout.ranks}, but ranks={asked}.")
    if layout.ranks > setting.hosts:
        way_out = "" if job.nvlink or job.tp == 1 else (
            f"; with nvlink=yes a host carries a tensor-parallel group and {job.dp * job.pp} are enough")
        raise BadInput(f"{WHAT}: {product} is {layout.ranks}, but {setting.graph.name} has {setting.hosts} "
                       f"hosts{way_out}.")
    if layout.ranks < 2:
        raise BadInput(f"{WHAT}: one rank has nobody to send to; give it more dp, tp or pp.")


def _dilation(setting: Setting) -> float:
    """K: as given, or the real network's rate over the emulated one's."""
    if not setting.auto_dilation:
        return setting.dilation
    return max(1.0, (setting.target_rate_bps or DEFAULT_TARGET_BPS) / setting.rate_bps)


def _guess_s(job: LlmJob, rate_bps: float) -> float:
    """About how long an iteration takes on the real cluster: a first byte scale to try."""
    passes = job.microbatches + (job.pp - 1) / job.interleave
    sent = 2 * pipeline_bytes(job) if job.pp > 1 else 0
    if job.tp > 1 and not job.nvlink:
        sent += 2 * job.model.layers / job.pp * (tensor_bytes(job, False) + tensor_bytes(job, True))
    return passes * (rank_pass_s(job) + 8 * sent / rate_bps) + 8 * gradient_bytes_sent(job) / rate_bps


def _number(name: str, most: float) -> Callable[[str], float]:
    """A parser of positive numbers such as 70e9 or 70B."""

    def parse(text: str) -> float:
        factor = _SUFFIX.get(text[-1:], 1.0)
        try:
            value = float(text[:-1] if factor > 1 else text) * factor
        except ValueError:
            value = math.nan
        if not 0 < value <= most:
            raise BadInput(f'{WHAT}: {name} "{text}" is not a number above 0 and up to {most:g}, such as '
                           f"{'0.5' if most <= 1 else '70e9'}.")
        return value

    return parse


def _bucket(text: str) -> int:
    size_bytes = parse_size(text, f"{WHAT}: bucket")
    if size_bytes < 1:
        raise BadInput(f'{WHAT}: bucket "{text}" must be more than zero.')
    return size_bytes


def _one_of(name: str, known: Collection[str]) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in known:
            raise BadInput(f'{WHAT}: {name} "{text}" is not known{nearest(text, known)}.')
        return text

    return parse
