"""One training iteration: data-parallel replicas of a pipeline, then a gradient all-reduce per stage.

Rank = stage * replicas + replica, as Megatron-LM lays ranks out (pipeline outermost): the replicas
of one stage, which exchange the gradients and so most of the bytes, stand next to each other and
share racks under linear placement; the lighter activations travel further.
"""
from __future__ import annotations

from emulator.errors import BadInput
from traffic.collectives.ring import write_all_reduce
from traffic.pipeline import check_pipeline, write_pipeline
from traffic.program import Program, split
from traffic.schedule import Schedule


def training(stages: int, replicas: int, microbatches: int, activation_bytes: int, gradient_bytes: int,
             forward_s: float, backward_s: float, slices: int = 1, channels: int = 1) -> Schedule:
    """One iteration over stages * replicas ranks.

    `activation_bytes` per microbatch and stage boundary, `gradient_bytes` per stage (the buffer
    that a ring all-reduces over the stage's replicas once its last backward pass is done),
    `forward_s` and `backward_s` per microbatch and stage.
    """
    check_pipeline("training", stages, microbatches, activation_bytes, forward_s, backward_s)
    for name, value in (("replicas", replicas), ("gradient", gradient_bytes), ("slices", slices),
                        ("channels", channels)):
        if value < 1:
            raise BadInput(f"training: {name}={value} must be at least 1.")
    program = Program(stages * replicas)
    program.traffic_class = "pipeline"
    for replica in range(replicas):
        ranks = [rank_of(stage, replica, replicas) for stage in range(stages)]
        last = write_pipeline(program, ranks, microbatches, activation_bytes, forward_s, backward_s)
        for rank, backward in zip(ranks, last):
            program.written[rank].mark(0, gradient_bytes, backward)
    program.traffic_class = "gradients"
    for stage in range(stages):
        group = [rank_of(stage, replica, replicas) for replica in range(replicas)]
        write_all_reduce(program, group, split(0, gradient_bytes, replicas), slices, channels)
    return program.schedule("training", gradient_bytes)


def rank_of(stage: int, replica: int, replicas: int) -> int:
    """The rank that carries `stage` of `replica`."""
    return stage * replicas + replica
