"""OpenFlow's table semantics, as properties over small address spaces that can be walked whole."""
from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.asic.flowtable import (
    Bucket, FlowMod, GroupEntry, Tables, apply_flow_mod, covers, expired, overlap)
from emulator.asic.grouptable import GroupMod, apply_group_mod
from emulator.asic.lookup import find_rule, matches, parse
from emulator.asic.openflow.constants import (
    BucketId, FlowCommand, FlowFlag, GroupCommand, GroupId, GroupType, Removed)
from emulator.asic.openflow.errors import (
    BadAction, BadMatch, FlowModFailed, GroupModFailed, Refused)
from emulator.asic.pipeline import PipelineActions, PipelineBucket, PipelineMatch

PORTS = frozenset((1, 2, 3))
HIGH = 0x0A000000
# Addresses vary in two bits only, so that every packet of the universe can be tried.
PREFIXES = st.one_of(st.none(), st.builds(lambda bits, length: (HIGH | bits >> (32 - length) << (32 - length),
                                                               length),
                                          st.integers(0, 3), st.sampled_from((8, 30, 31, 32))))
MATCHES = st.builds(PipelineMatch, in_port=st.sampled_from((None, 1, 2)), eth_type=st.just(0x800),
                    ipv4_dst=PREFIXES, ipv4_src=PREFIXES, ip_proto=st.sampled_from((None, 6, 17)))
PACKETS = [PipelineMatch(in_port=port, eth_type=0x800, ipv4_dst=(HIGH | dst, 32), ipv4_src=(HIGH | src, 32),
                         ip_proto=proto, dscp=0)
           for port, dst, src, proto in itertools.product((1, 2, 3), range(4), range(4), (6, 17, 1))]
COMMANDS = st.sampled_from(list(FlowCommand))
MODS = st.builds(FlowMod, command=COMMANDS, match=MATCHES, priority=st.integers(0, 2),
                 actions=st.builds(PipelineActions, output=st.sampled_from((None, 1, 2))),
                 cookie=st.integers(0, 3), cookie_mask=st.sampled_from((0, 1)),
                 flags=st.sampled_from((0, FlowFlag.CHECK_OVERLAP, FlowFlag.RESET_COUNTS)),
                 out_port=st.sampled_from((0xFFFFFFFF, 1)))


def taken(match: PipelineMatch) -> set[PipelineMatch]:
    return {packet for packet in PACKETS if matches(match, packet)}


@settings(deadline=None)
@given(MATCHES, MATCHES)
def test_covers_and_overlap_mean_what_packets_show(a: PipelineMatch, b: PipelineMatch) -> None:
    if covers(a, b):
        assert taken(b) <= taken(a)
    assert overlap(a, b) == bool(taken(a) & taken(b))
    assert overlap(a, b) == overlap(b, a)


def carry_out(mods: list[FlowMod]) -> Tables:
    tables = Tables(PORTS)
    for number, mod in enumerate(mods):
        try:
            tables = apply_flow_mod(tables, mod, float(number)).tables
        except Refused as refusal:
            assert refusal.code == FlowModFailed.OVERLAP
    return tables


