"""What --workload knows, in words: for --help and the README."""
from __future__ import annotations

from dataclasses import dataclass

from traffic.collective_specs import ALGORITHMS
from traffic.llm import catalogue as llm


@dataclass(frozen=True)
class WorkloadHelp:
    """One form of --workload. `parameters` are (key, meaning with unit, default)."""

    name: str
    meaning: str
    parameters: tuple[tuple[str, str, str], ...]
    example: str


_REPEAT = (("iterations", "measured iterations", "1"), ("warmup", "iterations before them, not counted", "1"))
_SPREAD = (("slices", "messages that a chunk is cut into, so that a step starts before the last ends",
            "1; what passes data on: several, none under 8 frames"),
           ("channels", "connections per pair of ranks, each with its share of the bytes", "1"))
_PLACEMENT = ("placement", "linear: rank r on host r; random: seeded by --seed; rack: ranks fill rack "
              "after rack, rack:G cuts no group of G; spread: over the racks in turn; file:PATH: a host name "
              "a line", "linear")
_RANKS = (("ranks", "number of ranks, one a host", "all hosts"), _PLACEMENT)
_PIPELINE = (("microbatches", "microbatches in an iteration", "8"),
             ("activation", "bytes per microbatch between two stages, each way",
              "a quarter of a forward pass"),
             ("forward", "time of a stage's forward pass per microbatch", "an iteration of about 10 s"),
             ("backward", "time of its backward pass", "twice forward"), _PLACEMENT)

_MAPPED = (("map", "more ranks than hosts: pack, several a host; first, only those that fit", "refused"),
           _REPEAT[0], (*_REPEAT[1][:2], "0"))
_TRACED = (("algorithm", "of the collectives, where they have it: ring | halving-doubling | "
            "double-binary-tree | bidirectional-ring", "ring"), *_MAPPED)


def _collective(name: str, meaning: str, size: str, *more: tuple[str, str, str],
                example: str = "bytes=1MB") -> WorkloadHelp:
    algorithms = tuple(ALGORITHMS[name])
    return WorkloadHelp(name, meaning, (
        ("algorithm", " | ".join(algorithms), algorithms[0]),
        ("bytes", f"{size}; or several in turn: 64kB+1MB, 64kB..4MB (doubling)",
         "auto: an iteration ideally takes 10 s"), *more, *_RANKS, *_SPREAD, *_REPEAT),
        f"{name}:{example}")


WORKLOADS: tuple[WorkloadHelp, ...] = (
    _collective("allreduce", "every rank ends with the sum of all ranks' buffers", "buffer of each rank",
                ("levels", "hierarchical: 2 racks, 3 racks and pods", "2"),
                example="algorithm=ring,bytes=1MB,ranks=16"),
    _collective("reducescatter", "each rank ends with its chunk of the sum", "buffer of each rank"),
    _collective("allgather", "every rank ends with the chunks of all ranks", "all chunks together"),
    _collective("broadcast", "every rank ends with rank 0's buffer", "buffer of each rank"),
    _collective("reduce", "rank 0 ends with the sum of all buffers", "buffer of each rank"),
    _collective("alltoall", "each rank sends a block to every other", "all blocks of a rank together"),
    _collective("sendrecv", "each rank sends to the next", "message of each rank"),
    _collective("parameterserver", "workers push gradients to servers and pull the sum",
                "gradients of a worker",
                ("servers", "the first ranks, each with a share of the sum", "a quarter of the ranks"),
                ("colocated", "yes: servers are workers too; no", "no"), example="bytes=1MB,servers=4"),
    WorkloadHelp("barrier", "no rank ends before all have started", (*_RANKS, *_REPEAT), "barrier:ranks=16"),
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
    WorkloadHelp("llm", llm.MEANING, (*llm.PARAMETERS, _PLACEMENT, *_REPEAT), llm.EXAMPLE),
    WorkloadHelp("job", "one of these or a pattern as a YAML file: 'workload: llm', 'params: 70e9', …; or "
                 "'job FILE.yaml'", (),
                 "job:FILE.yaml"),
    WorkloadHelp("pattern", "one flow per pair of hosts, all at once; one of stride, pair, incast, "
                 "random-bijection, staggered",
                 (("stride", "host x sends to host x + N", ""),
                  ("pair", "A-B: host A sends to host B, from 0", ""),
                  ("incast", "the first N hosts send to the last", ""),
                  ("random-bijection", "a permutation seeded by --seed, none to itself; no value", ""),
                  ("staggered", "P-Q: to the same rack with probability P, else to the same pod with Q, else "
                   "further (NSDI'10); seeded by --seed, none receives twice", ""),
                  ("bytes", "of each pair", "the busiest host link has 10 s of work"),
                  ("time", "instead of bytes: for how long the busiest host link has work", "10s"),
                  ("flows", "connections per pair that share its bytes", "1"),
                  ("class", "traffic class of the flows, taken in turn: NAME+NAME… or all (see --classes)",
                   "none"),
                  ("load", "what each flow offers, as part of a host link, taken in turn: 0.3+1; below 1 in "
                   "messages of a frame", "1"),
                  _REPEAT[0], (*_REPEAT[1][:2], "0")),
                 "pattern:stride=4"),
    WorkloadHelp("hedera", "a traffic pattern file of Hedera (NSDI'10); its sizes are scaled so that the "
                 "busiest host link has 10 s of work", (), "hedera:FILE"),
    WorkloadHelp("cm", "an htsim connection matrix with triggers; node n is host n, starts are multiplied by "
                       "the "
                 "dilation", _MAPPED, "FILE.cm"),
    WorkloadHelp("hpcc", "a flow file of HPCC's ns-3: src dst pg dport size start", _MAPPED, "hpcc:FILE"),
    WorkloadHelp("goal", "a GOAL schedule of LogGOPSim", _MAPPED, "FILE.goal"),
    WorkloadHelp("simai", "a text workload of ASTRA-sim 1.0 or SimAI, one iteration",
                 (("ranks", "where the file has no all_gpus", "all hosts"), *_TRACED), "simai:FILE"),
    WorkloadHelp("aicb", "a CSV workload of AICB",
                 (("ranks", "where the file does not say", "from its groups"), *_TRACED), "aicb:FILE"),
    WorkloadHelp("chakra", "MLCommons Chakra traces, NAME.RANK.et in a folder",
                 (("groups", "JSON file of the groups' ranks", "the .json in the folder"), *_TRACED),
                 "chakra:DIR"),
    WorkloadHelp("torch", "PyTorch execution traces: a JSON file a rank in a folder, or one file for all",
                 _TRACED, "torch:DIR"),
)
