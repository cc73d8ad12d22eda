"""The loop of global scheduling, without switches: which pairs are elephants, where they go, what is booked;
and the rules that count and steer, by walking packets through them."""
from __future__ import annotations

import random
import struct

import pytest
from hypothesis import given, settings, strategies as st
from os_ken.base import app_manager  # noqa: F401  (os-ken's modules import each other; only this order works)

from controllers.elephants import Elephants
from controllers.network import Network, between_switches, links_of, without
from controllers.routing import scheduling_of
from controllers.scheduling.counters import pair_bytes
from controllers.scheduling.loop import QUIET_PERIODS, QUIET_S, Reading, SchedulingLoop
from controllers.scheduling.options import SCHEDULERS, Scheduling
from controllers.scheduling.paths import PathLists
from controllers.scheduling.steering import PAIR_PRIORITY
from controllers.walk import Forwarding, Packet
from tests.controllers.random_graphs import graphs
from topologies.catalog import resolve_topology

RATE_BPS = 8e6
GRAPH = resolve_topology("fat-tree:k=4")
STRIDE_8 = [(f"h{x + 1}", f"h{(x + 8) % 16 + 1}") for x in range(16)]


def loop(scheduler="gff", hysteresis=0.1):
    return SchedulingLoop(PathLists(GRAPH), Scheduling(scheduler, 1.0, 0.1, hysteresis), RATE_BPS, seed=1)


def run(scheduling, rates, start=0, periods=1):
    """Readings a second apart in which each pair sends rates[pair] of a host link; did any change a path?"""
    counts = dict(getattr(scheduling, "counts", {}))
    changed = False
    for period in range(start, start + periods):
        for pair, rate in rates.items():
            counts[pair] = counts.get(pair, 0) + int(rate * RATE_BPS / 8)
        changed |= scheduling.step(Reading(float(period), dict(counts)))
    scheduling.counts = counts
    return changed


@pytest.mark.parametrize("scheduler", sorted(SCHEDULERS))
def test_elephants_are_placed_once_and_stay(scheduler):
    scheduling = loop(scheduler)
    assert not run(scheduling, dict.fromkeys(STRIDE_8, 0.6), 0)
    assert run(scheduling, dict.fromkeys(STRIDE_8, 0.6), 1)
    assert scheduling.placed.keys() == set(STRIDE_8)
    assert len({path for path in scheduling.placed.values()}) == 16
    assert not run(scheduling, dict.fromkeys(STRIDE_8, 0.9), 2, periods=5)
    said = scheduling.summary()
    assert (said["placed"], said["moved"], said["moved_back"], said["released"]) == (16, 0, 0, 0)
    assert said["elephants_most"] == 16 and len(said["moves"]) == 16


def test_mice_are_left_alone_and_what_ends_is_released():
    scheduling = loop()
    run(scheduling, {("h1", "h9"): 0.5, ("h2", "h10"): 0.05}, 0, periods=2)
    assert scheduling.placed.keys() == {("h1", "h9")}
    assert not run(scheduling, {("h1", "h9"): 0.06}, 2, periods=3), "still above half of the threshold"
    assert not run(scheduling, {("h1", "h9"): 0.0}, 5, periods=QUIET_PERIODS - 1)
    assert run(scheduling, {("h1", "h9"): 0.0}, 5 + QUIET_PERIODS, periods=1)
    assert scheduling.placed == {} and scheduling.summary()["released"] == 1


def test_who_waits_for_its_turn_in_a_collective_keeps_its_path():
    scheduling = SchedulingLoop(PathLists(GRAPH), Scheduling("sa", 0.2, 0.1, 0.1), RATE_BPS, seed=1)
    everybody = dict.fromkeys(STRIDE_8, 0.9)
    run(scheduling, everybody, 0, periods=4)
    kept = dict(scheduling.placed)
    assert not run(scheduling, everybody | {("h1", "h9"): 0.0}, 4, periods=round(QUIET_S / 0.2) - 1)
    assert not run(scheduling, everybody, 20, periods=1) and scheduling.placed == kept


