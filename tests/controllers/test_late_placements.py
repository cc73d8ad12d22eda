"""New paths for elephants that come while other tables are going out are put in force all the same."""
from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from os_ken.base import app_manager  # noqa: F401  (os-ken's modules import each other; only this order works)
from os_ken.ofproto import ofproto_v1_5 as ofproto
from os_ken.ofproto import ofproto_v1_5_parser as parser

from controllers import control
from controllers.ledger import Ledger
from controllers.network import Network
from controllers.scheduling.paths import PathLists
from topologies.catalog import resolve_topology

GRAPH = resolve_topology("leaf-spine:leaves=2,spines=3,hosts=1")
START = Network(GRAPH, "gff", 1)
PAIR = ("h1", "h2")


class Switch(SimpleNamespace):
    """The controller's side of a connection; `said` is what it was sent."""

    def __init__(self, dpid: int) -> None:
        super().__init__(id=dpid, ofproto=ofproto, ofproto_parser=parser, said=[])

    def set_xid(self, message) -> int:
        return len(self.said)

    def send_msg(self, message) -> None:
        self.said.append(message)


@pytest.fixture
def controller(tmp_path: Path):
    """A controller whose switches hold their tables."""
    elephants = SimpleNamespace(start=lambda look: None, loop=SimpleNamespace(summary=dict))
    made = control.Controller(ledger=Ledger(GRAPH, START.tables()), network=START, elephants=elephants,
                              drained=tmp_path / "drained")
    made._begun = made._adopted = True
    for dpid, tables in START.tables().items():
        made.live[dpid] = Switch(dpid)
        made.rollout.holds(dpid, tables)
    return made


def placed(network: Network, number: int) -> Network:
    """PAIR over one of the paths that there are."""
    return network.with_placed({PAIR: PathLists(network.live).of(*PAIR)[number]})


def fail(made, spine: str) -> None:
    """A port of a spine goes down, and the controller plans anew."""
    made._port(GRAPH.switch[spine].dpid, 1, False, 1.0)
    made.on_replan(None)
    assert made.rollout.waiting


def confirm_all(made) -> None:
    """Every barrier comes back, until none is under way."""
    for _ in range(10):
        for switch in made.live.values():
            made.on_barrier(SimpleNamespace(msg=SimpleNamespace(datapath=switch)))
        if not made.rollout.waiting:
            return
    raise AssertionError("it never comes to rest")


def all_hold(made, network: Network) -> bool:
    return made.rollout.target == network.tables() and not any(map(made.rollout.changes_for, made.live))


@pytest.mark.parametrize("confirmed", [False, True], ids=["before any switch", "after some switches"])
def test_paths_that_come_during_a_repair(controller, confirmed) -> None:
    fail(controller, "s1")
    if confirmed:
        controller.on_barrier(SimpleNamespace(msg=SimpleNamespace(datapath=next(
            switch for dpid, switch in controller.live.items() if controller.rollout.owes(dpid)))))
    wanted = placed(controller.network, 1)
    controller._place(wanted)
    confirm_all(controller)
    assert all_hold(controller, wanted) and controller.ledger.settled


def test_paths_that_come_before_the_planning_of_a_repair_go_with_it(controller) -> None:
    controller._port(GRAPH.switch["s1"].dpid, 1, False, 1.0)
    wanted = placed(controller.network, 1)
    controller._place(wanted)
    assert not controller.rollout.waiting, "tables of the dead port are not to go out first"
    controller.on_replan(None)
    confirm_all(controller)
    assert all_hold(controller, wanted)


def test_paths_that_come_between_two_repairs(controller) -> None:
    fail(controller, "s1")
    controller._place(placed(controller.network, 0))
    fail(controller, "s2")
    confirm_all(controller)
    assert controller.network.placed and all_hold(controller, controller.network)


def test_paths_that_come_at_rest_go_out_at_once(controller) -> None:
    wanted = placed(controller.network, 2)
    controller._place(wanted)
    assert controller.rollout.waiting
    confirm_all(controller)
    assert all_hold(controller, wanted)
    controller._place(None)
    assert not controller.rollout.waiting
