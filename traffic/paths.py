"""Equal-cost shortest paths over any fabric, one destination at a time.

A directed link is a number: 2 * index for a -> b of the link with that index, 2 * index + 1 for
b -> a. Hosts send and receive but never forward.
"""
from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass

from emulator.errors import BadInput
from topologies.graph import Graph, Link


@dataclass(frozen=True)
class Hop:
    """One step closer to the destination: the node reached and the directed link taken."""

    node: str
    link: int


@dataclass(frozen=True)
class Towards:
    """The way to one destination from every node.

    `hops[node]` are its equal-cost next hops, in order of the node's port numbers;
    `farthest_first` are all other nodes, each after all nodes that may send through it.
    """

    destination: str
    hops: dict[str, tuple[Hop, ...]]
    farthest_first: tuple[str, ...]


class Paths:
    """The equal-cost paths of one fabric; what is found is kept."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.link = {link.index: link for link in graph.links}
        self._towards: dict[str, Towards] = {}
        self._first: dict[tuple[str, str], tuple[int, ...]] = {}
        self._widest: dict[tuple[str, str], list[Link]] = {}
        self._widths: dict[str, dict[str, float]] = {}

    def towards(self, destination: str) -> Towards:
        """The next hops of every node towards the host `destination`, found once."""
        if destination not in self._towards:
            self._towards[destination] = self._search(destination)
        return self._towards[destination]

    def first(self, source: str, destination: str) -> tuple[int, ...]:
        """The directed links of one shortest path: at each node the next hop with the lowest port."""
        if (source, destination) not in self._first:
            self._first[source, destination] = self._walk(source, destination)
        return self._first[source, destination]

    def _walk(self, source: str, destination: str) -> tuple[int, ...]:
        towards, node, links = self.towards(destination), source, []
        if source not in towards.hops:
            raise BadInput(f"{self.graph.name}: there is no path from {source} to {destination}.")
        while node != destination:
            hop = towards.hops[node][0]
            links.append(hop.link)
            node = hop.node
        return tuple(links)

    def first_links(self, source: str, destination: str) -> list[Link]:
        """The links, from the source on, of a shortest path whose slowest link is as fast as can be; of
        several the one that `first` would take. What a message would take if it was alone on a perfect
        fabric.
        """
        if (source, destination) not in self._widest:
            self._widest[source, destination] = self._widen(source, destination)
        return self._widest[source, destination]

    def _widen(self, source: str, destination: str) -> list[Link]:
        towards, node, links = self.towards(destination), source, []
        if source not in towards.hops:
            raise BadInput(f"{self.graph.name}: there is no path from {source} to {destination}.")
        while node != destination:
            hop = max(towards.hops[node], key=lambda hop: min(
                self.link[hop.link // 2].speed, self._width(destination)[hop.node]))
            links.append(self.link[hop.link // 2])
            node = hop.node
        return links

    def _width(self, destination: str) -> dict[str, float]:
        """node -> the speed of the slowest link on its widest way to the destination."""
        if destination not in self._widths:
            towards, width = self.towards(destination), {destination: math.inf}
            for node in reversed(towards.farthest_first):
                hops = towards.hops[node]
                width[node] = max(min(self.link[hop.link // 2].speed, width[hop.node]) for hop in hops)
            self._widths[destination] = width
        return self._widths[destination]

    def _search(self, destination: str) -> Towards:
        neighbours, hosts = self.graph.neighbours, self.graph.host
        distance = {destination: 0}
        queue = deque([destination])
        while queue:
            node = queue.popleft()
            if node in hosts and node != destination:
                continue  # a host does not forward
            for _, (other, _) in sorted(neighbours[node].items()):
                if other not in distance:
                    distance[other] = distance[node] + 1
                    queue.append(other)
        hops = {node: tuple(Hop(other, 2 * link.index + (link.a != node))
                            for _, (other, link) in sorted(neighbours[node].items())
                            if distance.get(other) == away - 1
                            and (other not in hosts or other == destination))
                for node, away in distance.items() if node != destination}
        return Towards(destination, hops, tuple(sorted(hops, key=distance.__getitem__, reverse=True)))
