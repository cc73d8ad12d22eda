"""The engine over real TCP on loopback: no root, no fabric."""
from contextlib import nullcontext
from dataclasses import replace

from traffic.collectives import halving_doubling, pairwise, ring
from traffic.engine import Engine, EngineOptions
from traffic.jobs import together
from traffic.patterns import flows
from traffic.schedule import PACE, Background, BackgroundFlow, Collective, Job, Kind, Op, Schedule, Workload
from traffic.tcp import TcpTransport
from traffic.transport import Endpoint


def replay(schedule, collective=None, deadline_s=20.0, iterations=1, **options):
    placement = tuple(range(len(schedule.ranks)))
    return run(Workload(schedule.name, schedule, placement, iterations, 1, collective), deadline_s, **options)


def run(workload, deadline_s, **options):
    """Over the loopback, all ranks in this namespace."""
    transport = TcpTransport([Endpoint("127.0.0.1", None)] * len(workload.endpoints), "reno", 1,
                             lambda name: nullcontext())
    try:
        engine = Engine(workload, transport, EngineOptions(deadline_s, **options))
        engine.connect()
        return engine.run()
    finally:
        transport.close()


def check_all_reduce(schedule, size):
    result = replay(schedule, Collective("all-reduce", size), verify=True, iterations=2)
    assert not result.stuck
    assert result.wrong_values == 0 and result.checksum_errors == 0
    assert result.bytes_received == result.bytes_expected == 3 * schedule.bytes_sent
    sends = sum(op.kind is Kind.SEND for ops in schedule.ranks for op in ops)
    assert len(result.messages) == 3 * sends
    assert all(m.start_s <= m.received_s and m.start_s <= m.acked_s for m in result.messages)
    assert [i.measured for i in result.iterations] == [False, True, True]
    assert {c.congestion_control for c in result.connections} == {"reno"}


def test_ring_all_reduce_sums_right():
    check_all_reduce(ring.all_reduce(5, 1_000_003), 1_000_003)


def test_halving_doubling_sums_right_for_six_ranks():
    check_all_reduce(halving_doubling.all_reduce(6, 300_001), 300_001)


def test_a_wrong_schedule_is_noticed():
    """A copy in the place of a sum: every byte arrives, the values are wrong."""
    ranks = ((Op(Kind.SEND, peer=1, size_bytes=1000, offset=0), Op(Kind.RECV, peer=1, size_bytes=1000, offset=0)),
             (Op(Kind.SEND, peer=0, size_bytes=1000, offset=0), Op(Kind.RECV, peer=0, size_bytes=1000, offset=0)))
    result = replay(Schedule("swap", ranks, 1000), Collective("all-reduce", 1000), verify=True)
    assert result.wrong_values > 1000 and result.checksum_errors == 0


def test_computation_delays_a_send_and_spans_are_kept():
    ranks = ((Op(Kind.COMPUTE, duration_s=0.05, phase="work"), Op(Kind.SEND, deps=(0,), peer=1, size_bytes=10)),
             (Op(Kind.RECV, peer=0, size_bytes=10),))
    result = replay(Schedule("delayed", ranks))
    compute = [s for s in result.spans if s.kind == "compute"]
    assert all(s.end_s - s.start_s >= 0.05 for s in compute) and len(compute) == 2
    assert len(result.timer_lateness_s) == 2
    # the receiver waited for its peer's computation: that is no communication
    recv = [s for s in result.spans if s.kind == "recv"]
    assert all(r.start_s >= c.end_s for r, c in zip(recv, compute))


def test_the_deadline_names_who_waits_for_whom():
    ranks = ((Op(Kind.COMPUTE, duration_s=60.0, phase="work", step=3), Op(Kind.SEND, deps=(0,), peer=1, size_bytes=77)),
             (Op(Kind.RECV, peer=0, size_bytes=77, phase="gather", step=7),))
    result = replay(Schedule("stuck", ranks), deadline_s=0.3)
    assert len(result.stuck) == 2
    assert "rank 0 is stuck in work step 3, computing" in result.stuck[0]
    assert "rank 1 is stuck in gather step 7, waiting for 77 bytes that rank 0 has not sent yet" in result.stuck[1]
    assert result.iterations == []


def test_who_waits_for_a_start_computes_nothing():
    schedule, _ = flows("late", [(0, 1), (0, 2)], [1000, 1000], starts_s=[0.0, 0.05])
    result = replay(schedule)
    assert {span.kind for span in result.spans} == {"send", "recv"} and len(result.timer_lateness_s) == 2
    assert {op.phase for op in schedule.ranks[0] if op.kind is Kind.COMPUTE} == {PACE}
    schedule, _ = flows("late", [(0, 1)], [1000], starts_s=[60.0])
    assert "rank 0 is stuck in pace step 0, waiting for its moment (60 s from" in replay(schedule, deadline_s=0.3).stuck[0]


def test_triggers_hold_back_a_send_on_another_rank():
    ranks = ((Op(Kind.SEND, peer=1, size_bytes=500_000),), (Op(Kind.RECV, peer=0, size_bytes=500_000),),
             (Op(Kind.SEND, peer=0, size_bytes=10, triggers=((1, 0),)),), ())
    ranks = (ranks[0] + (Op(Kind.RECV, peer=2, size_bytes=10),),) + ranks[1:]
    result = replay(Schedule("chain", ranks))
    first, second = sorted(result.messages, key=lambda m: m.start_s)[:2]
    assert first.size_bytes == 500_000 and second.start_s >= first.received_s