@settings(max_examples=150, deadline=None)
@given(st.lists(MODS, max_size=8), MODS)
def test_one_flow_mod_changes_what_it_means_and_nothing_else(before: list[FlowMod], mod: FlowMod) -> None:
    tables = carry_out(before)
    try:
        change = apply_flow_mod(tables, mod, 99.0)
    except Refused:
        assert mod.command == FlowCommand.ADD and mod.flags & FlowFlag.CHECK_OVERLAP
        assert any(priority == mod.priority and taken(match) & taken(mod.match)
                   for priority, match in tables.flows)
        return
    after = change.tables
    strict = mod.command in (FlowCommand.MODIFY_STRICT, FlowCommand.DELETE_STRICT)
    deleting = mod.command in (FlowCommand.DELETE, FlowCommand.DELETE_STRICT)
    for key, entry in tables.flows.items():
        hit = (key == (mod.priority, mod.match) if strict else covers(mod.match, entry.match))
        hit = hit and (entry.cookie ^ mod.cookie) & mod.cookie_mask == 0
        if deleting:
            hit = hit and (mod.out_port == 0xFFFFFFFF or entry.actions.output == mod.out_port)
            assert (key not in after.flows) == hit
            assert ((entry, Removed.DELETE) in change.removed) == hit
        elif mod.command == FlowCommand.ADD:
            assert after.flows[key] == entry or key == (mod.priority, mod.match)
        else:
            assert after.flows[key].actions == (mod.actions if hit else entry.actions)
            assert after.flows[key].cookie == entry.cookie
    if mod.command == FlowCommand.ADD:
        assert after.flows[mod.priority, mod.match].actions == mod.actions
    else:
        assert len(after.flows) + len(change.removed) == len(tables.flows)
    ids = [entry.id for entry in after.flows.values()]
    assert len(set(ids)) == len(ids) and all(number < after.next_id for number in ids)


@settings(deadline=None)
@given(st.lists(MODS, max_size=8))
def test_the_pipeline_gives_the_highest_priority(mods: list[FlowMod]) -> None:
    tables = carry_out(mods)
    for packet in PACKETS[::7]:
        best = max((priority for priority, match in tables.flows if matches(match, packet)), default=None)
        rule = find_rule(tables.pipeline().rules, packet)
        assert (rule.priority if rule else None) == best


def test_counters_survive_a_replacement_unless_reset() -> None:
    add = FlowMod(FlowCommand.ADD, PipelineMatch(), PipelineActions(output=1))
    tables = apply_flow_mod(Tables(PORTS), add, 0.0).tables
    again = apply_flow_mod(tables, FlowMod(FlowCommand.ADD, PipelineMatch(), PipelineActions(output=2)), 5.0)
    entry, = again.tables.flows.values()
    assert (entry.id, entry.installed_s, entry.actions.output) == (1, 5.0, 2)
    reset = FlowMod(FlowCommand.MODIFY, PipelineMatch(), PipelineActions(output=3),
                    flags=FlowFlag.RESET_COUNTS)
    entry, = apply_flow_mod(again.tables, reset, 6.0).tables.flows.values()
    assert (entry.id, entry.installed_s, entry.actions.output) == (2, 5.0, 3)


@pytest.mark.parametrize(("mod", "code"), [
    (FlowMod(FlowCommand.ADD, PipelineMatch(), PipelineActions(output=9)), BadAction.BAD_OUT_PORT),
    (FlowMod(FlowCommand.ADD, PipelineMatch(), PipelineActions(group=9)), BadAction.BAD_OUT_GROUP),
    (FlowMod(FlowCommand.ADD, PipelineMatch(in_port=9)), BadMatch.BAD_VALUE),
    (FlowMod(FlowCommand.ADD, PipelineMatch(), table_id=1), FlowModFailed.BAD_TABLE_ID),
    (FlowMod(FlowCommand.ADD, PipelineMatch(), table_id=255), FlowModFailed.BAD_TABLE_ID),
    (FlowMod(FlowCommand.ADD, PipelineMatch(), flags=32), FlowModFailed.BAD_FLAGS),
    (FlowMod(7, PipelineMatch()), FlowModFailed.BAD_COMMAND)])
def test_flow_mods_that_are_refused(mod: FlowMod, code) -> None:
    with pytest.raises(Refused) as caught:
        apply_flow_mod(Tables(PORTS), mod, 0.0)
    assert caught.value.code is code


def bucket(number: int, port: int = 1, watch: int | None = None, weight: int = 1) -> Bucket:
    return Bucket(number, PipelineBucket(port, weight, watch), b"")


def with_group(*buckets: Bucket) -> Tables:
    return Tables(PORTS, groups={7: GroupEntry(7, GroupType.SELECT, buckets)})


