"""Pipeline parallelism with the 1F1B order (Narayanan et al., PipeDream, SOSP 2019; Megatron-LM, SC 2021).

Each stage runs a few forward passes to fill the pipeline, then one forward and one backward in
turn, then the backward passes that are left. A forward pass sends its activations to the next
stage, a backward pass sends as many bytes of gradients to the one before.
"""
from __future__ import annotations

from collections.abc import Sequence

from emulator.errors import BadInput
from traffic.program import Program
from traffic.schedule import Schedule

FORWARD, BACKWARD = "forward", "backward"


def pipeline(stages: int, microbatches: int, activation_bytes: int, forward_s: float,
             backward_s: float) -> Schedule:
    """One iteration over `stages` ranks; `activation_bytes` per microbatch and boundary, times per pass."""
    check_pipeline("pipeline", stages, microbatches, activation_bytes, forward_s, backward_s)
    program = Program(stages)
    program.traffic_class = "pipeline"
    write_pipeline(program, range(stages), microbatches, activation_bytes, forward_s, backward_s)
    return program.schedule("pipeline")


def check_pipeline(what: str, stages: int, microbatches: int, activation_bytes: int, forward_s: float,
                   backward_s: float) -> None:
    """Refuse what cannot be a pipeline; `what` opens the sentence."""
    for name, value in (("stages", stages), ("microbatches", microbatches), ("activation", activation_bytes)):
        if value < 1:
            raise BadInput(f"{what}: {name}={value} must be at least 1.")
    for name, value in (("forward", forward_s), ("backward", backward_s)):
        if not 0 <= value < float("inf"):
            raise BadInput(f"{what}: {name}={value} s must be zero or more.")


def order_1f1b(stage: int, stages: int, microbatches: int) -> list[tuple[str, int]]:
    """The (pass, microbatch) sequence of one stage."""
    fill = min(microbatches, stages - 1 - stage)
    order = [(FORWARD, m) for m in range(fill)]
    for m in range(microbatches - fill):
        order += [(FORWARD, fill + m), (BACKWARD, m)]
    return order + [(BACKWARD, m) for m in range(microbatches - fill, microbatches)]


def write_pipeline(program: Program, ranks: Sequence[int], microbatches: int, activation_bytes: int,
                   forward_s: float, backward_s: float) -> list[int]:
    """Add a pipeline whose stage s runs on ranks[s]; returns each stage's last operation (a backward)."""
    stages = len(ranks)
    todo = [order_1f1b(s, stages, microbatches) for s in range(stages)]
    arrived: dict[tuple[int, str, int], int] = {}  # (stage, pass, microbatch) -> receive of its input
    last: list[tuple[int, ...]] = [()] * stages  # a stage computes one thing at a time
    position = [0] * stages
    while any(position[s] < len(todo[s]) for s in range(stages)):
        for s in range(stages):
            while position[s] < len(todo[s]):
                kind, m = todo[s][position[s]]
                source, target = (s - 1, s + 1) if kind is FORWARD else (s + 1, s - 1)
                if 0 <= source < stages and (s, kind, m) not in arrived:
                    break  # the neighbour has not been written that far yet
                deps = last[s] + ((arrived[s, kind, m],) if 0 <= source < stages else ())
                duration_s = forward_s if kind is FORWARD else backward_s
                done = program.compute(ranks[s], duration_s, deps, kind, m)
                last[s] = (done,)
                position[s] += 1
                if 0 <= target < stages:
                    _, arrived[target, kind, m] = program.message(
                        ranks[s], ranks[target], activation_bytes, deps=(done,), phase=kind, step=m)
    return [op for (op,) in last]