def pair(size_bytes, step=0):
    return Schedule("pair", ((Op(Kind.SEND, peer=1, size_bytes=size_bytes, step=step),),
                             (Op(Kind.RECV, peer=0, size_bytes=size_bytes, step=step),)))


def jobs_replay(jobs, background=None, deadline_s=20.0, **options):
    """Jobs as (name, schedule, iterations, start_s, after)."""
    listed = [Job(name, Workload(name, schedule, (0, 1), iterations, 1), 2 * number, start_s, after)
              for number, (name, schedule, iterations, start_s, after) in enumerate(jobs)]
    return run(replace(together(listed), background=background), deadline_s, **options)


def test_each_job_has_a_barrier_of_its_own():
    slow = Schedule("slow", ((Op(Kind.COMPUTE, duration_s=0.1), Op(Kind.SEND, deps=(0,), peer=1, size_bytes=10)),
                             (Op(Kind.RECV, peer=0, size_bytes=10),)))
    result = jobs_replay([("slow", slow, 2, 0.0, None), ("quick", pair(1000), 5, 0.05, None)], verify=True)
    assert not result.stuck and result.bytes_received == result.bytes_expected == 3 * 10 + 6 * 1000
    of = [[i for i in result.iterations if i.job == job] for job in (0, 1)]
    assert [[i.index for i in iterations] for iterations in of] == [[0, 1, 2], list(range(6))]
    assert [i.measured for i in of[1]] == [False] + [True] * 5
    assert of[1][0].start_s - of[0][0].start_s >= 0.05
    assert of[1][-1].end_s < of[0][-1].end_s  # six iterations while the other computes
    assert {(m.src, m.dst) for m in result.messages} == {(0, 1), (2, 3)}
    assert result.wrong_by_job == (0, 0)


def test_a_job_begins_after_another_and_later_by_its_start():
    result = jobs_replay([("b", pair(1000), 1, 0.1, 1), ("a", pair(2000), 2, 0.0, None)])
    of = [[i for i in result.iterations if i.job == job] for job in (0, 1)]
    assert of[0][0].start_s - of[1][-1].end_s >= 0.1


def test_only_some_jobs_run_and_who_waits_for_an_absent_one_begins_at_once():
    result = jobs_replay([("a", pair(1000), 1, 0.0, None), ("b", pair(500), 1, 0.0, 0)], only=frozenset({1}))
    assert not result.stuck and result.bytes_received == result.bytes_expected == 2 * 500
    assert {i.job for i in result.iterations} == {1}


def test_the_deadline_names_job_rank_step_peer_and_bytes():
    never = Schedule("never", ((Op(Kind.COMPUTE, duration_s=60.0, phase="work", step=3),
                                Op(Kind.SEND, deps=(0,), peer=1, size_bytes=77)),
                               (Op(Kind.RECV, peer=0, size_bytes=77, phase="gather", step=7),)))
    result = jobs_replay([("quick", pair(1000), 1, 0.0, None), ("never", never, 1, 0.0, None),
                          ("third", pair(10), 1, 0.0, 1), ("late", pair(10), 1, 50.0, None)], deadline_s=0.4)
    assert len(result.stuck) == 4
    assert "job never: rank 0 is stuck in work step 3, computing" in result.stuck[0]
    assert "job never: rank 1 is stuck in gather step 7, waiting for 77 bytes that rank 0 has not" in result.stuck[1]
    assert "job third: not begun" in result.stuck[2] and "it waits for job never" in result.stuck[2]
    assert "job late: not begun" in result.stuck[3] and "starts at 50 s" in result.stuck[3]
    assert {i.job for i in result.iterations} == {0}


def test_the_background_ends_with_the_jobs_and_is_counted_apart():
    slow = Schedule("slow", ((Op(Kind.COMPUTE, duration_s=0.15), Op(Kind.SEND, deps=(0,), peer=1, size_bytes=10)),
                             (Op(Kind.RECV, peer=0, size_bytes=10),)))
    flows = tuple(BackgroundFlow(0.01 * n, n % 2, 1 - n % 2, 3000 + n) for n in range(1000))
    result = jobs_replay([("slow", slow, 1, 0.0, None)], Background("bg", (0, 1), flows, 0.1))
    assert not result.stuck and result.bytes_received == result.bytes_expected == 20
    assert 20 <= len(result.background) < 200
    assert all(m.size_bytes == 3000 + m.tag and m.phase == "background" for m in result.background)
    assert all({m.src, m.dst} == {2, 3} for m in result.background)
    assert len(result.messages) == 2 and len(result.background_open) < 10


def test_what_waits_for_a_send_waits_for_its_acknowledgement():
    """And a receive that comes between does not: only its own message does."""
    ranks = ((Op(Kind.SEND, peer=1, size_bytes=500_000),
              Op(Kind.SEND, deps=(0,), peer=2, size_bytes=10, phase="after")),
             (Op(Kind.RECV, peer=0, size_bytes=500_000),), (Op(Kind.RECV, peer=0, size_bytes=10),))
    result = replay(Schedule("waits", ranks), iterations=2)
    assert not result.stuck and len(result.messages) == 6
    for iteration in range(3):
        first, second = sorted((m for m in result.messages if m.iteration == iteration), key=lambda m: m.dst)
        assert second.start_s >= first.acked_s > first.start_s


def test_all_to_all_over_loopback_moves_every_block():
    schedule = pairwise.all_to_all(5, 200_003, slices=3)
    result = replay(schedule, Collective("all-to-all", 200_003), verify=True, iterations=2)
    assert not result.stuck and result.checksum_errors == 0
    assert result.bytes_received == result.bytes_expected == 3 * schedule.bytes_sent
