"""Small fabrics as plain data."""
from __future__ import annotations

import pytest

from topologies.graph import Graph, Host, Link, Switch


def assemble(name, host_rows, switch_rows, cables) -> Graph:
    """hosts (name, ip, rack), switches (name, tier, role, pod), cables (lower, upper, speed, tier)."""
    hosts = tuple(Host(n, i, ip, f"02:00:00:00:{i // 256:02x}:{i % 256:02x}", rack)
                  for i, (n, ip, rack) in enumerate(host_rows))
    switches = tuple(Switch(n, i + 1, tier, role, pod) for i, (n, tier, role, pod) in enumerate(switch_rows))
    ports: dict[str, int] = {}
    links = []
    for i, (a, b, speed, tier) in enumerate(cables):
        ends = []
        for node in (a, b):
            first = 0 if node.startswith("h") else 1  # as Mininet numbers ports
            ports[node] = ports.get(node, first - 1) + 1
            ends.append(ports[node])
        links.append(Link(i, a, ends[0], b, ends[1], speed, tier))
    return Graph(name, hosts, switches, tuple(links))


def fat_tree(k: int) -> Graph:
    """Three tiers, (k^3)/4 hosts; Al-Fares et al., SIGCOMM 2008."""
    half = k // 2
    hosts, switches, cables = [], [], []
    for pod in range(k):
        for e in range(half):
            switches.append((f"e{pod}_{e}", 0, "edge", pod))
            for x in range(half):
                hosts.append((f"h{len(hosts) + 1}", f"10.{pod}.{e}.{x + 2}", f"e{pod}_{e}"))
                cables.append((hosts[-1][0], f"e{pod}_{e}", 1.0, "host-edge"))
            cables += [(f"e{pod}_{e}", f"a{pod}_{a}", 1.0, "edge-aggregation") for a in range(half)]
        for a in range(half):
            switches.append((f"a{pod}_{a}", 1, "aggregation", pod))
            cables += [(f"a{pod}_{a}", f"c{a * half + j}", 1.0, "aggregation-core") for j in range(half)]
    switches += [(f"c{c}", 2, "core", -1) for c in range(half * half)]
    return assemble(f"fat-tree:k={k}", hosts, switches, cables)


def leaf_spine(leaves: int, spines: int, hosts_per_leaf: int, uplink_speed: float = 1.0) -> Graph:
    hosts, cables = [], []
    for leaf in range(leaves):
        for x in range(hosts_per_leaf):
            hosts.append((f"h{len(hosts) + 1}", f"10.0.{leaf}.{x + 2}", f"l{leaf}"))
            cables.append((hosts[-1][0], f"l{leaf}", 1.0, "host-leaf"))
        cables += [(f"l{leaf}", f"s{s}", uplink_speed, "leaf-spine") for s in range(spines)]
    switches = [(f"l{i}", 0, "leaf", i) for i in range(leaves)]
    switches += [(f"s{i}", 1, "spine", -1) for i in range(spines)]
    return assemble("leaf-spine", hosts, switches, cables)


def star(hosts: int) -> Graph:
    return assemble("star", [(f"h{i + 1}", f"10.0.0.{i + 2}", "s0") for i in range(hosts)],
                    [("s0", 0, "edge", 0)], [(f"h{i + 1}", "s0", 1.0, "host-edge") for i in range(hosts)])


@pytest.fixture(scope="session")
def k4() -> Graph:
    return fat_tree(4)


@pytest.fixture(scope="session")
def k8() -> Graph:
    return fat_tree(8)


@pytest.fixture(scope="session")
def star16() -> Graph:
    return star(16)


@pytest.fixture(scope="session")
def oversubscribed() -> Graph:
    """Two leaves of four hosts under two spines, uplinks of half a host link: 4:1."""
    return leaf_spine(2, 2, 4, 0.5)