def test_deleting_a_group_takes_its_flows_along() -> None:
    tables = with_group(bucket(0))
    for priority, actions in ((1, PipelineActions(group=7)), (2, PipelineActions(output=1))):
        tables = apply_flow_mod(tables, FlowMod(FlowCommand.ADD, PipelineMatch(), actions, priority=priority),
                                0.0).tables
    change = apply_group_mod(tables, GroupMod(GroupCommand.DELETE, GroupId.ALL), 0.0, seed=1)
    assert [(entry.priority, reason) for entry, reason in change.removed] == [(1, Removed.GROUP_DELETE)]
    assert [priority for priority, _ in change.tables.flows] == [2] and not change.tables.groups


@pytest.mark.parametrize(("command_bucket", "order"), [
    (BucketId.FIRST, [5, 1, 2, 3]), (BucketId.LAST, [1, 2, 3, 5]), (2, [1, 2, 5, 3])])
def test_a_bucket_is_inserted_where_it_was_asked(command_bucket: int, order: list[int]) -> None:
    mod = GroupMod(GroupCommand.INSERT_BUCKET, 7, buckets=(bucket(5),), command_bucket_id=command_bucket)
    tables = apply_group_mod(with_group(bucket(1), bucket(2), bucket(3)), mod, 0.0, seed=1).tables
    assert [b.id for b in tables.groups[7].buckets] == order


@pytest.mark.parametrize(("command_bucket", "left"), [
    (BucketId.FIRST, [2, 3]), (BucketId.LAST, [1, 2]), (2, [1, 3]), (BucketId.ALL, [])])
def test_a_bucket_is_removed(command_bucket: int, left: list[int]) -> None:
    mod = GroupMod(GroupCommand.REMOVE_BUCKET, 7, command_bucket_id=command_bucket)
    tables = apply_group_mod(with_group(bucket(1), bucket(2), bucket(3)), mod, 0.0, seed=1).tables
    assert [b.id for b in tables.groups[7].buckets] == left


@pytest.mark.parametrize(("mod", "code"), [
    (GroupMod(GroupCommand.ADD, 7), GroupModFailed.GROUP_EXISTS),
    (GroupMod(GroupCommand.MODIFY, 8), GroupModFailed.UNKNOWN_GROUP),
    (GroupMod(GroupCommand.ADD, GroupId.ANY), GroupModFailed.INVALID_GROUP),
    (GroupMod(GroupCommand.ADD, 8, GroupType.ALL), GroupModFailed.BAD_TYPE),
    (GroupMod(GroupCommand.ADD, 8, GroupType.INDIRECT, (bucket(0), bucket(1))), GroupModFailed.INVALID_GROUP),
    (GroupMod(GroupCommand.ADD, 8, GroupType.FF, (bucket(0),)), GroupModFailed.INVALID_GROUP),
    (GroupMod(GroupCommand.ADD, 8, GroupType.FF, (bucket(0, watch=9),)), GroupModFailed.BAD_WATCH),
    (GroupMod(GroupCommand.ADD, 8, buckets=(bucket(0, port=9),)), BadAction.BAD_OUT_PORT),
    (GroupMod(GroupCommand.ADD, 8, buckets=(bucket(4), bucket(4))), GroupModFailed.BUCKET_EXISTS),
    (GroupMod(GroupCommand.MODIFY, 7, buckets=(bucket(0, weight=0), bucket(1, weight=0))),
     GroupModFailed.INVALID_GROUP),
    (GroupMod(GroupCommand.ADD, 8, buckets=tuple(map(bucket, range(2000)))), GroupModFailed.OUT_OF_BUCKETS),
    (GroupMod(GroupCommand.REMOVE_BUCKET, 7, command_bucket_id=9), GroupModFailed.UNKNOWN_BUCKET),
    (GroupMod(9, 7), GroupModFailed.BAD_COMMAND)])
