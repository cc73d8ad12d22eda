"""Routing as a pure function: a graph, the name of a routing and a seed in, every switch's tables out."""
from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from controllers.nexthops import NextHops, equal_cost, nowhere, spanning_tree
from controllers.prefixes import aggregate, blocks
from controllers.scheduling import options as scheduling
from controllers.scheduling.options import Scheduling
from controllers.tables import (FlowRule, Group, Match, Output, Selection, SetEthDst, SwitchTables,
                                ToGroup)
from controllers.valiant import group_minimal, is_dragonfly, spread_over_groups
from controllers.weights import WeightedHops, alike, buckets, by_capacity, weighted
from emulator.errors import BadInput, nearest
from emulator.specs import Spec, parse_spec, take
from emulator.units import parse_time
from topologies.graph import Graph

PRIORITY = 100  # one for all: the prefixes of a switch do not overlap


@dataclass(frozen=True)
class Routing:
    """One entry for --routing: how it is written (with its defaults), what it does, and how.

    `method` is how a switch's group chooses among next hops; Open vSwitch knows 'hash' alone.
    `weighs`: the shares of next hops: equal ones, or by their capacity. `over`: what is done to the tables
    at the end (`completed`).
    """

    spec: str
    about: str
    next_hops: Callable[[Graph], NextHops]
    method: str
    weighs: Callable[[Graph, NextHops], WeightedHops] = alike
    over: Callable[[Graph, Mapping[int, SwitchTables], bool], dict[int, SwitchTables]] | None = None


ROUTINGS: Mapping[str, Routing] = {
    "ecmp": Routing("ecmp", "hash each flow over all shortest paths (RFC 2991), seeded differently on "
                            "every switch", equal_cost, "hash"),
    "flowlet": Routing("flowlet:gap=5ms", "a flow may take another shortest path after a pause of `gap` "
                                          "(LetFlow, NSDI'17)", equal_cost, "flowlet"),
    "spray": Routing("spray", "the packets of each flow take the shortest paths in turn, in proportion to "
                              "their capacity", equal_cost, "spray", weighted),
    "adaptive": Routing(scheduling.SPEC, "local: every packet takes the shortest path by which it is through "
                                         "soonest; global: the controller moves elephants; both",
                        equal_cost, "least-queue", by_capacity),
    "gff": Routing(scheduling.SHORT_SPEC.format("gff"), "adaptive:scope=global with Hedera's Global First "
                                                        "Fit (NSDI'10)", equal_cost, "hash"),
    "sa": Routing(scheduling.SHORT_SPEC.format("sa"), "adaptive:scope=global with Hedera's Simulated "
                                                      "Annealing", equal_cost, "hash"),
    "wcmp": Routing("wcmp", "hash each flow over all shortest paths, in proportion to their capacity "
                            "(EuroSys'14)", equal_cost, "hash", weighted),
    "valiant": Routing("valiant", "dragonfly: hash each flow over all groups, minimal from there",
                       group_minimal, "hash", over=spread_over_groups),
    "single": Routing("single", "one spanning tree for all traffic, as plain bridging would have it",
                      spanning_tree, "hash"),
}
EXTERNAL = Routing("external:HOST:PORT", "your own OpenFlow controller, which listens there, outside of "
                                         "the run", nowhere, "hash")
GAP_LAST_US = 2**32 - 1  # the gap travels in the high 32 bits of the selection parameter, in microseconds


def _gap_us(text: str) -> int:
    gap_us = round(parse_time(text, "the gap") * 1e6)
    if not 1 <= gap_us <= GAP_LAST_US:
        raise BadInput(f"{text} is outside 1us to {GAP_LAST_US // 10**6}s.")
    return gap_us


PARAMETERS: Mapping[str, Callable[[str], object]] = {"gap": _gap_us, **scheduling.PARAMETERS}


def parse_routing(text: str) -> tuple[Routing, int]:
    """The routing that a SPEC names and the gap it gives, in microseconds (0 where it has none)."""
    if text.partition(":")[0] == "external":
        return EXTERNAL, 0
    entry, values = _parsed(text)
    if values.get("scope") == "global":
        entry = replace(entry, method="hash", weighs=alike)  # as gff and sa, which are short for it
    return entry, int(values.get("gap", 0))


def reorders(text: str) -> bool:
    """Does each packet choose for itself, so that those of one flow may overtake each other?"""
    return parse_routing(text)[0].method in ("spray", "least-queue")


def check_routing(text: str, graph: Graph) -> None:
    """BadInput where a fabric is not one that the routing is made for."""
    if parse_routing(text)[0].over is spread_over_groups and not is_dragonfly(graph):
        raise BadInput(f"the routing valiant is for a dragonfly, whose groups are fully meshed and linked to "
                       f"each other; {graph.name} is none. Use --topology dragonfly:… or another routing.")


