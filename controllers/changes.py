"""From the tables that a switch holds to those that it shall hold, in steps that leave no gap. Pure.

Make before break: first the new groups, then the rules that are new or other (a rule with the match
and priority of an old one takes its place at once), then the old rules go, then the old groups. A
group that is in use is never changed: another choice of members is another group, so a rule moves
from the one to the other at once, on any kind of switch.
"""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from controllers.tables import FlowRule, Group, Match, SwitchTables, ToGroup


@dataclass(frozen=True)
class AddGroup:
    group: Group


@dataclass(frozen=True)
class PutFlow:
    """Add the rule, in place of the one with the same match and priority if there is one."""

    rule: FlowRule


@dataclass(frozen=True)
class RemoveFlow:
    priority: int
    match: Match


@dataclass(frozen=True)
class RemoveGroup:
    number: int


Change = AddGroup | PutFlow | RemoveFlow | RemoveGroup


def renumbered(held: SwitchTables, wanted: SwitchTables) -> SwitchTables:
    """`wanted` with the group numbers of `held` where groups are alike, and unused numbers elsewhere."""
    alike = {(group.buckets, group.selection): group.id for group in reversed(held.groups)}
    number: dict[int, int] = {}
    for group in wanted.groups:
        known = alike.pop((group.buckets, group.selection), None)
        if known is not None:
            number[group.id] = known
    taken = {group.id for group in held.groups} | set(number.values())
    for group in wanted.groups:
        if group.id not in number:
            number[group.id] = group.id if group.id not in taken else _free(taken)
            taken.add(number[group.id])
    flows = tuple(replace(rule, actions=tuple(
        ToGroup(number[action.group]) if isinstance(action, ToGroup) else action for action in rule.actions))
        for rule in wanted.flows)
    groups = tuple(replace(group, id=number[group.id]) for group in wanted.groups)
    return SwitchTables(wanted.dpid, flows, groups)


def _free(taken: set[int]) -> int:
    number = 1
    while number in taken:
        number += 1
    return number


def changes(held: SwitchTables, wanted: SwitchTables) -> tuple[Change, ...]:
    """What turns `held` into `wanted`, in order; `wanted` as `renumbered` gives it.

    Raises ValueError where a group of `wanted` has the number of another group of `held`.
    """
    return tuple(_changes(held, wanted))


def _changes(held: SwitchTables, wanted: SwitchTables) -> Iterator[Change]:
    old_groups = {group.id: group for group in held.groups}
    new_groups = {group.id: group for group in wanted.groups}
    old_flows = {(rule.priority, rule.match): rule for rule in held.flows}
    new_flows = {(rule.priority, rule.match): rule for rule in wanted.flows}
    for number, group in new_groups.items():
        if number not in old_groups:
            yield AddGroup(group)
        elif old_groups[number] != group:
            raise ValueError(f"group {number} is in use as another one; number the groups by `renumbered`")
    yield from (PutFlow(rule) for key, rule in new_flows.items() if old_flows.get(key) != rule)
    yield from (RemoveFlow(*key) for key in old_flows.keys() - new_flows.keys())
    yield from (RemoveGroup(number) for number in old_groups.keys() - new_groups.keys())
