"""What a user may hand in as a topology, and the sentence for everything that cannot be."""
from __future__ import annotations

import sys

import networkx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mininet.topo import Topo

from emulator.errors import BadInput, MachineLacks
from topologies.catalog import resolve_topology
from topologies.from_mininet import graph_from_topo


def built(build) -> Topo:
    topo = Topo()
    build(topo)
    return topo


def pair(topo: Topo, **link) -> None:
    """Two hosts on a switch."""
    topo.addSwitch("s1")
    for name in ("h1", "h2"):
        topo.addLink(topo.addHost(name), "s1", **link)


@pytest.mark.parametrize("text, says", [
    ("fat-tree:k=3", "even k"), ("fat-tree:k=0", "k: 0 is outside 2 to 16"), ("fat-tree:k=18", "outside"),
    ("fat-tree:k=-4", "outside"), ("fat-tree:k=1000000000", "outside"),
    ("fat-tree:k=4.0", "not a whole number"),
    ("fat-tree:k=", "key=value"), ("fat-tree:k=4,k=4", "twice"), ("fat-tree:hosts=4", 'no parameter "hosts"'),
    ("fattree:k=4", 'did you mean "fat-tree"'), ("leafspine", 'did you mean "leaf-spine"'),
    ("leaf-spine:leaves=1", "leaves: 1 is outside"), ("leaf-spine:hosts=251", "outside"),
    ("leaf-spine:leaves=255,hosts=250", "63750 hosts"), ("leaf-spine:oversubscription=0", "outside"),
    ("leaf-spine:oversubscription=nan", "outside"),
    ("leaf-spine:oversubscription=x", "not a valid value"),
    ("dragonfly:g=4", "do not divide evenly"),
    ("dragonfly:p=250,a=4,h=2,g=9", "more than 2048"), ("clos3:cores=0", "cores: 0 is outside"),
    ("star:hosts=1", "outside"), ("star:hosts=1000000000", "outside"), ("", "no name"), (":k=4", "no name")])
def test_bad_specs_get_one_sentence(text, says):
    with pytest.raises(BadInput) as caught:
        resolve_topology(text)
    assert says in str(caught.value) and "\n" not in str(caught.value)


USER_FILE = '''
from dataclasses import dataclass
from mininet.topo import Topo
@dataclass
class Plan:
    n: int
class Chain(Topo):
    def build(self, n=3):
        for i in range(1, Plan(n).n + 1):
            self.addLink(self.addHost(f"h{i}"), self.addSwitch(f"s{i}"), bw=10)
            if i > 1:
                self.addLink(f"s{i - 1}", f"s{i}", bw=40)
class Broken(Topo):
    def build(self):
        raise RuntimeError("no such rack")
class Leaves(Topo):
    def build(self):
        raise SystemExit(1)
limit = 3
topos = {"chain": Chain, "long": lambda n=5: Chain(n), "odd": lambda: 7}
'''


def test_a_users_class_becomes_a_graph(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(USER_FILE)
    assert len(resolve_topology(f"{path}:Chain").hosts) == 3
    assert len(resolve_topology(f"{path}:Chain:n=4").switches) == 4
    assert len(resolve_topology(f"{path}:long").hosts) == 5
    graph = resolve_topology(f"{path}:chain:n=2")
    assert [link.speed for link in graph.links] == [1.0, 1.0, 4.0]
    assert [host.ip for host in graph.hosts] == ["10.0.0.1", "10.0.0.2"]
    assert {switch.tier for switch in graph.switches} == {0}
    assert list(tmp_path.iterdir()) == [path], "running a user's file must leave no bytecode beside it"


@pytest.mark.parametrize("rest, says", [
    (":Chian", 'did you mean "Chain"'), (":limit", "not a Mininet Topo class"),
    (":Plan", "not a Mininet Topo class"), (":Broken", "no such rack"), (":Broken", ":15:"),
    (":Leaves", "SystemExit"), (":odd", "makes a int"), ("", "needs the name"), (":", "needs the name"),
    (":Chain:m=3", "unexpected keyword"), (":Chain:n", "key=value")])
def test_a_users_mistakes_get_one_sentence(tmp_path, rest, says):
    path = tmp_path / "mine.py"
    path.write_text(USER_FILE)
    with pytest.raises(BadInput) as caught:
        resolve_topology(f"{path}{rest}")
    assert says in str(caught.value)


def test_files_that_cannot_be_read_or_run(tmp_path):
    (tmp_path / "folder.py").mkdir()
    (tmp_path / "syntax.py").write_text("def (:\n")
    (tmp_path / "binary.py").write_bytes(b"\x00\x01\xff")
    (tmp_path / "empty.py").write_text("")
    for name, says in (("none", "does not exist"), ("folder", "cannot be read"), ("syntax", "syntax.py:1"),
                       ("binary", "failed"), ("empty", "no Topo class")):
        with pytest.raises(BadInput, match=says):
            resolve_topology(f"{tmp_path / name}.py:Topology")


def test_without_mininet_the_way_out_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "mininet.topo", None)
    with pytest.raises(MachineLacks, match="apt-get install mininet"):
        resolve_topology("star:hosts=2")


def two_racks(topo: Topo, links: int = 1) -> None:
    for n in (1, 2):
        topo.addLink(topo.addHost(f"h{n}"), topo.addSwitch(f"s{n}"))
    for _ in range(links):
        topo.addLink("s1", "s2")


