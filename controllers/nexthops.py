"""Next hops on any graph: over all shortest paths, or along one spanning tree.

Both answer for whole racks, since all hosts of a rack lie behind the same switch.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence

from topologies.graph import Graph

# switch -> {rack -> ports, ascending, that lead one hop nearer; empty at the rack itself}
NextHops = Mapping[str, Mapping[str, tuple[int, ...]]]
# switch -> (port, switch at its other end), by ascending port
_Wires = Mapping[str, Sequence[tuple[int, str]]]


def equal_cost(graph: Graph) -> NextHops:
    """Every port on a shortest path, links counted alike; parallel links are members of their own."""
    return _shortest(_wires(graph), _racks(graph))


def spanning_tree(graph: Graph) -> NextHops:
    """One port each, on the breadth-first tree that a spanning tree protocol would build (IEEE 802.1D).

    The root is the switch of the highest tier with the lowest datapath id, as an operator would set
    it; a switch takes the parent that was reached first, by the lowest port. In a fat-tree all
    traffic between pods therefore crosses one core.
    """
    wires = _wires(graph)
    root = min(graph.switches, key=lambda switch: (-switch.tier, switch.dpid)).name
    reached, frontier = {root}, [root]
    tree: dict[str, list[tuple[int, str]]] = {name: [] for name in wires}
    while frontier:
        following = []
        for parent in frontier:
            for port, child in wires[parent]:
                if child not in reached:
                    reached.add(child)
                    following.append(child)
                    link = graph.neighbours[parent][port][1]
                    tree[parent].append((port, child))
                    tree[child].append((link.a_port if link.a == child else link.b_port, parent))
        frontier = following
    return _shortest(tree, _racks(graph))


def _racks(graph: Graph) -> list[str]:
    return list(dict.fromkeys(host.rack for host in graph.hosts))


def _wires(graph: Graph) -> _Wires:
    return {switch.name: [(port, other) for port, (other, _) in sorted(graph.neighbours[switch.name].items())
                          if other in graph.switch] for switch in graph.switches}


def _shortest(wires: _Wires, racks: Sequence[str]) -> NextHops:
    """Breadth first from each rack: O(racks * links)."""
    hops: dict[str, dict[str, tuple[int, ...]]] = {name: {} for name in wires}
    for rack in racks:
        distance = {rack: 0}
        frontier = [rack]
        while frontier:
            following = []
            for node in frontier:
                for _, other in wires[node]:
                    if other not in distance:
                        distance[other] = distance[node] + 1
                        following.append(other)
            frontier = following
        for node, away in distance.items():
            hops[node][rack] = tuple(port for port, other in wires[node] if distance[other] == away - 1)
    return hops
