"""Tables by walking packets through them: every pair reaches, by a shortest path, and nothing circles."""
from __future__ import annotations

import ipaddress
from itertools import combinations, permutations

import networkx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.controllers.random_graphs import graphs

from controllers.routing import ROUTINGS, hash_params, plan_tables
from controllers.tables import Output, ToGroup
from controllers.walk import Forwarding, Packet
from emulator.errors import BadInput
from topologies.catalog import resolve_topology
from topologies.graph import Graph

SHIPPED = ("fat-tree:k=4", "leaf-spine:leaves=3,spines=2,hosts=3", "star:hosts=5", "fat-tree:k=2",
           "random-regular:switches=9,degree=4,hosts=1",
           "clos3:pods=3,leaves=2,spines=2,cores=2,hosts=1", "dragonfly:p=1,a=4,h=2,g=9")


def packet(graph: Graph, src: str, dst: str, l4_src: int = 40000) -> Packet:
    return Packet(graph.host[src].ip, graph.host[dst].ip, l4_src, 5001)


def every_pair_reaches(graph: Graph, routing: str, shortest: bool) -> None:
    forwarding = Forwarding(graph, plan_tables(graph, routing, seed=1))
    away = dict(networkx.all_pairs_shortest_path_length(graph.networkx))
    for src, dst in permutations((host.name for host in graph.hosts), 2):
        for l4_src in (40000, 40001):
            walk = forwarding.walk(packet(graph, src, dst, l4_src), src)
            assert walk.delivered, f"{src} -> {dst}: {walk.ended} after {walk.nodes}"
            assert walk.nodes[-1] == dst and len(set(walk.nodes)) == len(walk.nodes)
            if shortest:
                assert len(walk.directions) == away[src][dst]


@pytest.mark.parametrize("routing", ROUTINGS)
@pytest.mark.parametrize("text", SHIPPED)
def test_every_pair_of_a_shipped_topology_reaches(text, routing):
    """A tree is as short as can be in a Clos, but not in a dragonfly or a random graph."""
    shortest = routing not in ("single", "valiant") or not text.startswith(("dragonfly", "random"))
    every_pair_reaches(resolve_topology(text), routing, shortest)


@settings(max_examples=60, deadline=None)
@given(graphs())
def test_every_pair_of_any_graph_reaches(graph):
    every_pair_reaches(graph, "ecmp", shortest=True)
    every_pair_reaches(graph, "single", shortest=False)


@settings(max_examples=60, deadline=None)
@given(graphs(), st.lists(st.integers(0, 2**24 - 1), max_size=30), st.sampled_from(sorted(ROUTINGS)))
def test_an_address_that_no_host_has_is_dropped_and_never_circles(graph, offsets, routing):
    forwarding = Forwarding(graph, plan_tables(graph, routing, seed=3))
    taken = {host.ip for host in graph.hosts}
    near = [int(ipaddress.IPv4Address(ip)) + step for ip in taken for step in (-2, -1, 1, 2)]
    for address in [0x0A000000 + offset for offset in offsets] + near:
        ip = str(ipaddress.IPv4Address(address))
        if ip in taken:
            continue
        for host in graph.hosts:
            walk = forwarding.walk(Packet(host.ip, ip, 40000, 5001), host.name)
            assert walk.ended.startswith("dropped"), f"{ip} from {host.name}: {walk}"


@settings(max_examples=40, deadline=None)
@given(graphs(), st.sampled_from(sorted(ROUTINGS)))
def test_prefixes_do_not_overlap_and_groups_are_used_and_differ(graph, routing):
    for tables in plan_tables(graph, routing, seed=0).values():
        prefixes = [ipaddress.ip_network(rule.match.ipv4_dst) for rule in tables.flows if rule.match.ipv4_dst]
        assert not any(a.overlaps(b) for a, b in combinations(prefixes, 2))
        buckets = [group.buckets for group in tables.groups]
        assert len(set(buckets)) == len(buckets) and all(len(members) > 1 for members in buckets)
        actions = [action for rule in tables.flows for action in rule.actions]
        used = {action.group for action in actions if isinstance(action, ToGroup)}
        assert used == {group.id for group in tables.groups}
        assert [rule.actions for rule in tables.flows if rule.priority == 0] == [()]


