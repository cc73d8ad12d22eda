"""Tables changed in steps: what a switch holds afterwards is what was wanted, and no packet meets a gap."""
from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controllers.changes import AddGroup, PutFlow, RemoveFlow, RemoveGroup, changes, renumbered
from controllers.tables import Bucket, FlowRule, Group, Match, Output, Selection, SwitchTables, ToGroup

MATCHES = [Match(), Match("10.0.1.0/24"), Match("10.0.1.2/32"),
           Match("10.0.1.2/32", ipv4_src="10.0.2.2/32", ip_proto=6, l4_src=7, l4_dst=5001, ip_dscp=46)]


@st.composite
def tables(draw) -> SwitchTables:
    groups = tuple(Group(number, tuple(Bucket(port, draw(st.integers(1, 3))) for port in sorted(ports)),
                         Selection(param=draw(st.integers(0, 1))))
                   for number, ports in draw(st.dictionaries(
                       st.integers(1, 4), st.sets(st.integers(1, 4), min_size=2, max_size=3), max_size=3)).items())
    actions = [Output(1), Output(2), *(ToGroup(group.id) for group in groups)]
    flows = tuple(FlowRule(100, match, (draw(st.sampled_from(actions)),))
                  for match in draw(st.lists(st.sampled_from(MATCHES), unique=True)))
    return SwitchTables(1, flows, groups)


def meaning(held: SwitchTables) -> dict:
    """What each match comes to, whatever the groups are called."""
    content = {group.id: (group.buckets, group.selection) for group in held.groups}
    return {(rule.priority, rule.match): [content[action.group] if isinstance(action, ToGroup) else action
                                          for action in rule.actions] for rule in held.flows}


@given(tables(), tables())
def test_the_steps_lead_there_and_never_through_a_gap(held, wanted):
    """A switch that refuses what OpenFlow refuses: a rule to no group, a group twice, one in use removed."""
    target = renumbered(held, wanted)
    assert meaning(target) == meaning(wanted)
    groups = {group.id: group for group in held.groups}
    flows = {(rule.priority, rule.match): rule for rule in held.flows}
    served = set(flows) & {(rule.priority, rule.match) for rule in wanted.flows}
    for step in changes(held, target):
        if isinstance(step, AddGroup):
            assert step.group.id not in groups
            groups[step.group.id] = step.group
        elif isinstance(step, PutFlow):
            flows[step.rule.priority, step.rule.match] = step.rule
        elif isinstance(step, RemoveFlow):
            del flows[step.priority, step.match]
        else:
            assert isinstance(step, RemoveGroup)
            del groups[step.number]
        used = {action.group for rule in flows.values() for action in rule.actions if isinstance(action, ToGroup)}
        assert used <= groups.keys()
        assert served <= flows.keys(), "a rule that was there and stays was missing for a moment"
    assert set(flows.values()) == set(target.flows) and set(groups.values()) == set(target.groups)


@given(tables())
def test_nothing_is_said_to_a_switch_that_holds_its_tables(held):
    assert renumbered(held, held) == held or meaning(renumbered(held, held)) == meaning(held)
    assert changes(held, held) == ()


def test_a_group_in_use_is_not_changed_in_its_place():
    one = SwitchTables(1, (), (Group(1, (Bucket(1), Bucket(2)), Selection()),))
    other = SwitchTables(1, (), (Group(1, (Bucket(1), Bucket(3)), Selection()),))
    with pytest.raises(ValueError, match="group 1 is in use"):
        changes(one, other)
    assert renumbered(one, other).groups[0].id == 2


def test_ports_need_their_protocol():
    with pytest.raises(ValueError, match="ip_proto 6"):
        Match(l4_dst=5001)
