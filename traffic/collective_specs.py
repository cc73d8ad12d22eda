"""Collectives on the command line: which algorithms there are, and how their parameters become schedules."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from emulator.errors import BadInput, nearest
from emulator.specs import Spec
from traffic.collectives import chain, halving_doubling, hierarchical, pairwise, ring, tree
from traffic.collectives.parameter_server import parameter_server
from traffic.placement import place
from traffic.schedule import Collective, Schedule, Workload
from traffic.setting import Setting, count, size, values
from traffic.sizing import LEAST_SLICE_FRAMES, collective_bytes, slices_for

Builder = Callable[[int, int, int, int], Schedule]
"""(ranks, size_bytes, slices, channels) -> schedule"""


@dataclass(frozen=True)
class Algorithm:
    """`build` is None where more than ranks and bytes is needed, see `_builder`.

    A message carries 1/`parts`(ranks) of the buffer before it is sliced. Algorithms that pass on
    what they receive gain from slices, longer pipelines from more of them (none under `least_frames` full
    frames); exchanges between partners, where a step needs all of the last one, only get more messages.
    """

    build: Builder | None
    most_slices: int = 1
    parts: Callable[[int], int] = lambda ranks: ranks
    least_frames: int = LEAST_SLICE_FRAMES


ALGORITHMS: dict[str, dict[str, Algorithm]] = {
    "allreduce": {
        "ring": Algorithm(ring.all_reduce, 4),
        "bidirectional-ring": Algorithm(ring.bidirectional_all_reduce, 4, lambda ranks: 2 * ranks),
        "halving-doubling": Algorithm(halving_doubling.all_reduce),
        "double-binary-tree": Algorithm(tree.all_reduce, 128, lambda ranks: 2, 4),
        "hierarchical": Algorithm(None, 4)},
    "reducescatter": {"ring": Algorithm(ring.reduce_scatter, 4),
                      "halving-doubling": Algorithm(halving_doubling.reduce_scatter)},
    "allgather": {"ring": Algorithm(ring.all_gather, 4),
                  "halving-doubling": Algorithm(halving_doubling.all_gather)},
    "broadcast": {"chain": Algorithm(chain.broadcast, 64, lambda ranks: 1)},
    "reduce": {"chain": Algorithm(chain.reduce, 64, lambda ranks: 1)},
    "alltoall": {"pairwise": Algorithm(pairwise.all_to_all, 4)},
    "sendrecv": {"ring": Algorithm(pairwise.send_recv)},
    "parameterserver": {"push-pull": Algorithm(None)},
}
"""The first algorithm of each is the default."""

COLLECTIVE = {"allreduce": "all-reduce", "reducescatter": "reduce-scatter", "allgather": "all-gather",
              "broadcast": "broadcast", "reduce": "reduce", "alltoall": "all-to-all", "sendrecv": "send-recv"}
"""What nccl-tests would call it; a parameter server has no bus bandwidth."""


def collective(spec: Spec, setting: Setting) -> Workload:
    """The workload of a collective's spec; sizes that are left out are found by trial."""
    what, algorithms = f"workload {spec.name}", ALGORITHMS[spec.name]
    known = {"algorithm": str, "bytes": size(f"{what}: bytes", setting), "ranks": count(f"{what}: ranks", 2),
             "placement": str, "slices": count(f"{what}: slices", 1, 1024),
             "channels": count(f"{what}: channels", 1, 64)}
    if "hierarchical" in algorithms:
        known["levels"] = count(f"{what}: levels", 2, 3)
    if spec.name == "parameterserver":
        known |= {"servers": count(f"{what}: servers", 1), "colocated": _yes_or_no}
    v = values(spec, known, {"algorithm": next(iter(algorithms)), "ranks": setting.hosts,
                             "placement": "linear", "channels": 1, "warmup": 1})
    if v["algorithm"] not in algorithms:
        raise BadInput(f'{what} has no algorithm "{v["algorithm"]}"{nearest(v["algorithm"], algorithms)}.')
    if v.get("levels") and v["algorithm"] != "hierarchical":
        raise BadInput(f'{what}: levels={v["levels"]} belongs to algorithm=hierarchical.')
    ranks, algorithm = _ranks(what, v["ranks"], setting), algorithms[v["algorithm"]]
    placement = place(v["placement"], ranks, setting.graph.hosts, setting.seed)
    build = algorithm.build or _builder(spec.name, v, placement, setting)

    @lru_cache(maxsize=4)  # of 128 ranks a trial takes a second to write
    def sized(size_bytes: int, slices: int) -> Workload:
        named = Collective(COLLECTIVE[spec.name], size_bytes) if spec.name in COLLECTIVE else None
        return Workload(spec.name, build(ranks, size_bytes, slices, v["channels"]), placement,
                        v["iterations"], v["warmup"], named)

    slices = v["slices"] or algorithm.most_slices
    for _ in range(3):  # the slices depend on the size, and a size to be found on the slices
        size_bytes = v["bytes"] or collective_bytes(sized, ranks, slices, setting)
        message_bytes = size_bytes // algorithm.parts(ranks) // v["channels"]
        before, slices = slices, v["slices"] or slices_for(message_bytes, algorithm.most_slices, setting,
                                                                   algorithm.least_frames)
        if v["bytes"] or slices == before:
            break
    return sized(size_bytes, slices)


