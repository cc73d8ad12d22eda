"""A drained link stays drained when the controller is killed and comes back."""
from __future__ import annotations

import socket
import time
from pathlib import Path

import pytest

from controllers.drains import keep, kept
from controllers.process import ControllerProcess, ask, start_controller
from topologies.catalog import resolve_topology

GRAPH = resolve_topology("leaf-spine:leaves=2,spines=2,hosts=1")


def test_what_is_kept_is_read_and_nothing_was_kept_at_first(tmp_path: Path) -> None:
    path = tmp_path / "controller.drained"
    assert kept(path) == frozenset()
    for links in ({3, 1}, set()):
        keep(path, links)
        assert kept(path) == links


def books(run_dir: Path, controller: ControllerProcess) -> dict:
    """Once it answers; within 20 s."""
    end_s = time.monotonic() + 20
    while not (run_dir / "controller.sock").exists():
        assert controller.running and time.monotonic() < end_s, controller.log.read_text()
        time.sleep(0.05)
    return ask(run_dir / "controller.sock", {}, 10.0)


@pytest.fixture
def port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def test_a_controller_that_returns_leaves_out_what_was_drained(tmp_path: Path, port: int) -> None:
    """Without switches: what they are to hold is worked out before they come."""
    with start_controller(GRAPH, "ecmp", 1, tmp_path, port) as controller:
        groups = {name: each["groups_expected"] for name, each in books(tmp_path, controller)["switches"].items()}
        assert controller.order({"ask": "drain", "name": "s2"}, 30.0) == ""
        assert controller.order({"ask": "undrain", "name": "l2-s2"}, 30.0) == ""
        controller.kill()
        controller.restart()
        found = books(tmp_path, controller)
        assert found["drained"] == ["l1-s2"]
        now = {name: each["groups_expected"] for name, each in found["switches"].items()}
        assert groups["l1"] == groups["l2"] == 1 and now["l1"] == now["l2"] == 0
    with start_controller(GRAPH, "ecmp", 1, tmp_path, port) as controller:
        assert books(tmp_path, controller)["drained"] == [], "another run in the same directory"
