"""Bytes of a training job's messages on the real cluster, for one accelerator. Pure formulas.

Sources: tensor parallelism, Shoeybi et al., Megatron-LM, 2019, and Narayanan et al., SC'21 (an
all-reduce of bsh elements twice a layer forward, twice backward; a stage boundary sends bsh, of which
each tensor rank sends its part, SC'21 4.1 and Korthikanti et al., MLSys'23). Data parallelism and ZeRO:
Rajbhandari et al., SC'20, section 7 (all-reduce 2P; stages 1 and 2 the same as reduce-scatter and
all-gather; stage 3 gathers the parameters forward and backward, 3P). Experts: Lepikhin et al., GShard,
ICLR'21 (two all-to-alls of the routed tokens forward, two backward).
"""
from __future__ import annotations

from traffic.llm.job import LlmJob


def activation_bytes(job: LlmJob) -> int:
    """b * s * h elements: the activations of a micro-batch between two layers."""
    return job.microbatch * job.model.seq * job.model.hidden * job.element_bytes


def tensor_bytes(job: LlmJob, backward: bool) -> int:
    """Buffer that one layer all-reduces over the tensor-parallel group in one pass of a micro-batch:
    two activations, and two more backward where the forward pass is computed again."""
    if job.tp == 1:
        return 0
    return (4 if backward and job.recompute else 2) * activation_bytes(job)


def pipeline_bytes(job: LlmJob) -> int:
    """A stage boundary, one micro-batch, one direction: a tensor rank sends its part of the sequence."""
    return -(-activation_bytes(job) // job.tp)


def expert_bytes(job: LlmJob, backward: bool) -> float:
    """What a rank holds for one dispatch (or one combine) of one layer: its tokens, each topk times;
    1/ep of it stays. Balanced routing. Twice backward where the forward pass is computed again."""
    if not job.model.experts:
        return 0.0
    return (2 if backward and job.recompute else 1) * job.model.topk * activation_bytes(job) / job.tp


def gradient_params(job: LlmJob, experts: bool) -> float:
    """Parameters of one virtual stage on one accelerator that are reduced together, outside or in the
    experts."""
    return (job.expert_params if experts else job.dense_params) / job.interleave


def gradient_buckets(job: LlmJob) -> int:
    """Buckets of one virtual stage on the real cluster."""
    size_bytes = sum(gradient_params(job, experts) for experts in (False, True)) * job.element_bytes
    return max(1, -(-int(size_bytes) // job.bucket_bytes))


def gradient_bytes_sent(job: LlmJob) -> float:
    """Gradient bytes that one accelerator sends in an iteration (parameters gathered by ZeRO not counted)."""
    reductions, sent = job.microbatches // job.accumulation, 0.0
    for params, n in ((job.dense_params, job.dp), (job.expert_params, job.dp // job.ep)):
        if n == 1 or not params:
            continue
        plain = params * job.element_bytes * (n - 1) / n
        if job.compression:
            encoded = job.compression.encoded_bytes(round(params))
            sent += encoded * (n - 1) * (1 if job.compression.gathers else 2 / n)
        else:
            sent += plain * (1 if job.zero else 2)
    return sent * reductions
