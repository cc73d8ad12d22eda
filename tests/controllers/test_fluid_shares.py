"""The shares of a k=4 fat-tree's capacity that NSDI'10 (Hedera) traffic gets, by a fluid model of the tables.

One long flow a host, max-min fair rates along the walked paths, in fractions of 16 host links. The
expected values are those of an independent model (mean over port seeds).
"""
from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random
from statistics import mean

import pytest

from controllers.routing import plan_tables
from controllers.tables import Selection, SwitchTables
from controllers.walk import Forwarding, Packet
from topologies.catalog import resolve_topology

GRAPH = resolve_topology("fat-tree:k=4")
SEEDS = range(50)  # the standard deviation over seeds is .08, so that of the mean .011


def max_min(paths: list[tuple]) -> list[float]:
    """Fair rates of flows over links of capacity 1 (progressive filling)."""
    rates: dict[int, float] = {}
    room = dict.fromkeys((link for path in paths for link in path), 1.0)
    while len(rates) < len(paths):
        users = Counter(link for i, path in enumerate(paths) if i not in rates for link in path)
        tight = min(users, key=lambda link: room[link] / users[link])
        fair = room[tight] / users[tight]
        for i, path in enumerate(paths):
            if i not in rates and tight in path:
                rates[i] = fair
                for link in path:
                    room[link] -= fair
    return list(rates.values())


def alike(table: SwitchTables, selection: Selection) -> SwitchTables:
    return replace(table, groups=tuple(replace(group, selection=selection) for group in table.groups))


def share(routing: str, stride: int, seed: int, polarised: bool = False) -> float:
    tables = plan_tables(GRAPH, routing, seed)
    if polarised:
        tables = {dpid: alike(table, Selection(param=seed)) for dpid, table in tables.items()}
    forwarding, ports = Forwarding(GRAPH, tables), Random(seed)
    paths = []
    for i, host in enumerate(GRAPH.hosts):
        packet = Packet(host.ip, GRAPH.hosts[(i + stride) % 16].ip, ports.randrange(32768, 61000), 5001)
        paths.append(forwarding.walk(packet, host.name).directions)
    return sum(max_min(paths)) / 16


@pytest.mark.parametrize("stride, expected", [(1, 1.0), (2, 0.50), (4, 0.25), (8, 0.25)])
def test_a_single_tree_gives_what_its_one_core_carries(stride, expected):
    assert share("single", stride, 0) == pytest.approx(expected)


@pytest.mark.parametrize("stride, expected", [(2, 0.75), (4, 0.62), (8, 0.62)])
def test_ecmp_gives_the_share_of_random_hashing(stride, expected):
    assert mean(share("ecmp", stride, seed) for seed in SEEDS) == pytest.approx(expected, abs=0.033)


def test_one_seed_for_all_switches_gives_the_polarised_share():
    shares = [share("ecmp", 8, seed, polarised=True) for seed in SEEDS]
    assert mean(shares) == pytest.approx(0.47, abs=0.033)
