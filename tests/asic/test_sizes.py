"""Tables of bpf switches have room for what routing plans, on any topology; what never fits is refused."""
from __future__ import annotations

import pytest

from controllers.routing import plan_tables
from controllers.tables import SwitchTables
from emulator.asic.places import Places
from emulator.asic.sizes import Sizes, check_groups, sizes_for
from emulator.errors import BadInput
from topologies.catalog import resolve_topology

DENSE = "random-regular:switches=80,degree=8,hosts=1,seed=1"


def put_in_force(tables: SwitchTables, sizes: Sizes, times: int) -> None:
    """The same tables again and again, as BpfDatapath lends places to them; ValueError without room."""
    rules, groups, buckets = (Places(what, 0, getattr(sizes, what))
                              for what in ("rules", "groups", "buckets"))
    for revision in range(times):
        for places in (rules, groups, buckets):
            places.release()
        with rules.revision() as of_rules, groups.revision() as of_groups, buckets.revision() as of_buckets:
            for number, _ in enumerate(tables.flows):
                of_rules.place((revision, number))
            for group in tables.groups:
                of_groups.fresh(group.id)
                for place, bucket in enumerate(group.buckets):
                    of_buckets.place((revision, group.id, place, bucket.port))


@pytest.mark.parametrize(("topology", "routing"), [
    ("fat-tree:k=4", "ecmp"), (DENSE, "ecmp"), ("random-regular:switches=60,degree=6,hosts=2,seed=1", "wcmp"),
    ("star:hosts=300", "ecmp"), ("dragonfly", "valiant")])
def test_planned_tables_can_be_replaced_as_a_whole(topology: str, routing: str) -> None:
    graph = resolve_topology(topology)
    tables = plan_tables(graph, routing, 1).values()
    check_groups(graph, routing, 1)
    sizes = sizes_for(tables)
    for each in tables:
        put_in_force(each, sizes, times=3)


def test_the_least_is_for_any_controller() -> None:
    small = plan_tables(resolve_topology("fat-tree:k=4"), "ecmp", 1).values()
    assert sizes_for(()) == Sizes() == sizes_for(small)
    dense = plan_tables(resolve_topology(DENSE), "ecmp", 1).values()
    with pytest.raises(ValueError, match="no room for more groups"):
        for each in dense:
            put_in_force(each, Sizes(), times=2)


def test_a_group_of_too_many_next_hops_is_bad_input() -> None:
    wide = resolve_topology("leaf-spine:leaves=4,spines=70,hosts=2")
    with pytest.raises(BadInput, match="among 70 next hops, .* 64 at the most; use --switch ovs, or a"):
        check_groups(wide, "ecmp", 1)
    check_groups(wide, "wcmp", 1)  # it keeps the best 64
    check_groups(wide, "single", 1)
    check_groups(resolve_topology("leaf-spine:leaves=2,spines=64,hosts=2"), "ecmp", 1)
    check_groups(wide, "external:127.0.0.1:6633", 1)
