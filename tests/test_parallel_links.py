"""Two links between the same switches: each connection is judged by the one that it crosses."""
from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from emulator.fidelity import judge
from emulator.observe import observe
from emulator.plan import Plan
from emulator.results import flows
from emulator.results.linkbytes import link_bytes
from tests.outcomes import outcome, plan

TOPO = """
from mininet.topo import Topo

class TwoLinks(Topo):
    def build(self):
        for leaf in "s1", "s2":
            self.addSwitch(leaf)
        for host, leaf in (("h1", "s1"), ("h2", "s2")):
            self.addHost(host)
            self.addLink(host, leaf)
        self.addLink("s1", "s2")
        self.addLink("s1", "s2", speed=0.5)
"""


@pytest.fixture
def made(tmp_path: Path) -> Plan:
    (tmp_path / "two.py").write_text(TOPO)
    return plan(topology=f"{tmp_path}/two.py:TwoLinks", workload="pattern:pair=0-1,bytes=1MB", rate="1mbit")


def over(made: Plan, number: int):
    """A run whose data went over one of the two links, with a queue of 20 frames there; its acknowledgements
    came back over the other one. Round trips are what that queue makes them."""
    brought = outcome(made)
    data, other = [link for link in made.graph.links if {link.a, link.b} == {"s1", "s2"}][::1 - 2 * number]
    key = brought.engine.connections[0].key
    way, back = ("h1-eth0", f"s1-eth{data.a_port}", "s2-eth1"), ("h2-eth0", f"s2-eth{other.b_port}", "s1-eth1")
    waits_s = 20 * 8 * made.wire.frame_bytes / made.wire.link_rate_bps(data)
    path = [made.graph.links[brought.port[name].link] for name in way]
    base_s = made.wire.one_way_s(path, made.wire.payload_bytes) + made.wire.ack_s(path)
    trips = tuple(base_s + waits_s + 1e-6 * (number % 2) for number in range(5000))
    connection = replace(brought.engine.connections[0], rtt_samples_s=trips)
    series = []
    for part in brought.recording.series:
        backlog = part.backlog_bytes.copy()
        for column, port in enumerate(part.ports):
            backlog[:, column] = 20 * made.wire.frame_bytes * (port.name == way[1])
        series.append(replace(part, backlog_bytes=backlog))
    return way, back, replace(
        brought, engine=replace(brought.engine, connections=[connection]), paths={key: way},
        return_paths={key: back}, recording=replace(brought.recording, series=tuple(series)))


@pytest.mark.parametrize("number", [0, 1])
def test_the_law_of_little_is_asked_of_the_link_that_was_crossed(made: Plan, number: int) -> None:
    way, back, brought = over(made, number)
    seen = observe(made, brought)
    path, = seen.paths
    assert path.name == "h1-h2" and path.ports == (*way, *back)
    law = next(check for check in judge(seen).checks if check.name == "littles-law")
    assert law.ok and "h1-h2" in law.why, law.why


@pytest.mark.parametrize("number", [0, 1])
def test_bytes_are_expected_on_the_link_that_was_crossed(made: Plan, number: int) -> None:
    way, back, brought = over(made, number)
    loaded = {f"{each.source} {each.link.index}" for each in link_bytes(made, brought) if each.payload_bytes}
    assert loaded == {f"{brought.port[name].node} {brought.port[name].link}" for name in way}
    flow = flows(made, brought)[0]
    assert flow.path == "h1 s1 s2 h2"
    slow_s = 8 * made.wire.frames_bytes(10**6) / min(
        made.wire.link_rate_bps(made.graph.links[brought.port[name].link]) for name in way)
    assert flow.ideal_s == pytest.approx(slow_s, rel=0.05)