def test_group_mods_that_are_refused(mod: GroupMod, code) -> None:
    with pytest.raises(Refused) as caught:
        apply_group_mod(with_group(bucket(1)), mod, 0.0, seed=1)
    assert caught.value.code is code


@pytest.mark.parametrize("mod", [
    GroupMod(GroupCommand.ADD, 8, GroupType.FF, (bucket(0, watch=1, weight=0),)),
    GroupMod(GroupCommand.ADD, 8, GroupType.INDIRECT, (bucket(0, weight=0),)),
    GroupMod(GroupCommand.ADD, 8, buckets=(bucket(0, weight=0), bucket(1, weight=2))),
    GroupMod(GroupCommand.ADD, 8)])
def test_only_a_select_group_needs_a_weight_and_one_is_enough(mod: GroupMod) -> None:
    assert apply_group_mod(Tables(PORTS), mod, 0.0, seed=1).tables.groups[8].buckets == mod.buckets


def test_a_select_group_without_a_method_gets_the_switchs_seed() -> None:
    mod = GroupMod(GroupCommand.ADD, 8, buckets=(bucket(1),))
    groups = [apply_group_mod(Tables(PORTS), mod, 0.0, seed=seed).tables.pipeline().groups[0]
              for seed in (1, 2)]
    assert [(group.mode, group.seed) for group in groups] == [("hash", 1), ("hash", 2)]


def test_timeouts_end_entries() -> None:
    tables = Tables(PORTS)
    for priority, idle, hard in ((1, 0, 0), (2, 5, 0), (3, 0, 8), (4, 5, 0)):
        mod = FlowMod(FlowCommand.ADD, PipelineMatch(), priority=priority, idle_timeout_s=idle,
                      hard_timeout_s=hard)
        tables = apply_flow_mod(tables, mod, 100.0).tables
    used = {4: 104.0}  # the rule of priority 4 saw a packet then
    ended = {now: [(e.priority, r) for e, r in expired(tables, now, used).removed] for now in (104, 106, 108)}
    assert ended == {104: [], 106: [(2, Removed.IDLE_TIMEOUT)],
                     108: [(2, Removed.IDLE_TIMEOUT), (3, Removed.HARD_TIMEOUT)]}


def test_an_entry_that_is_added_again_is_as_good_as_new() -> None:
    """It keeps its counts, and with them its number, but not the moment of its last packet."""
    mod = FlowMod(FlowCommand.ADD, PipelineMatch(), priority=1, idle_timeout_s=5)
    tables = apply_flow_mod(apply_flow_mod(Tables(PORTS), mod, 100.0).tables, mod, 108.0).tables
    entry, = tables.flows.values()
    used = {entry.id: 104.0}
    assert [len(expired(tables, now, used).removed) for now in (109.5, 112.9, 113.0)] == [0, 0, 1]
    assert len(expired(tables, 113.0, {entry.id: 112.0}).removed) == 0


@settings(deadline=None)
@given(st.binary(max_size=60), st.integers(1, 3))
def test_any_frame_can_be_parsed(frame: bytes, port: int) -> None:
    packet = parse(frame, port)
    assert packet.in_port == port
    assert (packet.ipv4_dst is None) == (packet.ip_proto is None)
    assert matches(PipelineMatch(), packet) and matches(packet, packet)


def test_a_tcp_frame_has_its_fields() -> None:
    header = bytes.fromhex("4528003400000000400600000a0102030a040506" "1f900050") + bytes(16)
    frame = bytes(12) + b"\x08\x00" + header
    assert parse(frame, 2) == PipelineMatch(2, 0x800, (0x0A040506, 32), (0x0A010203, 32), 6, 10, 8080, 80)
    fragment = frame[:20] + b"\x00\x10" + frame[22:]
    assert (parse(fragment, 2).ip_proto, parse(fragment, 2).l4_dst) == (6, 0)
    tagged = frame[:12] + bytes.fromhex("81000005") + frame[12:]
    assert parse(tagged, 2) == parse(frame, 2)