def barrier(spec: Spec, setting: Setting) -> Workload:
    """The workload of 'barrier:ranks=…'."""
    what = f"workload {spec.name}"
    v = values(spec, {"ranks": count(f"{what}: ranks", 2), "placement": str},
               {"ranks": setting.hosts, "placement": "linear", "warmup": 1})
    ranks = _ranks(what, v["ranks"], setting)
    placement = place(v["placement"], ranks, setting.graph.hosts, setting.seed)
    return Workload(spec.name, pairwise.barrier(ranks), placement, v["iterations"], v["warmup"])


def racks(placement: tuple[int, ...], setting: Setting, levels: int) -> hierarchical.Tree:
    """The ranks by the rack of their host, and, with three levels, the racks by pod."""
    in_rack: dict[str, list[int]] = {}
    for rank, host in enumerate(placement):
        in_rack.setdefault(setting.graph.hosts[host].rack, []).append(rank)
    if levels == 2:
        return list(in_rack.values())
    in_pod: dict[int, list[list[int]]] = {}
    for rack, members in in_rack.items():
        in_pod.setdefault(setting.graph.switch[rack].pod, []).append(members)
    return list(in_pod.values())


def _builder(name: str, v: dict[str, object], placement: tuple[int, ...], setting: Setting) -> Builder:
    """The builder of an algorithm that needs more than ranks and bytes."""
    if name == "parameterserver":
        servers = v["servers"] or default_servers(len(placement))
        return lambda ranks, size_bytes, slices, channels: parameter_server(
            ranks, servers, size_bytes, slices, channels, colocated=bool(v["colocated"]))
    groups = racks(placement, setting, v["levels"] or 2)
    return lambda _, size_bytes, slices, channels: hierarchical.all_reduce(
        groups, size_bytes, slices, channels)


def default_servers(ranks: int) -> int:
    """A quarter of the ranks."""
    return max(1, ranks // 4)


def servers_of(params: Mapping[str, str], ranks: int) -> int:
    """How many of the ranks of a 'parameterserver' that was accepted are servers."""
    return int(params["servers"]) if "servers" in params else default_servers(ranks)


def _ranks(what: str, ranks: int, setting: Setting) -> int:
    if ranks < 2:
        raise BadInput(f"{what}: {setting.graph.name} has {ranks} host; at least 2 ranks are needed.")
    return ranks


def _yes_or_no(text: str) -> bool:
    if text not in ("yes", "no"):
        raise BadInput(f'workload parameterserver: colocated "{text}" is neither yes nor no.')
    return text == "yes"
