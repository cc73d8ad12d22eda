"""The tables of one switch as a value, and what a FlowMod makes of them (OpenFlow 1.3.5 section 6.4).

One table. Nothing here touches a datapath: `Tables` in, `Tables` out, so a batch can be tried,
committed or dropped as a whole. Groups are in `grouptable.py`.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from emulator.asic.openflow.constants import (
    ALL_FLOW_FLAGS, ALL_TABLES, FlowCommand, FlowFlag, GroupId, GroupType, Port, Removed)
from emulator.asic.openflow.errors import BadAction, BadMatch, FlowModFailed, Refused
from emulator.asic.pipeline import (
    PipelineActions, PipelineBucket, PipelineGroup, PipelineMatch, PipelineRule, PipelineTables)
from emulator.asic.selection import Choice

Key = tuple[int, PipelineMatch]


@dataclass(frozen=True)
class FlowEntry:
    """A flow entry. `instructions` are the bytes it came with: statistics give back what was sent.

    `id` is the number under which the datapath counts; a new one starts at zero.
    Times are seconds of the switch's monotonic clock; a timeout of 0 means never.
    """

    id: int
    priority: int
    match: PipelineMatch
    actions: PipelineActions
    instructions: bytes = b""
    cookie: int = 0
    flags: int = 0
    idle_timeout_s: int = 0
    hard_timeout_s: int = 0
    importance: int = 0
    installed_s: float = 0.0


@dataclass(frozen=True)
class FlowMod:
    """A decoded OFPT_FLOW_MOD."""

    command: int
    match: PipelineMatch
    actions: PipelineActions = PipelineActions()
    instructions: bytes = b""
    priority: int = 0
    table_id: int = 0
    cookie: int = 0
    cookie_mask: int = 0
    flags: int = 0
    idle_timeout_s: int = 0
    hard_timeout_s: int = 0
    importance: int = 0
    out_port: int = Port.ANY
    out_group: int = GroupId.ANY


@dataclass(frozen=True)
class Bucket:
    """A bucket under its OpenFlow 1.5 id; 1.3 buckets are numbered as they stand."""

    id: int
    member: PipelineBucket
    actions: bytes


@dataclass(frozen=True)
class GroupEntry:
    """A group. `method`, `param` and `fields` are the selection property as sent ('' without one)."""

    id: int
    type: int
    buckets: tuple[Bucket, ...]
    choice: Choice = Choice()
    method: str = ""
    param: int = 0
    fields: bytes = b""
    installed_s: float = 0.0


@dataclass(frozen=True)
class Tables:
    """Flows by (priority, match), groups by id, the ports there are and the queues of each, and the next free
    rule id."""

    ports: frozenset[int]
    flows: Mapping[Key, FlowEntry] = field(default_factory=dict)
    groups: Mapping[int, GroupEntry] = field(default_factory=dict)
    next_id: int = 1
    queues: frozenset[int] = frozenset({0})

    def check_queue(self, queue: int | None) -> None:
        """Refused for a queue that no port has."""
        if queue is not None and queue not in self.queues:
            raise Refused(BadAction.BAD_QUEUE, f"no queue {queue}; ports have {len(self.queues)}, of which "
                                               "--classes makes eight")

    def pipeline(self) -> PipelineTables:
        """What the datapath is to carry out; rules by falling priority."""
        entries = sorted(self.flows.values(), key=lambda entry: -entry.priority)
        return PipelineTables(
            tuple(PipelineRule(entry.id, entry.priority, entry.match, entry.actions) for entry in entries),
            tuple(_pipeline_group(group) for group in self.groups.values()))


def _pipeline_group(group: GroupEntry) -> PipelineGroup:
    choice = group.choice
    return PipelineGroup(group.id, tuple(bucket.member for bucket in group.buckets), choice.mode, choice.seed,
                         choice.flowlet_gap_s, choice.random_spray, group.type == GroupType.FF)


@dataclass(frozen=True)
class Change:
    """New tables and the entries that left, each with its reason (constants.Removed)."""

    tables: Tables
    removed: tuple[tuple[FlowEntry, Removed], ...] = ()


def apply_flow_mod(tables: Tables, mod: FlowMod, now_s: float) -> Change:
    """Carry `mod` out; Refused leaves everything as it was."""
    deleting = mod.command in (FlowCommand.DELETE, FlowCommand.DELETE_STRICT)
    if mod.table_id != 0 and not (deleting and mod.table_id == ALL_TABLES):
        raise Refused(FlowModFailed.BAD_TABLE_ID, f"table {mod.table_id} of a pipeline that has table 0")
    if deleting:
        gone = selected(tables, mod)
        flows = {key: entry for key, entry in tables.flows.items() if key not in gone}
        return Change(replace(tables, flows=flows),
                      tuple((entry, Removed.DELETE) for entry in gone.values()))
    if mod.flags & ~ALL_FLOW_FLAGS:
        raise Refused(FlowModFailed.BAD_FLAGS, f"flags {mod.flags:#x}")
    _check_references(tables, mod)
    if mod.command == FlowCommand.ADD:
        return Change(_add(tables, mod, now_s))
    if mod.command in (FlowCommand.MODIFY, FlowCommand.MODIFY_STRICT):
        return Change(_modify(tables, mod))
    raise Refused(FlowModFailed.BAD_COMMAND, f"flow command {mod.command}")


def _check_references(tables: Tables, mod: FlowMod) -> None:
    actions = mod.actions
    if actions.output is not None and actions.output not in tables.ports:
        raise Refused(BadAction.BAD_OUT_PORT, f"no port {actions.output}")
    if actions.group is not None and actions.group not in tables.groups:
        raise Refused(BadAction.BAD_OUT_GROUP, f"no group {actions.group}")
    tables.check_queue(actions.queue)
    if mod.match.in_port is not None and mod.match.in_port not in tables.ports:
        raise Refused(BadMatch.BAD_VALUE, f"in_port {mod.match.in_port} does not exist")


def _add(tables: Tables, mod: FlowMod, now_s: float) -> Tables:
    if mod.flags & FlowFlag.CHECK_OVERLAP:
        for priority, match in tables.flows:
            if priority == mod.priority and overlap(match, mod.match):
                raise Refused(FlowModFailed.OVERLAP, f"overlaps {match} at priority {priority}")
    key = (mod.priority, mod.match)
    old = tables.flows.get(key)
    # An identical entry is replaced; its counters live on unless the controller resets them.
    keeps = old is not None and not mod.flags & FlowFlag.RESET_COUNTS
    entry = FlowEntry(old.id if keeps else tables.next_id, mod.priority, mod.match, mod.actions,
                      mod.instructions, mod.cookie, mod.flags, mod.idle_timeout_s, mod.hard_timeout_s,
                      mod.importance, now_s)
    return replace(tables, flows={**tables.flows, key: entry},
                   next_id=tables.next_id if keeps else tables.next_id + 1)


def _modify(tables: Tables, mod: FlowMod) -> Tables:
    """Only instructions change: cookie, timeouts, flags and times stay; no match is no error."""
    flows = dict(tables.flows)
    next_id = tables.next_id
    unfiltered = replace(mod, out_port=Port.ANY, out_group=GroupId.ANY)  # they filter deletes only
    for key, entry in selected(tables, unfiltered).items():
        number = entry.id
        if mod.flags & FlowFlag.RESET_COUNTS:
            number, next_id = next_id, next_id + 1
        flows[key] = replace(entry, id=number, actions=mod.actions, instructions=mod.instructions)
    return replace(tables, flows=flows, next_id=next_id)


def selected(tables: Tables, mod: FlowMod) -> dict[Key, FlowEntry]:
    """The entries that a modify, a delete or a statistics request means: match, cookie, out port, group."""
    if mod.command in (FlowCommand.MODIFY_STRICT, FlowCommand.DELETE_STRICT):
        key = (mod.priority, mod.match)
        found = {key: tables.flows[key]} if key in tables.flows else {}
    else:
        found = {key: entry for key, entry in tables.flows.items() if covers(mod.match, entry.match)}
    return {key: entry for key, entry in found.items()
            if entry.cookie & mod.cookie_mask == mod.cookie & mod.cookie_mask
            and (mod.out_port == Port.ANY or _sends_to(entry.actions, mod.out_port))
            and mod.out_group in (GroupId.ANY, entry.actions.group)}


def _sends_to(actions: PipelineActions, port: int) -> bool:
    return actions.output == port or (port == Port.CONTROLLER and actions.to_controller)


_EXACT = ("in_port", "eth_type", "ip_proto", "dscp", "l4_src", "l4_dst")
_PREFIXES = ("ipv4_src", "ipv4_dst")


def _fields_agree(a: PipelineMatch, b: PipelineMatch, exact: Callable, prefix: Callable) -> bool:
    return (all(exact(getattr(a, name), getattr(b, name)) for name in _EXACT)
            and all(prefix(getattr(a, name), getattr(b, name)) for name in _PREFIXES))


def _inside(wide: tuple[int, int], narrow: tuple[int, int]) -> bool:
    return wide[1] <= narrow[1] and (wide[0] ^ narrow[0]) >> (32 - wide[1]) == 0


def covers(wide: PipelineMatch, narrow: PipelineMatch) -> bool:
    """Every packet that `narrow` matches, `wide` matches too."""
    return _fields_agree(wide, narrow, lambda w, n: w is None or w == n,
                         lambda w, n: w is None or (n is not None and _inside(w, n)))


def overlap(a: PipelineMatch, b: PipelineMatch) -> bool:
    """Some packet matches both."""
    return _fields_agree(a, b, lambda x, y: x is None or y is None or x == y,
                         lambda x, y: x is None or y is None or _inside(x, y) or _inside(y, x))


def expired(tables: Tables, now_s: float, last_used_s: Mapping[int, float]) -> Change:
    """Take out what its timeouts end; `last_used_s` has the last sign of life of each rule id."""
    removed = []
    for entry in tables.flows.values():
        used_s = last_used_s.get(entry.id, entry.installed_s)
        if entry.hard_timeout_s and now_s - entry.installed_s >= entry.hard_timeout_s:
            removed.append((entry, Removed.HARD_TIMEOUT))
        elif entry.idle_timeout_s and now_s - used_s >= entry.idle_timeout_s:
            removed.append((entry, Removed.IDLE_TIMEOUT))
    gone = {(entry.priority, entry.match) for entry, _ in removed}
    flows = {key: entry for key, entry in tables.flows.items() if key not in gone}
    return Change(replace(tables, flows=flows), tuple(removed)) if gone else Change(tables)
