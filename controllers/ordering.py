"""From old next hops to new ones without a circle: who is nearest to the destination changes first. Pure.

In the manner of ordered FIB updates (oFIB, RFC 6976): a switch takes its new ways to a rack once every switch
that those lead over has its own. So a packet goes by old ways up to the first switch with new ones, and by
new ones from there on.
"""
from __future__ import annotations

from collections.abc import Iterator

from controllers.nexthops import NextHops, racks_of
from topologies.graph import Graph


def in_order(graph: Graph, before: NextHops, after: NextHops) -> Iterator[NextHops]:
    """The next hops to be put in force between `before` and `after`, one after the other; `graph` has the
    links of both.

    Whatever mixture of two neighbours of before, …, after is in force, even another one for each rack, no
    packet goes in a circle, provided that none does by `before` and none by `after`. Where the ways to a rack
    are only taken away, or only added to, all switches change them at once; if that is so for all racks there
    is nothing in between.
    """
    turns = {rack: _turns(graph, rack, _towards(before, rack), _towards(after, rack))
             for rack in racks_of(graph)}
    for turn in range(max((turn for each in turns.values() for turn in each.values()), default=0)):
        yield {name: {rack: before.get(name, {}).get(rack, ()) if turns[rack].get(name, 0) > turn else ports
                      for rack, ports in to.items()} for name, to in after.items()}


_Ways = dict[str, tuple[int, ...]]  # of each switch, to one rack


def _towards(hops: NextHops, rack: str) -> _Ways:
    return {name: to.get(rack, ()) for name, to in hops.items()}


def _turns(graph: Graph, rack: str, before: _Ways, after: _Ways) -> dict[str, int]:
    """switch -> after how many others, one behind the other, it changes its ways; of those that change."""
    changed = {name for name, ports in after.items() if ports != before.get(name, ())}
    if all(set(after[name]) <= set(before.get(name, ())) for name in changed) or all(
            set(before.get(name, ())) <= set(after[name]) for name in changed):
        return dict.fromkeys(changed, 0)
    behind: dict[str, int] = {}

    def wait(name: str) -> int:
        """How many that change lie one behind the other on a new way from here on, this one left out."""
        if name not in behind:
            behind[name] = 0
            following = [graph.neighbours[name][port][0] for port in after.get(name, ())]
            behind[name] = max((wait(other) + (other in changed) for other in following if other != rack),
                               default=0)
        return behind[name]

    return {name: wait(name) for name in changed}
