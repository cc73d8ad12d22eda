"""Weighted ECMP: each next hop gets flows in proportion to what can go on from there (WCMP, EuroSys'14).

What a link passes on towards a rack is its rate times the part of it that the next switch can pass on in
turn: that switch's own capacity over what would come in if all links into it were as fast as the fastest.
Where links are alike and all of them live this is plain ECMP; a slow link, or a failure further on, takes its
share down everywhere upstream.
"""
from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence

from controllers.nexthops import NextHops
from controllers.tables import Bucket
from topologies.graph import Graph

BUCKETS_LAST = 64  # of a group, counted with their weights
EXACT = 0.005      # error of a share below which fewer buckets are preferred

# switch -> {rack -> ((port, weight), …)}
WeightedHops = Mapping[str, Mapping[str, tuple[tuple[int, int], ...]]]


def alike(graph: Graph, hops: NextHops) -> WeightedHops:
    """Every next hop with weight 1: ECMP."""
    return {switch: {rack: tuple((port, 1) for port in ports) for rack, ports in racks.items()}
            for switch, racks in hops.items()}


def weighted(graph: Graph, hops: NextHops) -> WeightedHops:
    """The next hops with weights in proportion to their capacity towards each rack, where everybody sends."""
    return _weighted(graph, hops, rivals=True)


def by_capacity(graph: Graph, hops: NextHops) -> WeightedHops:
    """The same, but a next hop with fewer rivals gets no more for it: for switches that see for themselves,
    in their queues, who else sends. Weights differ only where less can go on, by a slow link or a missing one.
    """
    return _weighted(graph, hops, rivals=False)


def _weighted(graph: Graph, hops: NextHops, rivals: bool) -> WeightedHops:
    made: dict[str, dict[str, tuple[tuple[int, int], ...]]] = {switch: {} for switch in hops}
    for rack in dict.fromkeys(host.rack for host in graph.hosts):
        shares = _shares(graph, hops, rack, rivals)
        for switch, racks in hops.items():
            if rack in racks:
                ports = racks[rack]
                weights = whole_weights(shares[switch]) if ports else ()
                made[switch][rack] = tuple((port, weight) for port, weight in zip(ports, weights, strict=True)
                                           if weight)
    return made


def _shares(graph: Graph, hops: NextHops, rack: str, rivals: bool) -> dict[str, list[float]]:
    """switch -> the capacity towards `rack` through each of its next hops, in units of a host link.

    rivals: of a switch that others lead to as well there is less for each; else all switches equally far from
    the rack count as having as many as that with most.
    """
    onward = {switch: [graph.neighbours[switch][port] for port in racks[rack]]
              for switch, racks in hops.items() if racks.get(rack)}
    into: dict[str, list[float]] = defaultdict(list)
    for links in onward.values():
        for other, link in links:
            into[other].append(link.speed)
    through: dict[str, list[float]] = {}

    senders: dict[str, int] = {}

    def passed_on(switch: str) -> float:
        """The part of all that may come in that the switch can pass on."""
        if switch == rack:
            return 1.0
        return min(1.0, sum(through[switch]) / (senders[switch] * max(into[switch])))

    waiting = list(onward)
    while waiting:  # each round settles at least the switches one hop further away
        later = [switch for switch in waiting
                 if any(other != rack and other not in through for other, _ in onward[switch])]
        if len(later) == len(waiting):
            # ways into a circle, which a drained switch may keep for packets that never come: their own rate
            through.update({switch: [link.speed for _, link in onward[switch]] for switch in later})
            break
        settled = {switch: [link.speed * passed_on(other) for other, link in onward[switch]]
                   for switch in waiting if switch not in later}
        most = max(len(into[switch]) for switch in settled)
        senders |= {switch: len(into[switch]) if rivals else most for switch in settled}
        through.update(settled)
        waiting = later
    return through


def buckets(members: Sequence[tuple[int, int]], method: str) -> tuple[Bucket, ...]:
    """The buckets of a group over (port, weight). Where flows are hashed a weight is as many buckets of
    weight 1: Open vSwitch's hash divides by weights wrongly (it takes the bucket with the largest hash *
    weight, ofproto-dpif-xlate.c, so that 4:4:4:1 would leave the last next to nothing).
    """
    if method == "hash":
        return tuple(Bucket(port) for port, weight in members for _ in range(weight))
    return tuple(Bucket(port, weight) for port, weight in members)


def whole_weights(shares: Sequence[float]) -> tuple[int, ...]:
    """Whole weights in proportion to `shares` (all > 0), of which there are at most BUCKETS_LAST in all.

    The error is the paper's: by how much the worst next hop gets more than its share. The smallest sum with
    an error below EXACT is taken, else the sum with the least; a very small share may then get 0. With more
    shares than buckets the largest BUCKETS_LAST get one each.
    """
    if len(shares) >= BUCKETS_LAST:
        kept = set(sorted(range(len(shares)), key=lambda i: -shares[i])[:BUCKETS_LAST])
        return tuple(int(i in kept) for i in range(len(shares)))
    total = sum(shares)
    best, least = (), math.inf
    for buckets in range(len(shares), BUCKETS_LAST + 1):
        made = _rounded([buckets * share / total for share in shares])
        got = zip(made, shares, strict=True)
        error = max(weight / buckets / (share / total) for weight, share in got) - 1
        if error < least - 1e-12:
            best, least = made, error
        if error < EXACT:
            break
    divisor = math.gcd(*best)
    return tuple(weight // divisor for weight in best)


def _rounded(exact: Sequence[float]) -> tuple[int, ...]:
    """Whole numbers with the same sum, by largest remainder."""
    floors = [math.floor(value + 1e-9) for value in exact]
    missing = round(sum(exact)) - sum(floors)
    by_remainder = sorted(range(len(exact)), key=lambda i: floors[i] - exact[i])
    for i in by_remainder[:missing]:
        floors[i] += 1
    return tuple(floors)
