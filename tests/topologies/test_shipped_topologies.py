"""The shipped Topo classes: sizes, addresses, ports, and that Mininet alone can run their files."""
from __future__ import annotations

import ipaddress
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.errors import BadInput
from topologies.catalog import TOPOLOGIES, resolve_topology
from topologies.check import checked
from topologies.graph import Graph, interface
from topologies.graph_json import graph_from_json, graph_to_json

HERE = Path(__file__).parents[2] / "topologies"


def ports_are_consecutive(graph: Graph) -> None:
    for host in graph.hosts:
        assert list(graph.neighbours[host.name]) == [0]
    for switch in graph.switches:
        ports = sorted(graph.neighbours[switch.name])
        assert ports == list(range(1, len(ports) + 1))


@pytest.mark.parametrize("k", range(2, 17, 2))
def test_fat_tree_has_the_sizes_of_the_paper(k):
    graph = resolve_topology(f"fat-tree:k={k}")
    roles = Counter(switch.role for switch in graph.switches)
    assert len(graph.hosts) == k ** 3 // 4
    assert roles == {"edge": k * k // 2, "aggregation": k * k // 2, "core": k * k // 4}
    tiers = Counter(link.tier for link in graph.links)
    assert tiers == dict.fromkeys(("host-edge", "edge-aggregation", "aggregation-core"), k ** 3 // 4)
    assert all(len(graph.neighbours[switch.name]) == k for switch in graph.switches)
    ports_are_consecutive(graph)
    for i, host in enumerate(graph.hosts):
        pod, rest = divmod(i, k * k // 4)
        edge, j = divmod(rest, k // 2)
        assert (host.name, host.ip, host.rack) == (f"h{i + 1}", f"10.{pod}.{edge}.{j + 2}", f"e{pod}_{edge}")


def test_every_pod_of_a_fat_tree_reaches_every_core_once():
    graph = resolve_topology("fat-tree:k=8")
    for switch in graph.switches:
        if switch.role == "core":
            pods = [graph.switch[other].pod for other, _ in graph.neighbours[switch.name].values()]
            assert sorted(pods) == list(range(8))
            assert switch.pod == -1


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 9), st.integers(1, 6), st.integers(1, 12), st.floats(0.5, 8))
def test_leaf_spine_oversubscription_is_downlinks_over_uplinks(leaves, spines, hosts, ratio):
    graph = resolve_topology(
        f"leaf-spine:leaves={leaves},spines={spines},hosts={hosts},oversubscription={ratio}")
    ports_are_consecutive(graph)
    for n in range(1, leaves + 1):
        links = [link for _, link in graph.neighbours[f"l{n}"].values()]
        down = sum(link.speed for link in links if link.tier == "host-leaf")
        up = sum(link.speed for link in links if link.tier == "leaf-spine")
        assert down == hosts and down / up == pytest.approx(ratio)
    assert len(graph.links) == leaves * (hosts + spines)


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 5), st.integers(1, 4), st.integers(1, 4), st.integers(1, 3), st.integers(1, 5),
       st.floats(0.5, 4), st.floats(0.5, 4))
def test_clos3_oversubscription_is_downlinks_over_uplinks_at_both_tiers(pods, leaves, spines, cores, hosts,
                                                                        ratio, spine_ratio):
    graph = resolve_topology(f"clos3:pods={pods},leaves={leaves},spines={spines},cores={cores},hosts={hosts},"
                             f"oversubscription={ratio},spine_oversubscription={spine_ratio}")
    ports_are_consecutive(graph)
    for switch in graph.switches:
        links = [link for _, link in graph.neighbours[switch.name].values()]
        up = sum(link.speed for link in links if link.a == switch.name)
        down = sum(link.speed for link in links if link.b == switch.name)
        if switch.role != "core":
            assert down / up == pytest.approx(ratio if switch.role == "leaf" else spine_ratio)
        else:
            assert len({graph.switch[link.a].pod for link in links}) == pods == len(links)
            assert len({link.a.split("_")[1] for link in links}) == 1, "a core belongs to one plane"


