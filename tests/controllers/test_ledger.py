"""The controller's books: when a fabric is ready, and what is said while it is not."""
from __future__ import annotations

import json
from itertools import permutations

import pytest

from controllers.ledger import ERRORS_KEPT, Ledger
from controllers.process import ControllerState
from controllers.routing import plan_tables
from topologies.catalog import resolve_topology

GRAPH = resolve_topology("leaf-spine:leaves=2,spines=2,hosts=1")
TABLES = plan_tables(GRAPH, "ecmp", 1)


def state(ledger: Ledger) -> ControllerState:
    summary = json.loads(json.dumps(ledger.summary()))
    return ControllerState(summary["ready"], summary["switches"], tuple(summary["errors"]), (),
                           summary["packet_ins"], tuple(summary["port_events"]))


def steps(ledger: Ledger, name: str) -> list:
    """All that must happen at one switch after it has connected."""
    dpid = GRAPH.switch[name].dpid
    return [lambda: ledger.barrier(dpid), lambda: ledger.rules_counted(dpid, len(TABLES[dpid].flows)),
            lambda: ledger.groups_counted(dpid, len(TABLES[dpid].groups)),
            lambda: [ledger.port(dpid, port, True) for port in GRAPH.neighbours[name]]]


def complete(ledger: Ledger, names) -> None:
    for name in names:
        ledger.connected(GRAPH.switch[name].dpid, "1.5")
        for step in steps(ledger, name):
            step()


@pytest.mark.parametrize("order", list(permutations(range(4))))
def test_ready_only_after_every_step_in_whatever_order(order):
    ledger = Ledger(GRAPH, TABLES)
    complete(ledger, ["l1", "s1", "s2"])
    ledger.connected(GRAPH.switch["l2"].dpid, "1.5")
    remaining = steps(ledger, "l2")
    for i in order:
        assert not state(ledger).ready and len(state(ledger).unready) == 1
        remaining[i]()
    assert state(ledger).ready and not state(ledger).unready


def test_what_is_amiss_is_said_of_each_switch():
    ledger = Ledger(GRAPH, TABLES)
    l1 = GRAPH.switch["l1"].dpid
    assert "l1 (never connected)" in state(ledger).unready
    ledger.connected(l1, "1.5")
    assert "l1 (has not confirmed its tables)" in state(ledger).unready
    ledger.barrier(l1)
    assert "l1 (has no port 1, 2, 3)" in state(ledger).unready
    for port in (1, 2, 3):
        ledger.port(l1, port, True)
    ledger.rules_counted(l1, 3)
    assert "l1 (holds 3 of 3 rules, None of 1 groups)" in state(ledger).unready
    ledger.disconnected(l1)
    assert "l1 (disconnected)" in state(ledger).unready


def test_wrong_counts_are_errors_and_never_ready():
    ledger = Ledger(GRAPH, TABLES)
    complete(ledger, GRAPH.switch)
    ledger.rules_counted(GRAPH.switch["s1"].dpid, 1)
    ledger.groups_counted(GRAPH.switch["l1"].dpid, 0)
    assert not ledger.summary()["ready"]
    assert [error["sentence"] for error in ledger.summary()["errors"]] == [
        "switch s1 holds 1 rules instead of 3.", "switch l1 holds 0 groups instead of 1."]


def test_a_switch_that_comes_back_must_be_read_back_again():
    ledger = Ledger(GRAPH, TABLES)
    complete(ledger, GRAPH.switch)
    ledger.disconnected(GRAPH.switch["l1"].dpid)
    assert not state(ledger).ready
    ledger.connected(GRAPH.switch["l1"].dpid, "1.5")
    assert not state(ledger).ready and state(ledger).switches["l1"]["connections"] == 2
    for step in steps(ledger, "l1"):
        step()
    assert state(ledger).ready


def test_ports_that_go_down_are_kept_with_their_time():
    ledger = Ledger(GRAPH, TABLES)
    complete(ledger, GRAPH.switch)
    l1 = GRAPH.switch["l1"].dpid
    ledger.port(l1, 2, False, time_s=12.5)
    ledger.port(l1, 65534, False, time_s=13.0)  # the bridge's own port is nobody's link
    seen = state(ledger)
    assert seen.ready and seen.switches["l1"]["ports_down"] == [2]
    assert seen.port_events == ({"time_s": 12.5, "switch": "l1", "port": 2, "up": False},)
    ledger.port(l1, 2, None, time_s=14.0)
    assert state(ledger).switches["l1"]["ports_missing"] == [2] and not state(ledger).ready


def test_a_flood_of_errors_is_counted_but_not_all_kept():
    ledger = Ledger(GRAPH, TABLES)
    for i in range(ERRORS_KEPT + 50):
        ledger.error(f"error {i}", lacks=i == 0)
    summary = ledger.summary()
    assert summary["error_count"] == ERRORS_KEPT + 50 and len(summary["errors"]) == ERRORS_KEPT
    assert summary["errors"][0] == {"sentence": "error 0", "lacks": True}
    assert not summary["ready"]
