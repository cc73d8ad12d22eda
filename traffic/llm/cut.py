"""How finely an emulated iteration is written down: layers in blocks, gradients in buckets.

A model of 80 layers and 25 MB buckets would take thousands of messages a rank, most of them, divided
by the byte scale, smaller than a frame. Consecutive layers are merged into a block (one computation,
one all-reduce with the bytes of all), consecutive buckets into one that covers whole blocks. Bytes and
seconds stay; messages are fewer and larger, and what could start in the middle of a block cannot.
"""
from __future__ import annotations

from dataclasses import dataclass

from emulator.errors import BadInput
from traffic.llm.job import WHAT, LlmJob
from traffic.llm.volumes import expert_bytes, gradient_buckets, gradient_params, tensor_bytes

MOST_BLOCKS = 8
MOST_MESSAGES = 16_000
"""Of an iteration: what the engine sends in 10 s without keeping a core busy."""
TOO_MANY_MESSAGES = 100_000
LEAST_FRAMES = 12
"""What a rank sends at a time has at least so many full frames, where the iteration has the bytes: a link
that was idle sends its burst, 3 frames, in no time, and a sum of 6 frames would look half as long."""


@dataclass(frozen=True)
class Cut:
    """Blocks and gradient buckets of one chunk (virtual stage) of layers; buckets <= blocks."""

    blocks: int
    buckets: int


def choose_cut(job: LlmJob, byte_scale: float, frame_payload_bytes: int, blocks: int | None) -> Cut:
    """The finest cut within MOST_BLOCKS, MOST_MESSAGES and LEAST_FRAMES; `blocks` where the user said."""
    layers = job.chunk_layers
    least_bytes = LEAST_FRAMES * frame_payload_bytes * byte_scale
    if blocks is None:
        blocks = max((n for n in range(1, min(layers, MOST_BLOCKS) + 1)
                      if not layers % n and _fine(job, n, least_bytes)), default=1)
    elif layers % blocks:
        raise BadInput(f"{WHAT}: blocks={blocks} does not divide the {layers} layers of a stage.")
    reduced_bytes = 2 * gradient_params(job, False) * job.element_bytes * (job.dp - 1) / job.dp
    fitting = max(1, int(reduced_bytes / least_bytes))
    cut = Cut(blocks, min(blocks, gradient_buckets(job), fitting))
    if messages(job, cut) > TOO_MANY_MESSAGES:
        raise BadInput(f"{WHAT}: an iteration would have about {messages(job, cut)} messages, and one engine "
                       f"cannot drive more than {TOO_MANY_MESSAGES}; use fewer microbatches, blocks or ranks"
                       f"{', or a lower zero' if job.zero > 1 else ''}.")
    return cut


def _fine(job: LlmJob, blocks: int, least_bytes: float) -> bool:
    """Not too little is sent at a time in a block, nor are the messages too many."""
    layers = job.chunk_layers / blocks
    if not job.nvlink and job.tp > 1:
        if layers * tensor_bytes(job, False) * 2 * (job.tp - 1) / job.tp < least_bytes:
            return False
    if job.ep > 1 and layers * expert_bytes(job, False) * (job.ep - 1) / job.ep < least_bytes:
        return False
    return messages(job, Cut(blocks, min(blocks, gradient_buckets(job)))) <= MOST_MESSAGES


def messages(job: LlmJob, cut: Cut, sums: int = 1) -> int:
    """Messages of an iteration, over all ranks of the fabric, with so many all-reduces a block."""
    tp = 1 if job.nvlink else job.tp
    passes = 2 * job.microbatches * job.interleave
    reductions = job.microbatches // job.accumulation * job.interleave * cut.buckets
    a_pass = cut.blocks * (2 * sums * (tp - 1) + 2 * (job.ep - 1)) + (1 if job.pp > 1 else 0)
    if job.zero == 3:
        a_pass += cut.blocks * (job.dp - 1)
    return job.dp * tp * job.pp * (passes * a_pass + reductions * 2 * (job.dp - 1))
