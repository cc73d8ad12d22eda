"""Which host carries which rank, for every placement; each slip is one sentence."""
from __future__ import annotations

from itertools import groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.errors import BadInput
from tests.traffic.conftest import leaf_spine
from topologies.graph import Host
from traffic.placement import place, racks_of, with_placement_file


def hosts(racks: list[int]) -> tuple[Host, ...]:
    """Hosts of racks of these sizes, dealt out in turn: the fabric's order says nothing of racks."""
    turns = [rack for turn in range(max(racks)) for rack, size in enumerate(racks) if turn < size]
    return tuple(Host(f"h{i + 1}", i, f"10.0.0.{i + 1}", "", f"l{rack}") for i, rack in enumerate(turns))


fabrics = st.lists(st.integers(1, 6), min_size=1, max_size=6).map(hosts)


@given(of=fabrics, data=st.data(), kind=st.sampled_from(["linear", "random", "rack", "rack:1", "spread"]))
def test_each_rank_has_a_host_of_its_own(of, data, kind):
    ranks = data.draw(st.integers(1, len(of)))
    chosen = place(kind, ranks, of, 7)
    assert len(chosen) == len(set(chosen)) == ranks and set(chosen) <= set(range(len(of)))
    assert chosen == place(kind, ranks, of, 7)


def test_linear_is_the_order_of_the_fabric_and_random_is_seeded():
    of = hosts([4, 4, 4])
    assert place("linear", 5, of, 0) == (0, 1, 2, 3, 4)
    assert len({place("random", 12, of, seed) for seed in range(20)}) == 20


@given(of=fabrics)
def test_rack_visits_each_rack_once(of):
    visited = [rack for rack, _ in groupby(of[host].rack for host in place("rack", len(of), of, 0))]
    assert len(visited) == len(set(visited))


@given(of=fabrics, group=st.integers(1, 8), ranks=st.integers(1, 36))
def test_no_group_is_cut_by_a_rack_that_could_hold_it(of, group, ranks):
    try:
        chosen = place(f"rack:{group}", ranks, of, 0)
    except BadInput as error:
        assert "fit" in str(error)
        return
    largest = max(map(len, racks_of(of)))
    for first in range(0, ranks, group):
        members = chosen[first:first + group]
        if len(members) <= largest:
            assert len({of[host].rack for host in members}) == 1


def test_a_group_larger_than_a_rack_begins_with_an_untouched_one():
    of = hosts([4, 4, 4, 4])
    racks = [of[host].rack for host in place("rack:6", 12, of, 0)]
    assert racks == ["l0"] * 4 + ["l1"] * 2 + ["l2"] * 4 + ["l3"] * 2
    assert [of[host].rack for host in place("rack:3", 9, of, 0)] == ["l0"] * 3 + ["l1"] * 3 + ["l2"] * 3


def test_spread_never_stays_in_a_rack_while_others_have_room():
    of = leaf_spine(4, 2, 4).hosts
    racks = [of[host].rack for host in place("spread", 16, of, 0)]
    assert racks == ["l0", "l1", "l2", "l3"] * 4


def test_a_file_names_hosts(tmp_path):
    of, file = hosts([2, 2]), tmp_path / "ranks.txt"
    file.write_text("# rank 0 first\nh3\n\nh1  # the second\nh4\n")
    assert place(f"file:{file}", 3, of, 0) == (2, 0, 3)
    assert place(f"file:{file}", 2, of, 0) == (2, 0)
    assert with_placement_file("alltoall:placement=file:ranks.txt,bytes=1MB", lambda name: str(tmp_path / name)) == (
        f"alltoall:placement=file:{file},bytes=1MB")
    for spec in ("alltoall:bytes=1MB", "alltoall:placement=file:", "alltoall:placement=file:none,bytes=1MB"):
        assert with_placement_file(spec, lambda name: str(tmp_path / name)) == spec


@pytest.mark.parametrize("text, sentence", [
    ("h1\nh9\n", ':2: there is no host "h9"'), ("h1\n\nh1\n", ":3: host h1 already carries rank 0"),
    ("h1\n", "1 hosts for 3 ranks"), ("", "is empty")])
def test_a_file_with_a_slip(tmp_path, text, sentence):
    file = tmp_path / "ranks.txt"
    file.write_text(text)
    with pytest.raises(BadInput, match=sentence):
        place(f"file:{file}", 3, hosts([2, 2]), 0)


@pytest.mark.parametrize("kind, ranks, sentence", [
    ("randm", 2, 'Unknown placement "randm" .did you mean "random"'), ("linear", 5, "5 ranks do not fit on 4 hosts"),
    ("rack:0", 2, "write rack, or rack:G"), ("rack:x", 2, "write rack, or rack:G"), ("file:", 2, "Unknown placement"),
    ("rack:2", 5, "fit"), ("rack:", 2, "write rack, or rack:G"), ("file:/nowhere/at/all", 2, "does not exist")])
def test_placement_refusals(kind, ranks, sentence):
    with pytest.raises(BadInput, match=sentence):
        place(kind, ranks, hosts([3, 1]), 0)
