"""The fabric as it is now: which links carry traffic, and the tables for what is left. Pure.

A link between two switches carries no traffic while one of its ends is down or while it is drained. A
host's own link is never taken out: there is no other way to the host.
"""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain

import networkx

from controllers.nexthops import NextHops, filled, pruned, racks_of
from controllers.ordering import in_order
from controllers.routing import completed, parse_routing, scheduling_of, tables_over
from controllers.scheduling.paths import Path
from controllers.scheduling.place import Pair, Placement
from controllers.scheduling.steering import steered
from controllers.tables import SwitchTables
from emulator.errors import BadInput, nearest
from topologies.graph import Graph, Link

Tables = dict[int, SwitchTables]


def without(graph: Graph, links: Iterable[int]) -> Graph:
    """`graph` without the links of these numbers; the others keep their numbers and ports."""
    gone = frozenset(links)
    return replace(graph, links=tuple(link for link in graph.links if link.index not in gone))


def between_switches(graph: Graph, link: Link) -> bool:
    """Does `link` join two switches?"""
    return link.a in graph.switch and link.b in graph.switch


def links_of(graph: Graph, name: str) -> tuple[Link, ...]:
    """The links that 'A-B' or the switch 'S' stands for; BadInput, with the nearest name, for none.

    'A-B' is all parallel links between the two.
    """
    if name in graph.switch:
        return tuple(link for link in graph.links if name in (link.a, link.b))
    found = tuple(link for link in graph.links if name in (f"{link.a}-{link.b}", f"{link.b}-{link.a}"))
    if not found:
        known = [f"{link.a}-{link.b}" for link in graph.links] + list(graph.switch)
        raise BadInput(f'there is no link or switch "{name}"{_hint(name, known)}.')
    return found


def _hint(name: str, known: list[str]) -> str:
    """`nearest`, but never a list of hundreds of links."""
    hint = nearest(name, known)
    return hint if "mean" in hint else f"; links are written {known[0]}"