def scheduling_of(text: str) -> Scheduling | None:
    """How the controller moves elephants under a routing; None where it does not."""
    if text.partition(":")[0] == "external":
        return None
    entry, values = _parsed(text)
    if "period" not in values or values.get("scope") == "local":
        return None
    name = values.get("scheduler", parse_spec(text, "the routing").name)
    return Scheduling(str(name), values["period"], values["threshold"], values["hysteresis"])


def _parsed(text: str) -> tuple[Routing, dict[str, Any]]:
    """The routing of a SPEC and all its parameters, those left out by their defaults."""
    spec = parse_spec(text, "the routing")
    if spec.name not in ROUTINGS:
        raise BadInput(f'there is no routing "{spec.name}"{nearest(spec.name, ROUTINGS)}.')
    entry = ROUTINGS[spec.name]
    defaults = parse_spec(entry.spec, "the routing").params
    known = {key: parser for key, parser in PARAMETERS.items() if key in defaults}
    values = take(Spec(spec.name, {**defaults, **spec.params}), "the routing", known)
    if values.get("scope") == "local" and set(spec.params) - {"scope"}:
        unused = next(key for key in spec.params if key != "scope")
        raise BadInput(f'the routing {spec.name}: {unused} is for scope=global or scope=both; the local '
                       f"choice has no parameters.")
    return entry, values


def plan_tables(graph: Graph, routing: str, seed: int) -> dict[int, SwitchTables]:
    """dpid -> tables, for every switch of `graph`; equal arguments give equal tables.

    A packet for a host is forwarded by IPv4 prefix; the host's own switch writes the host's MAC into
    it. Where several ports lead on, a select group chooses; groups with the same members are one.
    Everything else is dropped by a rule of priority 0. Raises BadInput for an unknown routing.
    """
    entry, _ = parse_routing(routing)
    return completed(graph, routing, tables_over(graph, routing, seed, entry.next_hops(graph)))


def tables_over(graph: Graph, routing: str, seed: int, hops: NextHops) -> dict[int, SwitchTables]:
    """The tables of `plan_tables` over next hops of one's own, before `completed`; racks without any get no
    rule.
    """
    entry, gap_us = parse_routing(routing)
    tree, members = blocks(graph.hosts), entry.weighs(graph, hops)
    params = hash_params((switch.dpid for switch in graph.switches), seed)
    tables = {}
    for switch in graph.switches:
        selection = Selection(method=entry.method, param=gap_us << 32 | params[switch.dpid])
        groups: dict[tuple[tuple[int, int], ...], Group] = {}
        flows = _host_rules(graph, switch.name)
        for prefix, ports in aggregate(tree, members[switch.name]):
            if len(ports) > 1 and ports not in groups:
                groups[ports] = Group(len(groups) + 1, buckets(ports, entry.method), selection)
            action = Output(ports[0][0]) if len(ports) == 1 else ToGroup(groups[ports].id)
            flows.append(FlowRule(PRIORITY, Match(ipv4_dst=prefix), (action,)))
        flows.append(FlowRule(0, Match(), ()))
        tables[switch.dpid] = SwitchTables(switch.dpid, tuple(flows), tuple(groups.values()))
    return tables


def completed(graph: Graph, routing: str, tables: dict[int, SwitchTables], half: bool = False
              ) -> dict[int, SwitchTables]:
    """`tables` with what the routing has besides next hops, over all links of `graph`.

    half: as it has to be for a moment between having it and not, that no packet goes in a circle.
    """
    entry, _ = parse_routing(routing)
    return entry.over(graph, tables, half) if entry.over else tables


def _host_rules(graph: Graph, switch: str) -> list[FlowRule]:
    neighbours = sorted(graph.neighbours[switch].items())
    ports = [(port, other) for port, (other, _) in neighbours if other in graph.host]
    return [FlowRule(PRIORITY, Match(ipv4_dst=f"{graph.host[name].ip}/32"),
                     (SetEthDst(graph.host[name].mac), Output(port))) for port, name in ports]


def hash_params(dpids: Iterable[int], seed: int) -> dict[int, int]:
    """dpid -> the parameter of its hash, 1 to 2**32 - 1, no two alike.

    Alike, every tier would pick the same members and half of the fabric would stay empty (polarisation).
    """
    params: dict[int, int] = {}
    taken = {0}
    for dpid in sorted(dpids):
        param, salt = 0, 0
        while param in taken:
            digest = hashlib.blake2b(f"{seed}/{dpid}/{salt}".encode(), digest_size=4).digest()
            param, salt = int.from_bytes(digest, "big"), salt + 1
        params[dpid] = param
        taken.add(param)
    return params
