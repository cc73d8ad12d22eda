"""Tables on what is left of a fabric: everybody who can be reached is, also half way through a change."""
from __future__ import annotations

import random

import networkx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controllers.network import Network, between_switches, links_of, without
from controllers.walk import Forwarding, Packet
from emulator.errors import BadInput
from tests.controllers.random_graphs import graphs
from topologies.catalog import resolve_topology
from topologies.graph import Graph

FAT_TREE = resolve_topology("fat-tree:k=4")


def down(network: Network, links) -> Network:
    for link in network.graph.links:
        if link.index in links and link.a in network.graph.switch:
            network = network.with_port(network.graph.switch[link.a].dpid, link.a_port, False)
    return network


def walks(graph: Graph, tables, count: int = 40, seed: int = 0):
    """(walk, may it arrive on `graph`?) of some packets between random pairs."""
    forwarding, dice = Forwarding(graph, tables), random.Random(seed)
    for port in range(count):
        a, b = dice.sample(graph.hosts, 2)
        yield forwarding.walk(Packet(a.ip, b.ip, 1000 + port, 5001), a.name), networkx.has_path(
            graph.networkx, a.name, b.name)


def inner(graph: Graph) -> list[int]:
    return [link.index for link in graph.links if between_switches(graph, link)]


@settings(max_examples=40, deadline=None)
@given(graphs(), st.data(), st.sampled_from(["ecmp", "single"]))
def test_whoever_can_be_reached_is_reached_around_dead_links(graph, data, routing):
    links = inner(graph)
    dead = data.draw(st.sets(st.sampled_from(links), max_size=3)) if links else set()
    network = down(Network(graph, routing, 1), dead)
    left = without(graph, dead)
    for walk, possible in walks(left, network.tables()):
        assert walk.delivered == possible, walk
        assert dead.isdisjoint(link for link, _ in walk.directions)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_no_mixture_of_old_and_half_new_tables_loses_a_packet_that_has_a_way(data):
    """A drain: the link still works, so whatever mixture of tables is in force, every packet arrives."""
    name = data.draw(st.sampled_from([f"{link.a}-{link.b}" for link in FAT_TREE.links
                                      if between_switches(FAT_TREE, link)] + ["c1", "a0_0"]))
    before = Network(FAT_TREE, "ecmp", data.draw(st.integers(0, 5)))
    after = before.with_drained(name, True)
    there, back = list(after.steps_from(before)), list(before.steps_from(after))
    stages = [before.tables(), *there, *back]
    for early, late in zip(stages, stages[1:]):
        new = data.draw(st.sets(st.sampled_from(sorted(early))))
        mixed = {dpid: (late if dpid in new else early)[dpid] for dpid in early}
        assert all(walk.delivered for walk, _ in walks(FAT_TREE, mixed)), name
    avoided = after.avoided
    assert all(avoided.isdisjoint(link for link, _ in walk.directions) for walk, _ in walks(FAT_TREE, there[-1]))
    assert there[0] != before.tables() and back[-1] == before.tables()


def mixtures(before: Network, after: Network, dice: random.Random, count: int = 4):
    """Of any two tables that follow one another: some switches have the one, some the other."""
    stages = [before.tables(), *after.steps_from(before)]
    assert stages[-1] == after.tables()
    for early, late in zip(stages, stages[1:]):
        for _ in range(count):
            yield {dpid: dice.choice((early, late))[dpid] for dpid in early}


def circles(walk) -> bool:
    return "still travelling" in walk.ended


ROUTINGS = st.sampled_from(["ecmp", "single", "wcmp", "adaptive"])


@settings(max_examples=60, deadline=None)
@given(graphs(), st.data(), ROUTINGS)
def test_no_mixture_of_neighbouring_tables_sends_a_packet_in_a_circle(graph, data, routing):
    """Whatever fails and comes back at once, on any fabric, also where the way around is longer."""
    links = inner(graph)
    dice = random.Random(data.draw(st.integers(0, 99)))
    before, after = (down(Network(graph, routing, 1), data.draw(
        st.sets(st.sampled_from(links), max_size=3)) if links else set()) for _ in "ab")
    for mixed in mixtures(before, after, dice):
        for walk, _ in walks(graph, mixed, 20, seed=dice.randrange(99)):
            assert not circles(walk), walk


@settings(max_examples=60, deadline=None)
@given(graphs(), st.data(), ROUTINGS)
def test_no_packet_is_lost_by_a_drain_nor_by_its_end(graph, data, routing):
    """Whatever mixture of neighbouring tables it meets; and in the end nothing crosses what is drained."""
    networks = [Network(graph, routing, 1)]
    names = sorted({f"{link.a}-{link.b}" for link in graph.links if between_switches(graph, link)})
    for name in data.draw(st.permutations(names))[:3]:
        try:
            networks.append(networks[-1].with_drained(name, True))
        except BadInput:
            continue
    dice = random.Random(data.draw(st.integers(0, 99)))
    for before, after in zip([*networks, networks[-1]], [*networks[1:], networks[-1], networks[0]]):
        for mixed in mixtures(before, after, dice):
            for walk, possible in walks(graph, mixed, 20, seed=dice.randrange(99)):
                assert walk.delivered or not possible, walk
        assert all(after.avoided.isdisjoint(link for link, _ in walk.directions)
                   for walk, _ in walks(graph, after.tables(), 20))


