"""Which probes prove a fabric: few host pairs, and as many source ports as it takes to see every link.

Switches choose members by hashes that the planner need not know. It only needs each link's share of
a pair's flows: with n source ports a link with shares p1, p2, … among the pairs is missed with
probability prod (1-pi)^n <= exp(-n * sum pi).
"""
from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from controllers.tables import SwitchTables
from controllers.walk import Direction, Forwarding
from topologies.graph import Graph


@dataclass(frozen=True)
class ProbePlan:
    """`pairs` of host names (source, destination), each to be probed from `ports` source ports.

    `expected` holds every direction of a link that the probes should touch; `idle` those that these
    tables never use, whatever is sent (most links, under a spanning tree).
    """

    pairs: tuple[tuple[str, str], ...]
    ports: int
    expected: frozenset[Direction]
    idle: frozenset[Direction]


def plan_probes(graph: Graph, tables: Mapping[int, SwitchTables], miss: float = 1e-3) -> ProbePlan:
    """Pairs that between them touch every used link in both directions, but for probability `miss` in all.

    Every host sends and receives at least once. Raises ValueError if `miss` is not between 0 and 1.
    """
    if not 0 < miss < 1:
        raise ValueError(f"miss must lie between 0 and 1, not {miss}")
    forwarding = Forwarding(graph, tables)
    idle = {(link.index, end) for link in graph.links for end in (link.a, link.b)}
    load: dict[Direction, float] = {}
    pairs = []
    for i, pair in enumerate(_candidates(graph)):
        if i >= len(graph.hosts) and not idle:
            break
        shares = forwarding.spread(*pair)
        if i >= len(graph.hosts) and idle.isdisjoint(shares):
            continue
        pairs.append(pair)
        idle -= shares.keys()
        for direction, share in shares.items():
            load[direction] = load.get(direction, 0.0) + share
    ports = math.ceil(math.log(len(load) / miss) / min(load.values()))
    forked = any(len(group.buckets) > 1 for table in tables.values() for group in table.groups)
    return ProbePlan(tuple(pairs), ports if forked else 1, frozenset(load), frozenset(idle))


def _candidates(graph: Graph) -> Iterator[tuple[str, str]]:
    """First each host to the one half the fabric away, then one pair between every two racks."""
    names = [host.name for host in graph.hosts]
    for i, name in enumerate(names):
        yield name, names[(i + len(names) // 2) % len(names)]
    heads = {host.rack: host.name for host in reversed(graph.hosts)}
    for a in heads.values():
        for b in heads.values():
            if a != b:
                yield a, b