@pytest.mark.parametrize("build, says", [
    (lambda t: None, "0 hosts"),
    (lambda t: (t.addHost("h1"), t.addHost("h2")), "no switch"),
    (lambda t: two_racks(t, links=0), "2 parts"),
    (lambda t: (two_racks(t), t.addHost("h3")), "has 0 links"),
    (lambda t: (two_racks(t), t.addLink("h1", "s2")), "has 2 links"),
    (lambda t: (t.addSwitch("s1"), t.addLink(t.addHost("h1"), t.addHost("h2"))), "hangs on a switch"),
    (lambda t: (two_racks(t), t.addLink("s1", "s1")), "itself|two links"),
    (lambda t: (two_racks(t), t.addSwitch("s3", dpid="1"), t.addSwitch("s4", dpid="01"),
                t.addLink("s3", "s4"), t.addLink("s3", "s1")), "datapath id 0000000000000001 is used twice"),
    (lambda t: (two_racks(t), t.addLink("s1", t.addSwitch("s3", dpid="xyz"))), "hexadecimal"),
    (lambda t: (two_racks(t), t.addLink("s1", t.addSwitch("s3", dpid="0"))), "not zero"),
    (lambda t: (pair(t), t.addLink(t.addHost("h3", ip="10.0.0.1"), "s1")), "10.0.0.1 is used twice"),
    (lambda t: (pair(t), t.addLink(t.addHost("h3", ip="10.255.255.254/8"), "s1")), "is used twice"),
    (lambda t: (pair(t), t.addLink(t.addHost("h3", ip="ten"), "s1")), "not an IPv4 address"),
    (lambda t: (pair(t), t.addLink(t.addHost("h3", ip="192.168.0.1/24"), "s1")), "hosts live in 10.0.0.0/8"),
    (lambda t: (pair(t), t.addLink(t.addHost("h3", mac="01:00:00:00:00:03"), "s1")), "single station"),
    (lambda t: (pair(t), t.addLink(t.addHost("averylonghostname"), "s1")), "has 22 characters"),
    (lambda t: (pair(t), t.addLink(t.addHost("a b"), "s1")), "cannot become part of an interface name"),
    (lambda t: (pair(t), t.addLink(t.addHost("h3"), "s1", port2=1)), "port 1 of s1 has two links"),
    (lambda t: (pair(t), t.addLink(t.addHost("h3"), "s1", port2=70000)), "ports go from 1"),
    (lambda t: pair(t, delay="5ms"), "sets delay='5ms'"),
    (lambda t: (pair(t), t.addLink(t.addHost("h3", cpu=0.5), "s1")), "sets cpu"),
    (lambda t: pair(t, speed=0), "0 times"), (lambda t: pair(t, speed="fast"), "not a positive number"),
    (lambda t: pair(t, speed=float("nan")), "nan times"), (lambda t: pair(t, bw=0), "not a positive number"),
    (lambda t: (pair(t, bw=10), t.addLink("s1", t.addSwitch("s2"))), "every link needs it"),
    (lambda t: (pair(t), t.addLink("s1", t.addSwitch("s2", tier=-1))), "tier=-1"),
    (lambda t: (pair(t), t.addLink("s1", t.addSwitch("s2", pod="x"))), "pod='x'")])
def test_what_no_fabric_can_be_is_refused(build, says):
    with pytest.raises(BadInput, match=says):
        graph_from_topo(built(build), "mine")


def test_parallel_links_are_kept_apart():
    graph = graph_from_topo(built(lambda topo: two_racks(topo, links=3)), "mine")
    assert len(graph.links) == 5
    assert sorted(graph.neighbours["s1"]) == [1, 2, 3, 4]
    assert graph.networkx.number_of_edges("s1", "s2") == 3


def test_datapath_ids_do_not_come_from_digits_in_names():
    def build(topo: Topo) -> None:
        topo.addLink(topo.addHost("h1"), topo.addSwitch("P0A0"))
        topo.addLink(topo.addHost("h2"), topo.addSwitch("P0E0"))
        topo.addLink("P0A0", topo.addSwitch("P0C0", dpid="2"))
        topo.addLink("P0E0", "P0C0")

    graph = graph_from_topo(built(build), "mine")
    assert {switch.name: switch.dpid for switch in graph.switches} == {"P0A0": 1, "P0E0": 3, "P0C0": 2}
    assert graph.switch["P0C0"].tier == 1
    assert {link.tier for link in graph.links} == {"host-edge", "edge-aggregation"}


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 12))
def test_tiers_are_distances_and_every_link_survives(seed, size):
    """Any connected switch graph with hosts on some switches."""
    wires = networkx.gnp_random_graph(size, 0.3, seed=seed)
    wires.add_edges_from(networkx.path_graph(size).edges)
    racks = [n for n in range(size) if (seed >> n) & 1] or [0]
    topo = Topo()
    for n in wires:
        topo.addSwitch(f"x{n}")
    for i, rack in enumerate([*racks, racks[0]]):
        topo.addLink(topo.addHost(f"h{i}"), f"x{rack}")
    for a, b in wires.edges:
        topo.addLink(f"x{a}", f"x{b}")
    graph = graph_from_topo(topo, "random")
    assert len(graph.links) == wires.number_of_edges() + len(racks) + 1
    distance = networkx.multi_source_dijkstra_path_length(wires, set(racks))
    tiers = {switch.name: switch.tier for switch in graph.switches}
    assert tiers == {f"x{n}": d for n, d in distance.items()}
    order = {switch.name: i for i, switch in enumerate(graph.switches)}
    assert all(link.a in graph.host or order[link.a] < order[link.b] for link in graph.links)
