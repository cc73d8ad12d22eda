"""The scaling of a training job as a person reads it: real cluster beside emulated one, what is kept."""
from __future__ import annotations

from collections import Counter

from emulator.units import show_rate, show_size, show_time
from traffic.llm.cut import Cut, messages
from traffic.llm.job import LlmJob
from traffic.llm.layout import Layout
from traffic.llm.scale import Scale
from traffic.llm.timing import optimizer_s, rank_pass_s
from traffic.llm.volumes import (activation_bytes, expert_bytes, gradient_buckets, gradient_bytes_sent,
                                 pipeline_bytes, tensor_bytes)
from traffic.schedule import Kind, Workload
from traffic.target import Target


def target_of(job: LlmJob, layout: Layout, scale: Scale, rate_bps: float, burst_bytes: int,
              workload: Workload) -> Target:
    """What the scaled workload stands for."""
    return Target(
        rate_bps, scale.dilation, scale.byte_scale, job.pp, job.microbatches, job.interleave,
        job.accelerators, job.flops, job.tokens * job.model.training_flops, job.tokens,
        _rows(job, layout, scale, rate_bps, workload),
        _kept(scale), _lost(job, scale, burst_bytes))


def _rows(job: LlmJob, layout: Layout, scale: Scale, rate_bps: float, workload: Workload
          ) -> tuple[tuple[str, str, str], ...]:
    compute_s = job.microbatches * rank_pass_s(job) + optimizer_s(job)
    rows = [("accelerators; ranks on the fabric", str(job.accelerators), str(layout.ranks)),
            ("network card; host link", show_rate(rate_bps), show_rate(rate_bps / scale.dilation)),
            ("computing of a rank, one iteration", show_time(compute_s),
             show_time(scale.duration_s(compute_s))),
            ("memory of an accelerator: parameters, gradients, optimizer", show_size(job.state_bytes), "-")]

    def size(what: str, real_bytes: float) -> None:
        if real_bytes:
            rows.append((what, show_size(real_bytes * scale.per_card),
                         show_size(scale.size_bytes(real_bytes))))

    if job.pp > 1:
        size("activations to the next stage, one micro-batch", pipeline_bytes(job))
    if layout.tp > 1:
        size("tensor-parallel sums, one layer forward", tensor_bytes(job, False))
    if job.ep > 1:
        size("tokens to the experts, one layer forward", expert_bytes(job, False))
    size("gradients that a rank sends", gradient_bytes_sent(job))
    size("activations of a micro-batch", activation_bytes(job))
    by_class, sends = Counter(), 0
    for ops in workload.schedule.ranks:
        for op in ops:
            if op.kind is Kind.SEND:
                by_class[op.traffic_class] += op.size_bytes
                sends += 1
    for name, sent in sorted(by_class.items()):
        mean = sent / layout.ranks
        rows.append((f"sent for {name}, mean of a rank; time on its link",
                     _with_time(mean * scale.byte_scale, rate_bps),
                     _with_time(mean, rate_bps / scale.dilation)))
    mean = by_class.total() / layout.ranks
    computing_s = sum(op.duration_s for ops in workload.schedule.ranks for op in ops) / layout.ranks
    rows.append(("computing over the time on the link",
                 f"{compute_s * rate_bps / (8 * mean * scale.byte_scale):.3f}",
                 f"{computing_s * rate_bps / scale.dilation / (8 * mean):.3f}"))
    real = messages(job, Cut(job.chunk_layers, gradient_buckets(job)), sums=2)
    rows.append(("messages of all ranks, one iteration", f"{real}", f"{sends}"))
    return tuple(rows)


def _with_time(size_bytes: float, rate_bps: float) -> str:
    return f"{show_size(size_bytes)}; {show_time(8 * size_bytes / rate_bps)}"


def _kept(scale: Scale) -> tuple[str, ...]:
    return (f"computing and communication are stretched alike (K / S = {scale.time_scale:.4g}), so their "
            "ratio, what overlaps what, the pipeline's bubble and each link's share of the bytes are those "
            "of the real job",)


def _lost(job: LlmJob, scale: Scale, burst_bytes: int) -> tuple[str, ...]:
    handed_on = scale.size_bytes(pipeline_bytes(job))
    lost = [f"a message has 1/{scale.byte_scale:.4g} of its packets: what a window, a burst or a buffer does "
            "within a message is not the real job's",
            "the kernel's 200 ms least retransmission timeout and delayed acknowledgements are not stretched"]
    if job.pp > 1 and handed_on < burst_bytes:
        lost.append(f"an activation of {show_size(handed_on)} is less than the {show_size(burst_bytes)} that "
                    "an idle link sends at once, so that it takes only the path's delay")
    return tuple(lost)


def notes_of(job: LlmJob, cut: Cut) -> tuple[str, ...]:
    """What stands for something else, whatever the scale; sentences for the user."""
    notes, merged, real = [], job.chunk_layers // cut.blocks, gradient_buckets(job)
    if merged > 1:
        notes.append(f"{merged} layers stand merged as one block: one computation, one sum with the bytes "
                     "of all.")
    if job.dp > 1 and real > cut.buckets:
        notes.append(f"{real} gradient buckets of a stage stand merged as {cut.buckets}.")
    if job.nvlink and job.tp > 1:
        rails = f"one of the {job.nics} rails of a host, and the others look alike"
        if job.nics < job.tp:
            rails = (f"one of {job.nics} network cards, which carries the traffic of {job.tp // job.nics} "
                     "accelerators")
        notes.append("Tensor-parallel sums stay inside a host and are time spent there "
                     f"({show_rate(job.scaleup_bps)}); the fabric is {rails}.")
    notes.append("Embedding and output head are spread over the stages; routing to experts is balanced; "
                 "encoding, padding and the loss's own sums take no time.")
    return tuple(notes)