def test_neighbours_of_one_rack_are_no_elephants():
    scheduling = loop()
    assert not run(scheduling, {("h1", "h2"): 1.0}, 0, periods=3)
    assert scheduling.placed == {}


def test_who_was_placed_over_a_dead_link_is_hashed_and_placed_anew():
    scheduling = loop()
    run(scheduling, dict.fromkeys(STRIDE_8, 0.9), 0, periods=2)
    gone = GRAPH.links[scheduling.placed["h1", "h9"][1] // 2]
    network = Network(GRAPH, "gff", 1).with_placed(scheduling.placed).with_port(
        GRAPH.switch[gone.a].dpid, gone.a_port, False)
    tables = network.tables()
    walk = Forwarding(GRAPH, tables).walk(Packet(GRAPH.host["h1"].ip, GRAPH.host["h9"].ip, 1, 2), "h1")
    assert walk.delivered and gone.index not in {index for index, _ in walk.directions}
    scheduling.rewire(PathLists(network.live))
    assert ("h1", "h9") not in scheduling.placed
    run(scheduling, dict.fromkeys(STRIDE_8, 0.9), 2)
    assert all(gone.index not in {link // 2 for link in path} for path in scheduling.placed.values())


@pytest.mark.parametrize("name", ["e0_0-a0_0", "a3_1-c4"])
def test_loads_of_links_are_read_whichever_link_is_dead(name):
    """Also the one of the highest number, on which the size of no array may hang."""
    link, = links_of(GRAPH, name)
    network = Network(GRAPH, "adaptive:scope=global,scheduler=least-congested", 1)
    elephants = Elephants(network, scheduling_of(network.routing), RATE_BPS)
    broken = network.with_port(GRAPH.switch[link.b].dpid, link.b_port, False)
    changed = None
    for period in range(1, 4):
        elephants.ask({})  # what is owed is put in by hand, since there are no switches
        elephants._owed = {(switch.dpid, what) for switch in GRAPH.switches for what in ("pairs", "links")}
        elephants._pairs = {("h1", "h9"): period * int(RATE_BPS)}
        for switch in GRAPH.switches:
            sent = {port: period * 10**6 for port in GRAPH.neighbours[switch.name]}
            now = network if period == 1 else broken
            changed = elephants.links(switch.dpid, sent, True, now) or changed
            changed = elephants.pairs(switch.dpid, [], True, now) or changed
    path = elephants.loop.placed["h1", "h9"]
    assert changed.placed == ((("h1", "h9"), path),) and link.index not in {each // 2 for each in path}


@pytest.mark.parametrize("scheduler", sorted(SCHEDULERS))
def test_elephants_of_a_rack_that_is_cut_off_wait_and_the_others_are_placed(scheduler):
    scheduling = loop(scheduler)
    run(scheduling, dict.fromkeys(STRIDE_8, 0.9), 0, periods=2)
    cut_off, network = {"h1", "h2", "h9", "h10"}, Network(GRAPH, scheduler, 1)
    for port in GRAPH.neighbours["e0_0"]:
        network = network.with_port(GRAPH.switch["e0_0"].dpid, port, False)
    scheduling.rewire(PathLists(network.live))
    run(scheduling, dict.fromkeys(STRIDE_8, 0.9), 2, periods=3)
    assert scheduling.placed.keys() == {pair for pair in STRIDE_8 if pair[0] not in cut_off}
    scheduling.rewire(PathLists(GRAPH))
    run(scheduling, dict.fromkeys(STRIDE_8, 0.9), 5)
    assert scheduling.placed.keys() == set(STRIDE_8)


@settings(max_examples=40, deadline=None)
@given(graphs(), st.integers(0, 2**16), st.sampled_from(["gff", "adaptive:scope=both,scheduler=sa"]))
def test_packets_take_their_placed_path_whatever_mixture_of_tables_they_meet(graph, seed, routing):
    """Some switches have the new tables, some the old: every packet arrives; with the new ones, on its path."""
    rng, paths = random.Random(seed), PathLists(graph)
    names = [host.name for host in graph.hosts]
    pairs = {tuple(rng.sample(names, 2)) for _ in range(5)}
    network = Network(graph, routing, 1)
    placements = [{pair: rng.choice(paths.of(*pair)) for pair in sorted(pairs) if paths.of(*pair)[0]} for _ in "ab"]
    old, new = (network.with_placed(placed).tables() for placed in placements)
    mixed = {dpid: rng.choice((old, new))[dpid] for dpid in old}
    for pair, path in placements[1].items():
        packet = Packet(graph.host[pair[0]].ip, graph.host[pair[1]].ip, rng.randrange(1, 2**16), 5001)
        walk = Forwarding(graph, new).walk(packet, pair[0])
        assert walk.delivered and walk.directions[1:-1] == tuple(
            (link // 2, paths.sender(link)) for link in path)
        assert Forwarding(graph, mixed).walk(packet, pair[0]).delivered


@settings(max_examples=40, deadline=None)
@given(graphs(), st.integers(0, 2**16))
def test_a_path_that_is_a_detour_by_now_is_kept_to_whole(graph, seed):
    """A link has come back since the pair was placed: no switch of the path sends the packet to it, and back."""
    rng, paths = random.Random(seed), PathLists(graph)
    inner = [link.index for link in graph.links if between_switches(graph, link)]
    for _ in range(5):
        broken = PathLists(without(graph, rng.sample(inner, min(3, len(inner)))), whole=graph)
        pair = tuple(host.name for host in rng.sample(graph.hosts, 2))
        if not broken.of(*pair) or not broken.of(*pair)[0]:
            continue
        path = rng.choice(broken.of(*pair))
        tables = Network(graph, "gff", 1).with_placed({pair: path}).tables()
        walk = Forwarding(graph, tables).walk(Packet(*(graph.host[name].ip for name in pair), 1, 2), pair[0])
        assert walk.delivered and walk.directions[1:-1] == tuple((link // 2, paths.sender(link)) for link in path)


def test_every_pair_of_hosts_in_two_racks_has_one_counting_rule_at_the_senders_switch():
    tables = Network(GRAPH, "gff", 1).tables()
    for switch in GRAPH.switches:
        rules = [rule for rule in tables[switch.dpid].flows if rule.priority == PAIR_PRIORITY]
        assert len(rules) == (2 * 14 if switch.role == "edge" else 0)
    assert all(rule.priority != PAIR_PRIORITY for rule in Network(GRAPH, "ecmp", 1).tables()[0x10000].flows)


@given(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1), st.integers(0, 2**64 - 1), st.booleans())
def test_counts_are_read_from_descriptions(source, destination, count, masked):
    """As Open vSwitch (no masks on whole addresses) and as others (masks of all ones) write them."""
    fields = struct.pack("!HBBH", 0x8000, 5 << 1, 2, 0x0800)
    for number, address in ((11, source), (12, destination)):
        value = struct.pack("!I", address) + (b"\xff" * 4 if masked else b"")
        fields += struct.pack("!HBB", 0x8000, number << 1 | masked, len(value)) + value
    match = struct.pack("!HH", 1, 4 + len(fields)) + fields
    stats = struct.pack("!HBBQHBBQ", 0x8002, 4 << 1, 8, 7, 0x8002, 5 << 1, 8, count)
    stats = struct.pack("!HH", 0, 4 + len(stats)) + stats
    body = match + b"\0" * (-len(match) % 8) + stats + b"\0" * (-len(stats) % 8)
    described = struct.pack("!H2xBxHHHHHQ", 24 + len(body), 0, PAIR_PRIORITY, 0, 0, 0, 0, 0) + body
    a, b = (".".join(map(str, address.to_bytes(4, "big"))) for address in (source, destination))
    assert pair_bytes([described]) == {(a, b): 0 if count == 2**64 - 1 else count}
