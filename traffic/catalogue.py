"""What --workload knows, in words: for --help and the README."""
from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class WorkloadHelp:
    """One form of --workload. `parameters` are (key, meaning with unit, default)."""

    name: str
    meaning: str
    parameters: tuple[tuple[str, str, str], ...]
    example: str


_REPEAT = (("iterations", "measured iterations", "1"), ("warmup", "iterations before them, not counted", "1"))
_SPREAD = (("slices", "messages that a chunk is cut into, so that a step starts before the last ends",
            "ring: up to 4, none under 8 frames; else 1"),
           ("channels", "connections per pair of ranks, each with its share of the bytes", "1"))
_PLACEMENT = ("placement", "linear: rank r on host r; random: seeded by --seed", "linear")
_COLLECTIVE = (("ranks", "number of ranks, one a host", "all hosts"), _PLACEMENT, *_SPREAD, *_REPEAT)
_PIPELINE = (("microbatches", "microbatches in an iteration", "8"),
             ("activation", "bytes per microbatch between two stages, each way",
              "a quarter of a forward pass"),
             ("forward", "time of a stage's forward pass per microbatch", "an iteration of about 10 s"),
             ("backward", "time of its backward pass", "twice forward"), _PLACEMENT)


def _bytes(meaning: str) -> tuple[str, str, str]:
    return "bytes", meaning, "auto: an iteration ideally takes 10 s"


WORKLOADS: tuple[WorkloadHelp, ...] = (
    WorkloadHelp("allreduce", "every rank ends with the sum of all ranks' buffers",
                 (("algorithm", "ring or halving-doubling", "ring"), _bytes("buffer of each rank"),
                  *_COLLECTIVE),
                 "allreduce:algorithm=ring,bytes=1MB,ranks=16"),
    WorkloadHelp("reducescatter", "each rank ends with its chunk of the sum",
                 (("algorithm", "ring", "ring"), _bytes("buffer of each rank"), *_COLLECTIVE),
                 "reducescatter:bytes=1MB"),
    WorkloadHelp("allgather", "every rank ends with the chunks of all ranks",
                 (("algorithm", "ring", "ring"), _bytes("all chunks together"), *_COLLECTIVE),
                 "allgather:bytes=1MB"),
    WorkloadHelp("pipeline", "a pipeline of stages in 1F1B order",
                 (("stages", "pipeline stages, one rank each", "4"), *_PIPELINE, *_REPEAT),
                 "pipeline:stages=4,microbatches=8,activation=100kB,forward=50ms,backward=100ms"),
    WorkloadHelp("training", "data-parallel replicas of a pipeline, then a ring all-reduce of each stage's "
                 "gradients; rank = stage * replicas + replica",
                 (("stages", "pipeline stages", "4"),
                  ("replicas", "data-parallel replicas", "hosts / stages"),
                  *_PIPELINE, ("gradient", "bytes of a stage's gradients", "half as long as the computing"),
                  *_SPREAD, *_REPEAT),
                 "training:stages=4,replicas=4,microbatches=8,gradient=1MB"),
    WorkloadHelp("pattern", "one flow per pair of hosts, all at once; one of stride, pair, incast, "
                 "random-bijection",
                 (("stride", "host x sends to host x + N", ""),
                  ("pair", "A-B: host A sends to host B, from 0", ""),
                  ("incast", "the first N hosts send to the last", ""),
                  ("random-bijection", "a permutation seeded by --seed, none to itself; no value", ""),
                  ("bytes", "of each pair", "the busiest host link has 10 s of work"),
                  ("flows", "connections per pair that share its bytes", "1"),
                  _REPEAT[0], (*_REPEAT[1][:2], "0")),
                 "pattern:stride=4"),
    WorkloadHelp("hedera", "a traffic pattern file of Hedera (NSDI'10); its sizes are scaled so that the "
                 "busiest host link has 10 s of work", (), "hedera:FILE"),
    WorkloadHelp("FILE.cm", "an htsim connection matrix with triggers; node n is host n, starts are "
                 "multiplied by the dilation", (), "incast.cm"),
)