@pytest.mark.parametrize("text, routing", [
    ("fat-tree:k=4", "single"), ("random-regular:switches=8,degree=3,seed=1", "ecmp"),
    ("random-regular:switches=8,degree=3,seed=1", "single"),
    ("dragonfly:p=1,a=4,h=2,g=9", "valiant"), ("dragonfly:p=1,a=3,h=2,g=4", "valiant")])
def test_no_mixture_circles_where_ways_become_longer_or_others(text, routing):
    """Another tree, a detour, spreading over groups that is given up and taken up again."""
    graph, dice = resolve_topology(text), random.Random(1)
    for index in dice.sample(inner(graph), 4):
        whole = Network(graph, routing, 1)
        broken = down(whole, {index})
        for before, after in ((whole, broken), (broken, whole)):
            for mixed in mixtures(before, after, dice):
                assert not any(circles(walk) for walk, _ in walks(graph, mixed, 60, seed=dice.randrange(99)))


@settings(max_examples=30, deadline=None)
@given(graphs(), st.data(), ROUTINGS)
def test_a_drained_link_may_fail_and_come_back_and_nobody_notices(graph, data, routing):
    """Maintenance: nobody is led over it meanwhile, nor does any packet circle."""
    names = sorted({f"{link.a}-{link.b}" for link in graph.links if between_switches(graph, link)})
    name = data.draw(st.sampled_from(names)) if names else "x0"
    try:
        drained = Network(graph, routing, 1).with_drained(name, True)
    except BadInput:
        return
    broken, dice = down(drained, drained.drained), random.Random(data.draw(st.integers(0, 99)))
    for before, after in ((drained, broken), (broken, drained)):
        for mixed in mixtures(before, after, dice):
            for walk, _ in walks(graph, mixed, 20, seed=dice.randrange(99)):
                assert walk.delivered and drained.drained.isdisjoint(link for link, _ in walk.directions), walk


def test_where_shortest_ways_are_left_there_are_two_steps():
    """Nobody waits for an order where none is needed."""
    network = Network(FAT_TREE, "ecmp", 1)
    assert len(list(network.with_drained("c1", True).steps_from(network))) == 2


def test_after_the_first_step_nobody_uses_a_drained_link_any_more():
    """`there[0]` moves all traffic; the second step only tidies up what nobody uses."""
    network = Network(FAT_TREE, "ecmp", 1)
    after = network.with_drained("e0_0-a0_0", True)
    first = next(after.steps_from(network))
    assert all(walk.delivered and after.avoided.isdisjoint(link for link, _ in walk.directions)
               for walk, _ in walks(FAT_TREE, first, 200))


def test_what_cannot_be_drained_is_said():
    small = Network(resolve_topology("leaf-spine:leaves=2,spines=2,hosts=1"), "ecmp", 1)
    with pytest.raises(BadInput, match="h1-l1 is a host's only link"):
        small.with_drained("h1-l1", True)
    with pytest.raises(BadInput, match="would cut off the hosts at l1, l2"):
        small.with_drained("s1", True).with_drained("l1-s2", True)
    four = Network(resolve_topology("leaf-spine:leaves=4,spines=2,hosts=1"), "ecmp", 1)
    with pytest.raises(BadInput, match="would cut off the hosts at l1\\.$"):
        four.with_drained("l1", True)
    with pytest.raises(BadInput, match="would cut off the hosts at l2\\.$"):
        four.with_drained("s1", True).with_drained("l2-s2", True)
    with pytest.raises(BadInput, match="would cut off the hosts at l1\\.$"):
        small.with_drained("l1", True)
    isolated = down(four, {link.index for link in links_of(four.graph, "l4")})
    with pytest.raises(BadInput, match="would cut off the hosts at l1\\.$"):
        isolated.with_drained("l1", True)
    isolated.with_drained("s1", True)
    isolated.with_drained("l4-s1", True)
    with pytest.raises(BadInput, match='no link or switch "l1-s3".*l1-s'):
        links_of(small.graph, "l1-s3")
    assert small.with_drained("s1", True).with_drained("s1", False) == small


def test_a_port_that_comes_back_gives_the_first_tables_again():
    network = Network(FAT_TREE, "ecmp", 1)
    dpid = FAT_TREE.switch["c1"].dpid
    broken = network.with_port(dpid, 1, False)
    assert len(broken.avoided) == 1 and broken.tables() != network.tables()
    assert broken.with_port(dpid, 1, True).tables() == network.tables()
    assert broken.with_port(dpid, 1, False) is broken


def test_a_drained_switch_goes_on_forwarding_what_is_under_way_to_it():
    """With all tables new, a packet that is already at c1 still arrives."""
    drained = Network(FAT_TREE, "ecmp", 1).with_drained("c1", True)
    forwarding = Forwarding(FAT_TREE, drained.tables())
    assert all(forwarding.rule("c1", host.ip).actions for host in FAT_TREE.hosts)
