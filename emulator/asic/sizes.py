"""How large the tables of bpf switches are made: by what routing plans to put in them. Pure.

The maps of all switches are made once, before the controller says anything, and each switch gets as much
room as the one that needs most.
"""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from controllers.routing import parse_routing, plan_tables
from controllers.tables import SwitchTables
from emulator.asic.layout import MAX_BUCKETS
from emulator.errors import BadInput
from topologies.graph import Graph

ROOM = 4
"""Times what is planned: groups old and new stand side by side while a table is replaced, and after failures
there are more different ones."""


@dataclass(frozen=True)
class Sizes:
    """Room in the tables, per switch: rules, groups, buckets of all groups."""

    rules: int = 1024
    groups: int = 64
    buckets: int = 512


def sizes_for(tables: Iterable[SwitchTables]) -> Sizes:
    """ROOM times the most that any switch is to hold, and never less than the default."""
    planned, least = tuple(tables), Sizes()
    return Sizes(
        max((least.rules, *(ROOM * len(each.flows) for each in planned))),
        max((least.groups, *(ROOM * len(each.groups) for each in planned))),
        max((least.buckets, *(ROOM * sum(len(group.buckets) for group in each.groups) for each in planned))))


def check_groups(graph: Graph, routing: str, seed: int) -> None:
    """BadInput where a routing makes a group with more members than one of a bpf switch holds."""
    if max(map(len, graph.neighbours.values())) <= MAX_BUCKETS:
        return  # every member is a port, or one of as many buckets by weight (controllers/weights.py)
    tables = plan_tables(graph, routing, seed).values()
    most = max((len(group.buckets) for each in tables for group in each.groups), default=0)
    if most > MAX_BUCKETS:
        or_ovs = "use --switch ovs, or " if parse_routing(routing)[0].method == "hash" else "use "
        raise BadInput(f"{graph.name}: --routing {routing} chooses among {most} next hops, and a bpf switch "
                       f"among {MAX_BUCKETS} at the most; {or_ovs}a topology with fewer ways, such as fewer "
                       "spines.")
