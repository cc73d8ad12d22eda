"""All shortest paths between racks, in an order that gives a top switch the same place everywhere.

A directed link is a number: 2 * index for a -> b of the link with that index, 2 * index + 1 for b -> a.
"""
from __future__ import annotations

from collections.abc import Sequence

import numpy

from controllers.nexthops import NextHops, equal_cost
from topologies.graph import Graph

PATHS_LAST = 256  # of two racks; a k=16 fat-tree has 64

Path = tuple[int, ...]
"""The directed links between the switches of two racks, in order; empty within one rack."""


class PathLists:
    """The shortest paths between any two racks of `graph`; what is found is kept. `whole`: the fabric that
    `graph` is what is left of.

    Paths are listed depth first by ascending port, at most PATHS_LAST of a pair of racks. In a fat-tree that
    is the order of the cores, whichever pods are asked for: path i leads over core i + 1.
    """

    def __init__(self, graph: Graph, hops: NextHops | None = None, whole: Graph | None = None):
        self.graph = graph
        self._hops = equal_cost(graph) if hops is None else hops
        self.link = {link.index: link for link in graph.links}
        self._found: dict[tuple[str, str], tuple[Path, ...]] = {}
        self.capacity = capacities(graph, whole or graph)

    def of(self, source: str, destination: str) -> tuple[Path, ...]:
        """The paths between the racks of two hosts, without the hosts' own links."""
        return self.between(self.graph.host[source].rack, self.graph.host[destination].rack)

    def between(self, source: str, destination: str) -> tuple[Path, ...]:
        """The paths from switch `source` to the rack `destination`; one empty path if they are the same."""
        key = (source, destination)
        if key not in self._found:
            found: list[Path] = []
            self._extend(source, destination, (), found)
            self._found[key] = tuple(found)
        return self._found[key]

    def _extend(self, node: str, rack: str, so_far: Path, found: list[Path]) -> None:
        if node == rack:
            found.append(so_far)
            return
        for port in self._hops[node].get(rack, ()):
            if len(found) >= PATHS_LAST:
                return
            other, link = self.graph.neighbours[node][port]
            self._extend(other, rack, (*so_far, 2 * link.index + (link.a != node)), found)

    def senders(self, path: Path) -> Sequence[str]:
        """The switches that send on each link of `path`."""
        return [self.sender(link) for link in path]

    def sender(self, directed: int) -> str:
        """The node that sends on a directed link."""
        link = self.link[directed // 2]
        return link.b if directed % 2 else link.a


def capacities(graph: Graph, whole: Graph) -> numpy.ndarray:
    """Of each directed link, in units of a host link; shape (2 * (largest link number of `whole` + 1),), 0
    where `graph` has no link of that number.
    """
    capacity = numpy.zeros(2 * (1 + max(link.index for link in whole.links)))
    for link in graph.links:
        capacity[2 * link.index:2 * link.index + 2] = link.speed
    return capacity
