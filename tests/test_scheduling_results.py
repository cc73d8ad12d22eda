"""The summary's block on what the controller moved, and the report's line, without a run."""
from __future__ import annotations

import io
from types import SimpleNamespace

import pytest

from controllers.process import ControllerState
from controllers.routing import parse_routing, scheduling_of
from controllers.status import MOVES_SHOWN, describe
from emulator.errors import BadInput
from emulator.events.conductor import Conductor
from emulator.outcome import Outcome
from emulator.report.scheduling import scheduling
from emulator.report.tables import show
from emulator.results.routing import scheduled


def books(periods, placed, moved, back, moves):
    return {"scheduler": "sa", "period_s": 0.2, "threshold": 0.1, "hysteresis": 0.1, "elephants_most": 16,
            "periods": periods, "placed": placed, "moved": moved, "moved_back": back, "released": 0, "moves": moves}


MOVE = {"source": "h1", "destination": "h9", "what": "placed", "over": ["e0_0"]}


def test_what_happened_before_the_replay_does_not_count():
    before = books(9, 2, 1, 1, [{**MOVE, "time_s": 99.0}])
    after = books(30, 18, 5, 2, [{**MOVE, "time_s": 99.0}, {**MOVE, "time_s": 100.25}])
    block = scheduled(Outcome(started_s=100.0, ended_s=108.0, scheduling=(before, (after,))))
    assert (block["periods"], block["placed"], block["moved"], block["moved_back"]) == (21, 16, 4, 1)
    assert block["moves_per_s"] == 0.5 and [move["time_s"] for move in block["moves"]] == [0.25]
    line, = scheduling({"routing": block})
    assert "16 pairs given a path, the first 250 ms after the start; 4 moved to another (0.5 a second), 1 of" in line


def test_controllers_that_started_anew_have_new_books_and_all_count():
    """Whether the last one saw fewer periods than there were before the replay, or more."""
    early, late = ({**MOVE, "time_s": second} for second in (99.0, 101.0))
    first, before = books(60, 24, 4, 1, [early, late]), books(50, 8, 3, 0, [early])
    for periods in (20, 80):
        again = books(periods, 16, 1, 0, [{**MOVE, "time_s": 104.0}])
        block = scheduled(Outcome(started_s=100.0, ended_s=108.0, scheduling=(before, (first, again))))
        assert (block["periods"], block["placed"], block["moved"]) == (10 + periods, 32, 2)
        assert [move["time_s"] for move in block["moves"]] == [1.0, 4.0]


def test_what_a_controller_did_that_never_came_back_counts():
    before, last = books(5, 0, 0, 0, []), books(15, 16, 0, 0, [{**MOVE, "time_s": 101.0}] * 16)
    conductor = Conductor.__new__(Conductor)
    conductor._port_events, conductor._repairs, conductor._adoptions = [], [], []
    conductor._packet_ins, conductor._scheduling = 0, []
    conductor._controller = SimpleNamespace(kill=lambda: None, state=lambda: ControllerState(
        True, {}, (), (), 0, (), scheduling=last))
    conductor._control(up=False)
    block = scheduled(Outcome(started_s=100.0, ended_s=108.0, scheduling=(before, conductor.scheduling)))
    assert block["placed"] == len(block["moves"]) == 16 and block["periods"] == 10


def test_nothing_where_the_controller_moves_nothing():
    assert scheduled(Outcome()) is None and scheduling({"routing": None}) == []


@pytest.mark.parametrize("text, method, scheduler", [
    ("adaptive", "least-queue", None), ("adaptive:scope=local", "least-queue", None), ("ecmp", "hash", None),
    ("gff", "hash", "gff"), ("sa:period=1s", "hash", "sa"), ("adaptive:scope=global", "hash", "gff"),
    ("adaptive:scope=both,scheduler=least-congested", "least-queue", "least-congested"), ("wcmp", "hash", None)])
def test_who_chooses(text, method, scheduler):
    assert parse_routing(text)[0].method == method
    found = scheduling_of(text)
    assert (found and found.scheduler) == scheduler


@pytest.mark.parametrize("text, words", [
    ("adaptive:scope=wide", 'scope: there is no "wide"'), ("gff:period=1ms", "outside 0.05s to 3600s"),
    ("adaptive:period=1s", "period is for scope=global"), ("sa:threshold=0", "outside 0 to 1"),
    ("adaptive:scope=global,scheduler=greedy", 'there is no "greedy"'), ("gff:hysteresis=x", "hysteresis")])
def test_slips(text, words):
    with pytest.raises(BadInput, match=words):
        parse_routing(text)


def test_the_status_shows_the_latest_moves_first():
    moves = [{**MOVE, "time_s": float(second), "source": f"h{second}"} for second in range(1, 31)]
    status = {"topology": {"name": "x", "hosts": 2, "links": []}, "switches": {}, "traffic": [], "repairs": [],
              "errors": [], "drained": [], "now_s": 31.0, "scheduling": books(30, 18, 5, 2, moves)}
    said = io.StringIO()
    show(describe(status), said)
    lines = said.getvalue().splitlines()
    shown = [line for line in lines if " to h9" in line]
    assert any("18 placed, 5 moved, 2 of them back" in line for line in lines)
    assert len(shown) == MOVES_SHOWN and shown[0].split()[:6] == ["1.0", "s", "ago", "h30", "to", "h9"]
