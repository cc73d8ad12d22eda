"""Events in real runs: what is promised of them holds, and the verdict stands."""
from __future__ import annotations

import json
import shutil

import pytest

from tests.commands import finish, measure

pytestmark = pytest.mark.root
FABRIC = ("--topology", "leaf-spine:leaves=2,spines=2,hosts=2", "--rate", "3mbit")


def happened(summary: dict) -> dict[str, dict]:
    return {each["event"]: each for each in summary["events"]["happened"]}


@pytest.fixture(scope="module")
def bpf(tmp_path_factory):
    out = tmp_path_factory.mktemp("bundle")
    summary = measure(out, *FABRIC, "--switch", "bpf", "--workload", "pattern:stride=2,bytes=1500kB",
                      "--event", "1s link l1-s1 down", "--event", "2s link l1-s1 up",
                      "--event", "3s drain s2", "--event", "3500ms undrain s2", "--event", "4s drain l2-s2",
                      "--event", "5s controller down", "--event", "6s controller up")
    return summary, json.loads((out / "timeline.json").read_text())["traceEvents"]


def test_a_switch_goes_around_its_dead_port_by_itself_and_the_controller_follows(bpf):
    summary, _ = bpf
    down = happened(summary)["1s link l1-s1 down"]
    assert 0 <= down["local_s"] < 0.5 and down["rerouted_packets"] > 0
    assert down["detected_s"] is not None and down["repaired_s"] >= down["detected_s"] and down["changes"] > 0
    assert set(down["lost"]) <= {"link down", "port down", "no live bucket"}, "another cause than the failure"
    assert happened(summary)["2s link l1-s1 up"]["lost_packets"] == 0


def test_draining_loses_nothing_and_all_is_as_before_afterwards(bpf):
    summary, _ = bpf
    for text in ("3s drain s2", "3500ms undrain s2", "4s drain l2-s2"):
        event = happened(summary)[text]
        assert (event["lost_packets"], event["refused"]) == (0, "") and event["repaired_s"] is not None


def test_packets_flow_on_without_a_controller_which_then_finds_nothing_to_do(bpf):
    """A drained link is none of its business either: it knows that it was drained."""
    summary, _ = bpf
    down, up = (happened(summary)[f"{text}"] for text in ("5s controller down", "6s controller up"))
    assert down["lost_packets"] == up["lost_packets"] == 0
    assert up["repaired_s"] is not None and up["changes"] == 0


def test_the_timeline_has_a_mark_for_each_thing_that_followed(bpf):
    _, trace = bpf
    marks = [event["name"] for event in trace if event.get("ph") == "i"]
    for words in ("event: 1s link l1-s1 down", "local repair after 1s link l1-s1 down",
                  "the controller repaired after 1s link l1-s1 down"):
        assert words in marks


@pytest.mark.long
def test_a_link_that_stays_dead_degrades_or_loses_is_no_fault_of_the_emulation(tmp_path):
    summary = measure(tmp_path, *FABRIC, "--switch", "bpf", "--workload", "pattern:stride=2,bytes=500kB",
                      "--event", "phase=stride+300ms loss l1-s2 2e-6", "--event", "iteration=1+500ms degrade l1-s2 50%",
                      "--event", "1s link l2-s1 down", "--event", "50s link l2-s1 up")
    events = happened(summary)
    assert sum(event["lost"].get("wire loss", 0) for event in events.values()) > 0
    assert summary["events"]["missed"] == ["50s link l2-s1 up"]
    assert "1s link l2-s1 down" in events


@pytest.mark.long
@pytest.mark.skipif(not shutil.which("ovs-vswitchd"), reason="needs Open vSwitch")
def test_open_vswitch_heals_too_and_its_controller_adopts(tmp_path):
    summary = measure(tmp_path, "--topology", "leaf-spine:leaves=2,spines=2,hosts=1", "--rate", "500kbit",
                      "--switch", "ovs", "--workload", "pattern:stride=1,bytes=250kB",
                      "--event", "1s link l1-s1 down", "--event", "2s link l1-s1 up",
                      "--event", "2500ms controller down", "--event", "3200ms controller up")
    events = happened(summary)
    assert events["1s link l1-s1 down"]["repaired_s"] is not None
    assert events["3200ms controller up"]["changes"] == 0
    assert not summary["events"]["counted"]


def test_an_event_that_cannot_be_starts_nothing(tmp_path):
    status, _, said = finish(*FABRIC, "--workload", "pattern:stride=2", "--event", "1s link l1-s7 down",
                             "--out", tmp_path / "none")
    assert status == 2 and said.count("\n") == 1 and "l1-s7" in said and not (tmp_path / "none").exists()
