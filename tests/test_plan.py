"""The plan: everything resolved, so that nothing is left to chance or to the place where it runs."""
from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.capacity import BUSY_LIMIT
from emulator.errors import BadInput
from emulator.dryrun import describe, headline
from emulator.experiment import dump, make, read_file
from emulator.link_options import LEAST_DEADLINE_S, MOST_DEADLINE_S, ecn_bytes
from emulator.resolve import resolve
from emulator.report import show
from tests.outcomes import plan, refusal
from topologies.graph import interface
from traffic.wire import Wire


@settings(max_examples=25, deadline=None)
@given(rate=st.floats(8e3, 1e9), buffer=st.one_of(st.just("auto"), st.floats(2e-3, 9).map("{}s".format)),
       mtu=st.sampled_from([576, 1500, 9000]))
def test_what_was_resolved_resolves_to_itself(rate: float, buffer: str, mtu: int) -> None:
    asked = {"topology": "star:hosts=2", "workload": "pattern:pair=0-1", "rate": f"{rate}bit", "mtu": mtu}
    try:
        first = plan(**asked, buffer=buffer)
    except BadInput as error:
        assert "not even one frame" in str(error) or "2 GiB" in str(error)
        return
    again = resolve("", first.resolved, first.switch, first.datapath)
    assert again.resolved == first.resolved
    assert again.wire == first.wire and again.deadline_s == first.deadline_s
    assert again.workload == first.workload and again.fabric == first.fabric


def test_a_resolved_experiment_leaves_nothing_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("two.cm").write_text("Nodes 4\nConnections 1\n0->1 start 0 size 10000\n")
    made = plan(topology="star:hosts=4", workload="two.cm", rate="auto")
    Path("e.yaml").write_text(dump(made.resolved))
    monkeypatch.chdir("/")
    again = resolve("", make(read_file(str(tmp_path / "e.yaml"))), made.switch, made.datapath)
    assert "auto" not in (again.experiment.rate, again.experiment.buffer, again.experiment.deadline,
                          again.experiment.switch)
    assert again.workload.schedule == made.workload.schedule and again.wire == made.wire


def test_the_files_of_a_program_are_found_from_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("hosts.txt").write_text("h2\nh1\n")
    Path("sizes.txt").write_text("100 0.5\n200 1\n")
    made = plan(run=["each:ranks=2,placement=file:hosts.txt", "cat", "./hosts.txt"], workload="program")
    assert made.resolved.run == (f"each:ranks=2,placement=file:{tmp_path}/hosts.txt", "cat", f"{tmp_path}/hosts.txt")
    made = plan(background="cdf:sizes.txt,load=0.1", deadline="1s")
    assert made.resolved.background == f"cdf:{tmp_path}/sizes.txt,load=0.1"


@pytest.mark.parametrize("topology", ["fat-tree:k=4", "leaf-spine:leaves=2,spines=2,hosts=2", "star:hosts=4"])
def test_auto_finds_a_rate_that_fits(topology: str) -> None:
    made = plan(topology=topology, workload="pattern:stride=1", rate="auto")
    assert made.capacity.fits and made.capacity.busy <= BUSY_LIMIT and made.wire.rate_bps >= 1000


def test_the_deadline_follows_the_ideal_and_can_be_given() -> None:
    assert plan(workload="pattern:stride=1,bytes=10kB").deadline_s == LEAST_DEADLINE_S
    long = plan(workload="pattern:stride=1,bytes=100MB")
    assert long.deadline_s == pytest.approx(10 * long.ideal.ideal_s)
    assert plan(deadline="90ms").deadline_s == pytest.approx(0.09)


def test_no_run_is_given_more_than_a_week() -> None:
    assert plan(deadline="7000min").deadline_s == 420_000.0
    for asked in ({"workload": "pattern:stride=1"}, {"run": ["each", "true"], "workload": "program"}):
        assert "8e5s" in refusal(deadline="8e5s", **asked)
    slow = {"rate": "10kbit", "workload": "allreduce:bytes=100MB"}
    assert "raise --rate, or send less" in refusal(**slow)
    assert plan(**slow, deadline="604800s").deadline_s == MOST_DEADLINE_S, "who names it takes the risk"


@given(st.integers(1514, 300_000), st.integers(3028, 300_000))
def test_a_threshold_is_taken_only_where_a_full_frame_can_find_more_than_it(mark: int, limit: int) -> None:
    asked = make({"ecn": f"{mark}B", "buffer": f"{limit}B"})
    wire = Wire.shaped(5e6, 1500)
    deepest = limit - wire.frame_bytes  # what a full frame may find and still have room
    try:
        assert ecn_bytes(asked, wire, "bpf", limit) == mark < deepest
    except BadInput:
        assert mark >= deepest


def test_every_port_can_be_captured_and_no_other() -> None:
    graph = plan().graph
    names = [interface(node, number) for node, ports in graph.neighbours.items() for number in ports]
    assert plan(pcap=tuple(names)).experiment.pcap == tuple(names)
    assert "did you mean" in refusal(pcap=("l1-eth0",)) and '"l1-eth0"' in refusal(pcap=("l1-eth0",))


def test_bytes_are_conserved_in_the_plan() -> None:
    made = plan(workload="pattern:stride=2,bytes=100kB")
    assert made.tier_bytes["host-leaf"] == 2 * made.workload.schedule.bytes_sent == 2 * 4 * 100_000


def test_the_dry_run_says_what_matters(capsys: pytest.CaptureFixture) -> None:
    made = plan(workload="allreduce:algorithm=ring,bytes=1MB", rate="200mbit")
    show(describe(made))
    said = capsys.readouterr().out
    for words in ("4 hosts", "200 Mb/s", "closed form", "host-leaf", "does NOT fit", "95th percentile"):
        assert words in said
    assert "userspace" in headline(made)


@pytest.mark.parametrize("routing, workload, least, most", [
    ("gff", "pattern:stride=8", 0.95, 1.0), ("sa", "pattern:stride=8", 0.95, 1.0),
    ("sa", "allreduce:placement=random", 0.9, 1.0), ("ecmp", "allreduce:placement=random", 0.3, 0.7),
    ("gff", "allreduce:placement=random", 0.7, 0.97)])
def test_what_global_scheduling_can_be_expected_to_reach(routing, workload, least, most):
    expected = resolve("", make({"routing": routing, "workload": workload, "rate": "5mbit"}), "bpf", "bpf").expected
    assert least <= expected.throughput.mean <= most + 1e-9


def test_nothing_is_expected_of_what_the_model_does_not_cover():
    for routing, workload in (("adaptive", "pattern:stride=8"), ("adaptive:scope=both", "pattern:stride=8"),
                              ("gff", "alltoall")):
        made = make({"routing": routing, "workload": workload, "rate": "5mbit"})
        assert resolve("", made, "bpf", "bpf").expected is None
