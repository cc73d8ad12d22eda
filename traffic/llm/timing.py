"""Seconds that a training job computes on the real cluster, for one accelerator. Pure formulas."""
from __future__ import annotations

from dataclasses import dataclass

from traffic.llm.job import LlmJob
from traffic.llm.volumes import tensor_bytes

MEMORY_BYTES_PER_S = 3.35e12
"""HBM3 of an H100 SXM (NVIDIA's data sheet): what bounds the optimizer's update."""
UPDATE_BYTES = 2 * 16
"""An update reads and writes 16 bytes of state a parameter once (ZeRO, SC'20, 3.1)."""


@dataclass(frozen=True)
class LayerTime:
    """One micro-batch through one layer: outside the experts, in them, and moving tensor-parallel sums
    inside the host (zero where those cross the fabric)."""

    dense_s: float
    expert_s: float
    scaleup_s: float

    @property
    def total_s(self) -> float:
        return self.dense_s + self.expert_s + self.scaleup_s


def layer_time(job: LlmJob, backward: bool) -> LayerTime:
    """A backward pass costs two forward ones, three where activations are computed again."""
    dense_s, expert_s = _forward_s(job)
    given_s = job.backward_s if backward else job.forward_s
    factor = (3 if job.recompute else 2) if backward else 1
    if given_s is not None:
        per_layer_s = given_s * job.pp / job.model.layers
        factor = per_layer_s / (dense_s + expert_s)
    scaleup_s = 0.0
    if job.nvlink:
        ring_bytes = 2 * (job.tp - 1) / job.tp * tensor_bytes(job, backward)
        scaleup_s = 8 * ring_bytes / job.scaleup_bps
    return LayerTime(factor * dense_s, factor * expert_s, scaleup_s)


def optimizer_s(job: LlmJob) -> float:
    """The update of what an accelerator owns: under ZeRO its share only."""
    if job.optimizer_s is not None:
        return job.optimizer_s
    owned = (job.dense_params / (job.dp if job.zero else 1)
             + job.expert_params / (job.dp // job.ep if job.zero else 1))
    return UPDATE_BYTES * owned / MEMORY_BYTES_PER_S


def rank_pass_s(job: LlmJob) -> float:
    """Forward and backward of one micro-batch through all layers of a rank."""
    layers = job.model.layers / job.pp
    return layers * (layer_time(job, False).total_s + layer_time(job, True).total_s)


def _forward_s(job: LlmJob) -> tuple[float, float]:
    """(outside the experts, in them) of one layer, from the operations and the accelerator's speed."""
    tokens, speed = job.microbatch * job.model.seq, job.tp * job.flops * job.efficiency
    return tokens * job.model.dense_flops / speed, tokens * job.model.expert_flops / speed
