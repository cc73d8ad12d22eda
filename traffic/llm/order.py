"""The order in which a pipeline stage works: 1F1B, and Megatron's interleaved form of it.

(Narayanan et al., SC'21, section 2.2; megatron/core/pipeline_parallel/schedules.py.) With v virtual
stages a rank, chunk c of stage s is virtual stage c * stages + s; micro-batches go in groups of as many
as there are stages, and the bubble shrinks to (p-1) / (v m) of the computing.
"""
from __future__ import annotations

from typing import NamedTuple

from traffic.pipeline import BACKWARD, FORWARD, order_1f1b


class Pass(NamedTuple):
    """One micro-batch through one chunk of layers; `kind` is 'forward' or 'backward'."""

    kind: str
    microbatch: int
    chunk: int


def passes(stage: int, stages: int, microbatches: int, interleave: int) -> list[Pass]:
    """All passes of one stage, in its order."""
    if interleave == 1:
        return [Pass(kind, microbatch, 0) for kind, microbatch in order_1f1b(stage, stages, microbatches)]
    total = microbatches * interleave
    forward = [_nth(FORWARD, k, stages, interleave) for k in range(total)]
    backward = [_nth(BACKWARD, k, stages, interleave) for k in range(total)]
    fill = min(total, 2 * (stages - stage - 1) + (interleave - 1) * stages)
    steady = [each for pair in zip(forward[fill:], backward) for each in pair]
    return forward[:fill] + steady + backward[total - fill:]


def _nth(kind: str, k: int, stages: int, interleave: int) -> Pass:
    """The k-th forward or backward pass of any stage; backward ones take the chunks in reverse."""
    group, place = divmod(k, stages * interleave)
    chunk, within = divmod(place, stages)
    return Pass(kind, group * stages + within, chunk if kind == FORWARD else interleave - 1 - chunk)


def source(stage: int, stages: int, interleave: int, kind: str, chunk: int) -> tuple[int, int] | None:
    """(stage, chunk) whose pass of this kind comes before this one's; None at the model's end."""
    virtual = chunk * stages + stage + (-1 if kind == FORWARD else 1)
    return (virtual % stages, virtual // stages) if 0 <= virtual < stages * interleave else None


