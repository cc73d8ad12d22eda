"""Next hops on any graph: over all shortest paths, or along one spanning tree.

Both answer for whole racks, since all hosts of a rack lie behind the same switch.
"""
from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from topologies.graph import Graph

# switch -> {rack -> ports, ascending, that lead one hop nearer; empty at the rack itself}
NextHops = Mapping[str, Mapping[str, tuple[int, ...]]]
# switch -> (port, switch at its other end), by ascending port
_Wires = Mapping[str, Sequence[tuple[int, str]]]


def equal_cost(graph: Graph) -> NextHops:
    """Every port on a shortest path, links counted alike; parallel links are members of their own."""
    return _shortest(_wires(graph), racks_of(graph))


def nowhere(graph: Graph) -> NextHops:
    """None at all: where somebody else decides."""
    return {switch.name: {} for switch in graph.switches}


def spanning_tree(graph: Graph) -> NextHops:
    """One port each, on the breadth-first tree that a spanning tree protocol would build (IEEE 802.1D).

    The root is the switch of the highest tier with the lowest datapath id, as an operator would set
    it; a switch takes the parent that was reached first, by the lowest port. In a fat-tree all
    traffic between pods therefore crosses one core.
    """
    wires = _wires(graph)
    reached: set[str] = set()
    tree: dict[str, list[tuple[int, str]]] = {name: [] for name in wires}
    for root in sorted(graph.switches, key=lambda switch: (-switch.tier, switch.dpid)):
        if root.name not in reached:  # a tree for each part of a fabric that fell apart
            _span(graph, wires, root.name, reached, tree)
    return _shortest(tree, racks_of(graph))


def _span(graph: Graph, wires: _Wires, root: str, reached: set[str],
          tree: dict[str, list[tuple[int, str]]]) -> None:
    """Breadth first from `root`, into `reached` and `tree`."""
    reached.add(root)
    frontier = [root]
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


def pruned(graph: Graph, hops: NextHops, avoided: Collection[int]) -> NextHops:
    """`hops` without those that lead, sooner or later, to a link in `avoided` and nowhere else.

    What is left is a part of `hops`, so it goes round in no circle even where only some switches have it
    already. It is empty for a switch whose every way leads there: with the rest in force nobody sends it
    anything for that rack any more, unless it is where packets begin.
    """
    left: dict[str, dict[str, tuple[int, ...]]] = {name: {} for name in hops}
    for rack in racks_of(graph):
        open_ways: dict[str, tuple[int, ...]] = {}

        def ways(name: str) -> tuple[int, ...]:
            if name not in open_ways:
                open_ways[name] = tuple(
                    port for port in hops[name].get(rack, ())
                    if graph.neighbours[name][port][1].index not in avoided
                    and (graph.neighbours[name][port][0] == rack or ways(graph.neighbours[name][port][0])))
            return open_ways[name]

        for name, to in hops.items():
            if rack in to:
                left[name][rack] = ways(name)
    return left


def filled(hops: NextHops, others: NextHops) -> NextHops:
    """`hops`, and those of `others` where there are none: for packets that are still under way."""
    return {name: {rack: hops.get(name, {}).get(rack) or ports for rack, ports in to.items()}
            for name, to in others.items()}


def racks_of(graph: Graph) -> list[str]:
    """The switches that have hosts, in the order of their first host."""
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