@pytest.mark.parametrize("p, a, h, g", [(2, 4, 2, 9), (1, 2, 1, 3), (1, 4, 2, 5), (2, 4, 2, 2), (1, 3, 2, 7)])
def test_dragonfly_groups_are_full_meshes_joined_alike(p, a, h, g):
    graph = resolve_topology(f"dragonfly:p={p},a={a},h={h},g={g}")
    ports_are_consecutive(graph)
    assert len(graph.hosts) == p * a * g
    joined: Counter = Counter()
    for switch in graph.switches:
        tiers = Counter(link.tier for _, link in graph.neighbours[switch.name].values())
        assert (tiers["host-router"], tiers["local"], tiers["global"]) == (p, a - 1, h)
    for link in graph.links:
        if link.tier == "local":
            assert graph.switch[link.a].pod == graph.switch[link.b].pod
        elif link.tier == "global":
            joined[graph.switch[link.a].pod, graph.switch[link.b].pod] += 1
    assert joined == {(n, m): a * h // (g - 1) for n in range(g) for m in range(n + 1, g)}


def test_the_largest_of_each_keeps_addresses_and_interface_names_valid():
    for text in ("fat-tree:k=16", "leaf-spine:leaves=8,spines=128,hosts=250", "leaf-spine:leaves=255,hosts=1",
                 "star:hosts=1000", "clos3:pods=250,leaves=8,hosts=1", "dragonfly:p=4,a=8,h=4,g=33"):
        graph = checked(resolve_topology(text))
        assert len({host.ip for host in graph.hosts}) == len(graph.hosts)
        assert len({switch.dpid for switch in graph.switches}) == len(graph.switches)
        network = ipaddress.ip_network("10.0.0.0/8")
        for host in graph.hosts:
            assert ipaddress.ip_address(host.ip) in network
            assert not host.ip.endswith((".0", ".1", ".255"))
        assert max(len(interface(link.b, link.b_port)) for link in graph.links) <= 15


def test_defaults_are_those_that_the_help_shows():
    for name, entry in TOPOLOGIES.items():
        assert resolve_topology(name).name == entry.spec
        assert resolve_topology(name) == resolve_topology(entry.spec)


@pytest.mark.parametrize("text", ["fat-tree:k=4", "leaf-spine:leaves=3,spines=2,hosts=2", "star:hosts=5"])
def test_a_graph_survives_json(text):
    graph = resolve_topology(text)
    assert graph_from_json(graph_to_json(graph)) == graph


@pytest.mark.parametrize("file, topo, hosts", [
    ("fat_tree.py", "fattree,4", 16), ("leaf_spine.py", "leafspine,3,2,2", 6), ("star.py", "star,7", 7),
    ("clos3.py", "clos3,2,2,2,1,3", 12), ("dragonfly.py", "dragonfly,2,2,1,3", 12)])
def test_mininet_alone_runs_the_file_bare(file, topo, hosts):
    """As `mn --custom` does: the distribution's Python, no module name, only Mininet at hand."""
    program = (
        "import sys\n"
        "from mininet.util import buildTopo\n"
        "bare = {}\n"
        "exec(compile(open(sys.argv[1]).read(), sys.argv[1], 'exec'), bare, bare)\n"
        "print(len(buildTopo(bare['topos'], sys.argv[2]).hosts()))\n")
    done = subprocess.run(["/usr/bin/python3", "-B", "-c", program, HERE / file, topo], cwd="/", timeout=30,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == hosts


@settings(max_examples=40, deadline=None)
@given(st.integers(3, 20), st.integers(2, 6), st.integers(0, 50))
def test_random_regular_graphs_are_regular_connected_and_repeat(switches, degree, seed):
    text = f"random-regular:switches={switches},degree={degree},hosts=1,seed={seed}"
    if degree >= switches or switches * degree % 2:
        with pytest.raises(BadInput, match="random-regular"):
            resolve_topology(text)
        return
    graph = resolve_topology(text)  # connected, else `checked` refuses it
    ports_are_consecutive(graph)
    assert {len(graph.neighbours[switch.name]) for switch in graph.switches} == {degree + 1}
    ends = [frozenset((link.a, link.b)) for link in graph.links]
    assert len(set(ends)) == len(ends) and graph == resolve_topology(text)


def test_slow_uplinks_are_those_of_the_first_leaf():
    graph = resolve_topology("leaf-spine:leaves=3,spines=4,hosts=2,slow=2,slow_factor=0.25")
    slow = {(link.a, link.b) for link in graph.links if link.tier == "leaf-spine" and link.speed == 0.125}
    assert slow == {("l1", "s1"), ("l1", "s2")}
    for wrong in ("slow=5", "slow=1,slow_factor=2"):
        with pytest.raises(BadInput, match="slow"):
            resolve_topology(f"leaf-spine:leaves=3,spines=4,hosts=2,{wrong}")