@settings(max_examples=40, deadline=None)
@given(graphs())
def test_ecmp_uses_every_shortest_path_and_aggregation_changes_nothing(graph):
    """Each switch's ports towards each host must be those that networkx's distances call nearer."""
    forwarding = Forwarding(graph, plan_tables(graph, "ecmp", seed=5))
    switches = graph.networkx.subgraph(switch.name for switch in graph.switches)
    away = dict(networkx.all_pairs_shortest_path_length(switches))
    for switch in graph.switches:
        for host in graph.hosts:
            if host.rack == switch.name:
                continue
            nearer = {port for port, (other, _) in graph.neighbours[switch.name].items()
                      if other in graph.switch
                      and away[other][host.rack] == away[switch.name][host.rack] - 1}
            action, = forwarding.rule(switch.name, host.ip).actions
            ports = ({action.port} if isinstance(action, Output) else
                     {bucket.port for bucket in forwarding.group(switch.name, action.group).buckets})
            assert ports == nearer


def test_a_spanning_tree_sends_all_traffic_between_pods_through_one_core():
    """Stride 8 in a k=4 fat-tree: .25 of the capacity, since four flows share each pod's one uplink."""
    graph = resolve_topology("fat-tree:k=4")
    forwarding = Forwarding(graph, plan_tables(graph, "single", seed=7))
    cores, load = set(), {}
    for i in range(16):
        src, dst = f"h{i + 1}", f"h{(i + 8) % 16 + 1}"
        walk = forwarding.walk(packet(graph, src, dst), src)
        cores |= {node for node in walk.nodes if node.startswith("c")}
        for direction in walk.directions:
            load[direction] = load.get(direction, 0) + 1
    assert cores == {"c1"}
    assert max(load.values()) == 4
    used = networkx.Graph((graph.links[index].a, graph.links[index].b) for index, _ in load)
    assert networkx.is_forest(used)


@settings(max_examples=30, deadline=None)
@given(graphs())
def test_single_uses_one_tree(graph):
    used = networkx.MultiGraph()
    forwarding = Forwarding(graph, plan_tables(graph, "single", seed=0))
    for src, dst in permutations((host.name for host in graph.hosts), 2):
        for index, _ in forwarding.walk(packet(graph, src, dst), src).directions:
            link = graph.links[index]
            used.add_edge(link.a, link.b, key=index)
    assert networkx.is_forest(used)


def test_equal_seeds_give_equal_tables_and_other_seeds_other_hashes():
    graph = resolve_topology("fat-tree:k=4")
    assert plan_tables(graph, "ecmp", 4) == plan_tables(graph, "ecmp", 4)
    params = {seed: {group.selection.param for table in plan_tables(graph, "ecmp", seed).values()
                     for group in table.groups} for seed in (4, 5)}
    assert len(params[4]) == 16 and not params[4] & params[5]


@given(st.sets(st.integers(1, 2**64 - 1), max_size=300), st.integers())
def test_hash_parameters_are_unique_and_fit_32_bits(dpids, seed):
    params = hash_params(dpids, seed)
    assert params.keys() == dpids and len(set(params.values())) == len(dpids)
    assert all(0 < param < 2**32 for param in params.values())


def test_tables_stay_small_at_k_16():
    graph = resolve_topology("fat-tree:k=16")
    tables = plan_tables(graph, "ecmp", 1)
    assert max(len(table.flows) for table in tables.values()) <= 17
    assert max(len(table.groups) for table in tables.values()) == 1


def test_a_misspelt_routing_gets_the_nearest_name():
    with pytest.raises(BadInput, match='did you mean "ecmp"'):
        plan_tables(resolve_topology("star:hosts=2"), "ecpm", 1)