@dataclass(frozen=True)
class Network:
    """What the controller knows of the fabric; each method gives the fabric after the news."""

    graph: Graph
    routing: str
    seed: int
    down: frozenset[tuple[int, int]] = frozenset()  # (datapath id, port)
    drained: frozenset[int] = frozenset()           # numbers of links
    placed: tuple[tuple[Pair, Path], ...] = ()      # pairs of hosts that global scheduling gave a path

    def with_port(self, dpid: int, port: int, up: bool) -> Network:
        """After a switch said that a port is up, or down."""
        down = self.down - {(dpid, port)} if up else self.down | {(dpid, port)}
        return self if down == self.down else replace(self, down=down)

    def with_drained(self, name: str, drained: bool) -> Network:
        """After 'A-B' or a switch was drained, or given back.

        Raises BadInput for a name that does not exist, for a host's link, and for a drain that would cut
        off hosts that can be reached now.
        """
        links = {link.index for link in links_of(self.graph, name) if between_switches(self.graph, link)}
        if not links:
            raise BadInput(f"{name} is a host's only link and cannot be drained.")
        if not drained:
            return replace(self, drained=self.drained - links)
        after = replace(self, drained=self.drained | links)
        lost = _cut_off(self._reach(), after._reach(), name)
        if lost:
            raise BadInput(f"draining {name} would cut off the hosts at {', '.join(lost[:3])}"
                           f"{f' and {len(lost) - 3} more' if len(lost) > 3 else ''}.")
        return after

    @property
    def drained_names(self) -> tuple[str, ...]:
        """The drained links, each as 'A-B'."""
        return tuple(f"{link.a}-{link.b}" for link in self.graph.links if link.index in self.drained)

    @property
    def dead(self) -> frozenset[int]:
        """The links between switches with an end that is down."""
        return frozenset(link.index for link in self.graph.links if between_switches(self.graph, link)
                         for end, port in ((link.a, link.a_port), (link.b, link.b_port))
                         if (self.graph.switch[end].dpid, port) in self.down)

    @property
    def avoided(self) -> frozenset[int]:
        """The links between switches that carry no traffic."""
        return self.drained | self.dead

    def routes_as(self, other: Network) -> bool:
        """Do the same links carry traffic in both?"""
        return (self.dead, self.drained) == (other.dead, other.drained)

    @property
    def live(self) -> Graph:
        """The fabric without the links that carry no traffic."""
        return without(self.graph, self.avoided)

    def with_placed(self, placed: Placement) -> Network:
        """After global scheduling has chosen these paths; all other pairs are hashed."""
        return replace(self, placed=tuple(placed.items()))

    def tables(self) -> Tables:
        """What every switch shall hold when all is settled."""
        tables = _final(self.graph, self.routing, self.seed, self.dead, self.drained)
        return self._steered(tables, self.avoided)

    def _steered(self, tables: Tables, avoided: frozenset[int]) -> Tables:
        """`tables` with the rules of global scheduling, where the routing has it; who was placed over a link
        in `avoided` is hashed.
        """
        if scheduling_of(self.routing) is None:
            return tables
        return steered(self.graph, tables, {pair: path for pair, path in self.placed
                                            if avoided.isdisjoint(link // 2 for link in path)})

    def steps_from(self, before: Network) -> Iterator[Tables]:
        """The tables to put in force one after the other, coming from those of `before`.

        First the ways of both fabrics together without those that lead to a link of one of them, which is a
        part of the ways on both sides wherever there is a shortest way without that link; then what shall
        stay. Where a way becomes longer, or is another one, switches change in turn (`ordering.py`), and what
        a routing has besides ways is put off until then. So no mixture of tables that are neighbours here
        sends a packet in a circle.
        """
        if not self.routes_as(before):
            besides = parse_routing(self.routing)[0].over is not None
            if besides:
                yield before._half()
            either, neither = self.avoided | before.avoided, self.avoided & before.avoided
            larger = without(self.graph, self.dead & before.dead)
            between = _between_hops(larger, self.routing, neither, either)
            for hops in chain(in_order(larger, before._hops, between), [between],
                              in_order(larger, between, self._hops)):
                yield self._steered(tables_over(larger, self.routing, self.seed, hops), either)
            if besides:
                yield self._half()
        yield self.tables()

    def _half(self) -> Tables:
        """`tables`, half way to what the routing has besides ways."""
        tables = tables_over(without(self.graph, self.dead), self.routing, self.seed, self._hops)
        return completed(self.live, self.routing, tables, half=True)

    @property
    def _hops(self) -> NextHops:
        return _final_hops(self.graph, self.routing, self.dead, self.drained)

    def _reach(self) -> dict[str, frozenset[str]]:
        """Rack -> all racks that it reaches, itself among them."""
        racks = {host.rack for host in self.graph.hosts}
        parts = [frozenset(racks & part) for part in networkx.connected_components(self.live.networkx)]
        return {rack: part for part in parts for rack in part}


def _cut_off(before: Mapping[str, frozenset[str]], after: Mapping[str, frozenset[str]], drained: str
             ) -> list[str]:
    """The racks that a drain cuts off: of the parts into which it divides racks all but the largest; of parts
    alike the rack that is itself drained, or else all.
    """
    left = {rack: len(after[rack]) for rack in sorted(before) if after[rack] < before[rack]}
    smaller = [rack for rack, count in left.items() if count < max(left.values())]
    return smaller or ([drained] if drained in left else list(left))


@lru_cache(maxsize=64)
def _final(graph: Graph, routing: str, seed: int, dead: frozenset[int], drained: frozenset[int]) -> Tables:
    live = without(graph, dead)
    tables = tables_over(live, routing, seed, _final_hops(graph, routing, dead, drained))
    return completed(without(live, drained), routing, tables)


@lru_cache(maxsize=64)
def _final_hops(graph: Graph, routing: str, dead: frozenset[int], drained: frozenset[int]) -> NextHops:
    """The ways that are left. A drained link still works, so a switch that has no other way keeps that
    one: nobody sends it anything there but what is under way."""
    entry, _ = parse_routing(routing)
    live = without(graph, dead)
    hops = entry.next_hops(live)
    if drained:
        left = pruned(live, hops, drained)
        racks = racks_of(graph)
        if not all(left[a].get(b) for a in racks for b in racks if a != b and hops[a].get(b)):
            left = entry.next_hops(without(live, drained))  # some need a detour
        hops = filled(left, hops)
    return hops


@lru_cache(maxsize=64)
def _between_hops(graph: Graph, routing: str, neither: frozenset[int], either: frozenset[int]) -> NextHops:
    """The ways over what is open before or after that need nothing that is open in one of the two only; where
    a switch has none, over what is open in one; where it has none either, over a drained link."""
    entry, _ = parse_routing(routing)
    open_links = without(graph, neither)
    hops = entry.next_hops(open_links)
    return filled(filled(pruned(open_links, hops, either), hops), entry.next_hops(graph))
