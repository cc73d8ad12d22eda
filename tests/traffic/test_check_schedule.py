"""Every fault that would hang or spoil a run is found before it, in a sentence with rank and operation."""
from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.errors import BadInput
from traffic.check import check_schedule
from traffic.collectives import ring
from traffic.schedule import Kind, Op, Schedule


def send(peer, size_bytes=10, **rest):
    return Op(Kind.SEND, peer=peer, size_bytes=size_bytes, **rest)


def recv(peer, size_bytes=10, **rest):
    return Op(Kind.RECV, peer=peer, size_bytes=size_bytes, **rest)


def refuse(*ranks, match, hosts=16, buffer_bytes=0):
    with pytest.raises(BadInput, match=match):
        check_schedule(Schedule("job", tuple(map(tuple, ranks)), buffer_bytes), hosts)


def test_a_good_schedule_passes():
    check_schedule(Schedule("job", ((send(1), recv(1)), (recv(0), send(0, deps=(0,))))), 2)


def test_more_ranks_than_hosts():
    refuse([], [], [], hosts=2, match="3 ranks do not fit on 2 hosts")


def test_unmatched_send_and_receive():
    refuse([send(1), send(1)], [recv(0)],
           match=r"rank 0, operation 1 \(send to rank 1\).* no matching receive")
    refuse([send(1)], [recv(0), recv(0, tag=5)],
           match=r"rank 1, operation 1 \(recv from rank 0\).*tag 5.*no matching")
    refuse([send(1, channel=1)], [recv(0)], match="channel 1 has no matching")


def test_sizes_that_differ():
    refuse([send(1, 10)], [recv(0, 11)],
           match=r"rank 0, operation 0 .* carries 10 bytes, but rank 1, operation 0 .* 11")


def test_zero_bytes_self_sends_and_peers_outside():
    refuse([send(1, 0)], [recv(0, 0)], match="rank 0, operation 0 .* has 0 bytes")
    refuse([send(0), recv(0)], match="its own rank as the peer")
    refuse([send(7)], [], match="rank 7 as the peer, but there are 2 ranks")
    refuse([send(-1)], [], match="rank -1 as the peer")


@pytest.mark.parametrize("duration_s", [-1.0, float("nan"), float("inf")])
def test_durations(duration_s):
    refuse([Op(Kind.COMPUTE, duration_s=duration_s)], match="rank 0, operation 0 .compute. takes")


def test_dependencies_outside():
    refuse([send(1, deps=(4,))], [recv(0)], match="depends on operation 4, but the rank has 1")
    refuse([send(1, triggers=((3, 0),))], [recv(0)], match="triggered by operation 0 of rank 3")
    refuse([send(1, triggers=((1, 9),))], [recv(0)], match="triggered by operation 9 of rank 1")


def test_places_outside_the_buffer():
    refuse([send(1, offset=95)], [recv(0)], buffer_bytes=100,
           match="bytes 95 to 105, outside the buffer of 100")
    refuse([send(1, offset=-2)], [recv(0)], buffer_bytes=100, match="outside the buffer")


def test_a_reduce_needs_its_receive():
    refuse([Op(Kind.REDUCE, size_bytes=10, offset=0)], buffer_bytes=10, match="first dependency")
    landed = recv(0, offset=0)
    refuse([send(1)], [landed, Op(Kind.REDUCE, (0,), size_bytes=10, offset=0)], buffer_bytes=10,
           match="with offset -1")
    refuse([send(1)], [recv(0), Op(Kind.REDUCE, (0,), size_bytes=9, offset=0)], buffer_bytes=10,
           match="adds 9 bytes, but its receive brings 10")


def test_circles_within_a_rank_across_messages_and_across_triggers():
    refuse([send(1, deps=(0,))], [recv(0)],
           match=r"circle.*rank 0, operation 0 .*waits for rank 0, operation 0")
    refuse([send(1, deps=(1,)), recv(1)], [send(0, deps=(1,)), recv(0)], match="circle.*rank 1, operation 0")
    refuse([send(1, triggers=((1, 1),))], [recv(0), Op(Kind.COMPUTE, (0,))], match="circle")


@given(ranks=st.integers(2, 8), data=st.data())
@settings(max_examples=40, deadline=None)
def test_a_ring_with_any_one_operation_spoilt_is_refused(ranks, data):
    schedule = ring.all_reduce(ranks, 8 * ranks)
    rank = data.draw(st.integers(0, ranks - 1))
    index = data.draw(st.integers(0, len(schedule.ranks[rank]) - 1))
    op = schedule.ranks[rank][index]
    spoilt = data.draw(st.sampled_from([
        replace(op, size_bytes=op.size_bytes + 1), replace(op, size_bytes=0), replace(op, deps=(10**6,)),
        replace(op, deps=(*op.deps, index)), replace(op, tag=op.tag + 1000, deps=(*op.deps, -1))]))
    ops = list(schedule.ranks[rank])
    ops[index] = spoilt
    all_ranks = list(schedule.ranks)
    all_ranks[rank] = tuple(ops)
    with pytest.raises(BadInput, match=f"rank {rank}, operation"):
        check_schedule(replace(schedule, ranks=tuple(all_ranks)), ranks)


def test_a_ring_of_128_ranks_is_checked_whole():
    schedule = ring.all_reduce(128, 128_000)
    assert max(op.step for op in schedule.ranks[0]) == 253
    check_schedule(schedule, 128)
