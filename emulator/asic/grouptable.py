"""What a GroupMod makes of the tables (OpenFlow 1.5.1 section 6.7; 1.3 lacks the bucket commands)."""
from __future__ import annotations

from dataclasses import dataclass, replace

from emulator.asic.flowtable import Bucket, Change, GroupEntry, Tables
from emulator.asic.openflow.constants import BucketId, GroupCommand, GroupId, GroupType, Removed
from emulator.asic.openflow.errors import BadAction, GroupModFailed, Refused
from emulator.asic.selection import Choice

# A group's description must fit one message in either version (64 KB, at most 40 bytes beside actions).
_BUCKET_OVERHEAD_BYTES = 40
_MAX_GROUP_BYTES = 60000
SUPPORTED_TYPES = (GroupType.SELECT, GroupType.INDIRECT, GroupType.FF)


@dataclass(frozen=True)
class GroupMod:
    """A decoded OFPT_GROUP_MOD. `choice` is None without a selection property."""

    command: int
    group_id: int
    type: int = GroupType.SELECT
    buckets: tuple[Bucket, ...] = ()
    command_bucket_id: int = BucketId.ALL
    choice: Choice | None = None
    method: str = ""
    param: int = 0
    fields: bytes = b""


def apply_group_mod(tables: Tables, mod: GroupMod, now_s: float, seed: int) -> Change:
    """Carry `mod` out; Refused leaves everything as it was.

    `seed` is the hash seed of a select group that names none. It should differ from switch to
    switch, so that a controller without the property (OpenFlow 1.3) gets no polarisation.
    """
    if mod.command == GroupCommand.DELETE:
        return _delete(tables, mod)
    if mod.group_id > GroupId.MAX:
        raise Refused(GroupModFailed.INVALID_GROUP, f"group id {mod.group_id:#x} is reserved")
    old = tables.groups.get(mod.group_id)
    if mod.command == GroupCommand.ADD:
        if old is not None:
            raise Refused(GroupModFailed.GROUP_EXISTS, f"group {mod.group_id} exists")
        group = _group(mod, now_s, seed)
    elif mod.command in (GroupCommand.MODIFY, GroupCommand.INSERT_BUCKET, GroupCommand.REMOVE_BUCKET):
        if old is None:
            raise Refused(GroupModFailed.UNKNOWN_GROUP, f"no group {mod.group_id}")
        if mod.command == GroupCommand.MODIFY:
            group = _group(mod, old.installed_s, seed)
        elif mod.command == GroupCommand.INSERT_BUCKET:
            group = replace(old, buckets=_inserted(old.buckets, mod))
        else:
            group = replace(old, buckets=_without(old.buckets, mod.command_bucket_id))
    else:
        raise Refused(GroupModFailed.BAD_COMMAND, f"group command {mod.command}")
    _check(tables, group)
    return Change(replace(tables, groups={**tables.groups, group.id: group}))


def _group(mod: GroupMod, installed_s: float, seed: int) -> GroupEntry:
    return GroupEntry(mod.group_id, mod.type, mod.buckets, mod.choice or Choice(seed=seed),
                      mod.method, mod.param, mod.fields, installed_s)


def _check(tables: Tables, group: GroupEntry) -> None:
    if group.type not in SUPPORTED_TYPES:
        raise Refused(GroupModFailed.BAD_TYPE, f"group type {group.type}: only select, indirect and "
                                               "fast failover (a packet is never copied)")
    if group.type == GroupType.INDIRECT and len(group.buckets) != 1:
        raise Refused(GroupModFailed.INVALID_GROUP, f"indirect group with {len(group.buckets)} buckets")
    size_bytes = sum(_BUCKET_OVERHEAD_BYTES + len(bucket.actions) for bucket in group.buckets)
    if size_bytes + len(group.fields) > _MAX_GROUP_BYTES:
        raise Refused(GroupModFailed.OUT_OF_BUCKETS, f"{len(group.buckets)} buckets")
    if len({bucket.id for bucket in group.buckets}) != len(group.buckets):
        raise Refused(GroupModFailed.BUCKET_EXISTS, "two buckets with one id")
    for bucket in group.buckets:
        member = bucket.member
        if member.port not in tables.ports:
            raise Refused(BadAction.BAD_OUT_PORT, f"no port {member.port}")
        tables.check_queue(member.queue)
        if member.watch_port is not None and member.watch_port not in tables.ports:
            raise Refused(GroupModFailed.BAD_WATCH, f"no port {member.watch_port} to watch")
        if group.type == GroupType.FF and member.watch_port is None:
            raise Refused(GroupModFailed.INVALID_GROUP, "fast failover bucket that watches nothing")


def _delete(tables: Tables, mod: GroupMod) -> Change:
    """Deleting a group takes the flow entries that use it along; an unknown group is no error."""
    if mod.group_id == GroupId.ALL:
        gone = set(tables.groups)
    elif mod.group_id > GroupId.MAX:
        raise Refused(GroupModFailed.INVALID_GROUP, f"group id {mod.group_id:#x} is reserved")
    else:
        gone = {mod.group_id}
    removed = tuple((entry, Removed.GROUP_DELETE) for entry in tables.flows.values()
                    if entry.actions.group in gone)
    flows = {key: entry for key, entry in tables.flows.items() if entry.actions.group not in gone}
    groups = {number: group for number, group in tables.groups.items() if number not in gone}
    return Change(replace(tables, flows=flows, groups=groups), removed)


def _inserted(buckets: tuple[Bucket, ...], mod: GroupMod) -> tuple[Bucket, ...]:
    if mod.command_bucket_id == BucketId.FIRST:
        place = 0
    elif mod.command_bucket_id == BucketId.LAST:
        place = len(buckets)
    else:
        place = _index(buckets, mod.command_bucket_id) + 1
    return buckets[:place] + mod.buckets + buckets[place:]


def _without(buckets: tuple[Bucket, ...], number: int) -> tuple[Bucket, ...]:
    if number == BucketId.ALL:
        return ()
    if number == BucketId.FIRST:
        return buckets[1:]
    if number == BucketId.LAST:
        return buckets[:-1]
    place = _index(buckets, number)
    return buckets[:place] + buckets[place + 1:]


def _index(buckets: tuple[Bucket, ...], number: int) -> int:
    for place, bucket in enumerate(buckets):
        if bucket.id == number:
            return place
    raise Refused(GroupModFailed.UNKNOWN_BUCKET, f"no bucket {number:#x}")
