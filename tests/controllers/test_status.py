"""The view from outside: which run is meant, and what is shown of it."""
from __future__ import annotations

import io
from dataclasses import replace

import pytest
from os_ken.base import app_manager  # noqa: F401  (os-ken's modules import each other; only this order works)

from controllers import answers
from controllers.ledger import Ledger
from controllers.network import Network
from controllers.status import Running, chosen, describe, main
from emulator.errors import BadInput, MachineLacks
from emulator.report.tables import show
from topologies.catalog import resolve_topology
from topologies.graph import Link

RUNS = [Running(11, "/tmp/a"), Running(12, "/tmp/b")]
GRAPH = resolve_topology("leaf-spine:leaves=2,spines=2,hosts=1")


def test_which_run_is_meant():
    assert chosen(RUNS[:1], None) == RUNS[0] and chosen(RUNS, 12) == RUNS[1]
    with pytest.raises(BadInput, match=r"choose one with --run PID: 11 \(/tmp/a\), 12 \(/tmp/b\)"):
        chosen(RUNS, None)
    with pytest.raises(BadInput, match="there is no run 13"):
        chosen(RUNS, 13)
    with pytest.raises(MachineLacks, match="no run is going on"):
        chosen([], None)


def test_slips_on_the_command_line_are_one_sentence(capsys):
    assert main(["drain"]) == 2 and "drain l1-s1" in capsys.readouterr().err
    assert main(["mend", "l1"]) == 2 and capsys.readouterr().err.count("\n") == 1


def test_links_show_their_state_and_load():
    ledger = Ledger(GRAPH, Network(GRAPH, "ecmp", 1).tables())
    ledger.connected(GRAPH.switch["l1"].dpid, "1.5")
    ledger.port(GRAPH.switch["l1"].dpid, 2, False)
    ledger.drained(["l2-s2"])
    ledger.repaired({"began_s": 1.0, "done_s": 1.02, "switches": 2, "changes": 5, "avoided": ["l1-s1"]})
    links = [{"link": f"{link.a}-{link.b}", "tier": link.tier, "a": link.a, "a_port": link.a_port, "b": link.b,
              "b_port": link.b_port, "speed": link.speed} for link in GRAPH.links]
    traffic = [[None, 1e6] for _ in links]
    out = io.StringIO()
    show(describe({**ledger.summary(), "now_s": 3.0, "traffic": traffic,
                   "topology": {"name": "leaf-spine", "hosts": 2, "links": links}}), out)
    lines = {line.split()[0]: line.split() for line in out.getvalue().splitlines() if line.split()}
    assert lines["l1-s1"][2] == "down" and lines["l2-s2"][2] == "drained" and lines["l2-s1"][2] == "up"
    assert lines["l2-s1"][3:] == ["-", "1", "Mb/s"]
    assert lines["2.0"] == ["2.0", "s", "ago", "20.0", "ms", "2", "5", "l1-s1"]


def test_each_of_two_parallel_links_shows_its_own_load(monkeypatch):
    graph = replace(GRAPH, links=(*GRAPH.links, Link(len(GRAPH.links), "l1", 8, "s1", 9, 1.0, "leaf-spine")))
    first = next(link for link in graph.links if (link.a, link.b) == ("l1", "s1"))
    sent_bytes = {("l1", first.a_port): 10**6, ("l1", 8): 3 * 10**6, ("s1", first.b_port): 5 * 10**6, ("s1", 9): 0}
    counted = [{graph.switch[name].dpid: (float(second), {
        port: (0, second * sent_bytes.get((name, port), 0)) for port in graph.neighbours[name]})
        for name in ("l1", "s1")} for second in (0, 1)]
    monkeypatch.setattr(answers, "_sent", lambda ledger: counted.pop(0))
    ledger = Ledger(graph, Network(graph, "ecmp", 1).tables())
    status = answers._answered({"ask": "status"}, ledger, graph) | {"now_s": 0.0}
    assert status["traffic"][first.index] == [8e6, 40e6] and status["traffic"][-1] == [24e6, 0.0]
    out = io.StringIO()
    show(describe(status), out)
    loads = [line.split()[3:] for line in out.getvalue().splitlines() if line.split()[:1] == ["l1-s1"]]
    assert loads == [["8", "Mb/s", "40", "Mb/s"], ["24", "Mb/s", "0", "b/s"]]
