"""Which links a schedule loads, if every switch splits as well as it can over its equal-cost next hops.

That is evenly, and where links of one tier have different rates in proportion to what each next hop lets
through towards the destination: the best that any routing over shortest paths can do for that destination.
"""
from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import numpy

from emulator.errors import BadInput
from topologies.graph import Graph, Link
from traffic.paths import Paths, Towards
from traffic.schedule import Schedule
from traffic.wire import Wire


def pairs(schedule: Schedule) -> Mapping[tuple[int, int, int], int]:
    """(source rank, destination rank, channel) -> bytes, in order of first use: the connections."""
    return schedule.pair_bytes


def traffic_matrix(schedule: Schedule) -> numpy.ndarray:
    """Bytes from rank (row) to rank (column), int64."""
    n = len(schedule.ranks)
    matrix = numpy.zeros((n, n), dtype=numpy.int64)
    for (source, destination, _), size_bytes in pairs(schedule).items():
        matrix[source, destination] += size_bytes
    return matrix


def link_bytes(schedule: Schedule, placement: tuple[int, ...], paths: Paths) -> numpy.ndarray:
    """Payload bytes over each link, shape (largest link index + 1, 2): column 0 a -> b, column 1 b -> a."""
    between: defaultdict[tuple[str, str], float] = defaultdict(float)
    for (source, destination, _), size_bytes in pairs(schedule).items():
        a, b = (paths.graph.hosts[placement[rank]].name for rank in (source, destination))
        between[a, b] += size_bytes
    return even_split(between, paths)


def even_split(between: Mapping[tuple[str, str], float], paths: Paths) -> numpy.ndarray:
    """Amounts from host to host laid over all shortest paths; shape as of `link_bytes`."""
    graph = paths.graph
    into: defaultdict[str, defaultdict[str, float]] = defaultdict(lambda: defaultdict(float))
    for (a, b), amount in between.items():
        if a != b:
            into[b][a] += amount
    load = numpy.zeros(2 * (1 + max((link.index for link in graph.links), default=-1)))
    uneven = len({(link.tier, link.speed) for link in graph.links}) > len({link.tier for link in graph.links})
    for destination, held in into.items():
        towards = paths.towards(destination)
        parts = _parts(towards, paths.link) if uneven else {}
        for source in held:
            if source not in towards.hops:
                raise BadInput(f"{graph.name}: there is no path from {source} to {destination}.")
        for node in towards.farthest_first:
            if held[node]:
                divided = parts.get(node, ()) or _even(towards, node)
                for hop, part in zip(towards.hops[node], divided, strict=True):
                    load[hop.link] += held[node] * part
                    held[hop.node] += held[node] * part
    return load.reshape(-1, 2)


def _even(towards: Towards, node: str) -> list[float]:
    return [1 / len(towards.hops[node])] * len(towards.hops[node])


def _parts(towards: Towards, links: Mapping[int, Link]) -> dict[str, list[float]]:
    """node -> the share of each next hop by what it lets through: the lesser of the link's rate and all that
    the next node lets through in turn.
    """
    through = {towards.destination: math.inf}
    parts = {}
    for node in reversed(towards.farthest_first):
        each = [min(links[hop.link // 2].speed, through[hop.node]) for hop in towards.hops[node]]
        through[node] = sum(each)
        parts[node] = [value / through[node] for value in each] if through[node] else []
    return parts


def tier_bytes(load: numpy.ndarray, graph: Graph) -> dict[str, float]:
    """Payload bytes over all links of each tier, both directions."""
    tiers: defaultdict[str, float] = defaultdict(float)
    for link in graph.links:
        tiers[link.tier] += float(load[link.index].sum())
    return dict(tiers)


@dataclass(frozen=True)
class Busiest:
    """The directed link that needs the most time for what it must carry."""

    link: Link
    source: str
    destination: str
    payload_bytes: float
    time_s: float


def busiest(load: numpy.ndarray, graph: Graph, wire: Wire) -> Busiest | None:
    """The bound that any transport meets: the link whose data, headers and acknowledgements of the
    data in the other direction take longest at its rate. None when nothing is carried.
    """
    worst = None
    for link in graph.links:
        for way, (source, destination) in enumerate(((link.a, link.b), (link.b, link.a))):
            data, opposite = load[link.index, way], load[link.index, 1 - way]
            frames = data * wire.frame_bytes / wire.payload_bytes + opposite * wire.ack_bytes_per_byte
            time_s = float(8 * max(0.0, frames - wire.burst_bytes) / wire.link_rate_bps(link))
            if data and (worst is None or time_s > worst.time_s * (1 + 1e-12)):
                worst = Busiest(link, source, destination, float(data), time_s)
    return worst
