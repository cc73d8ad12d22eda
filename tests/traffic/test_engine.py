"""The engine over real TCP on loopback: no root, no fabric."""
from contextlib import nullcontext

from traffic.collectives import halving_doubling, ring
from traffic.engine import Engine, EngineOptions
from traffic.schedule import Collective, Kind, Op, Schedule, Workload
from traffic.transport import Endpoint, TcpTransport


def replay(schedule, collective=None, deadline_s=20.0, iterations=1, **options):
    ranks = len(schedule.ranks)
    workload = Workload(schedule.name, schedule, tuple(range(ranks)), iterations, 1, collective)
    transport = TcpTransport([Endpoint("127.0.0.1", None)] * ranks, "reno", 1, lambda name: nullcontext())
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


def test_triggers_hold_back_a_send_on_another_rank():
    ranks = ((Op(Kind.SEND, peer=1, size_bytes=500_000),), (Op(Kind.RECV, peer=0, size_bytes=500_000),),
             (Op(Kind.SEND, peer=0, size_bytes=10, triggers=((1, 0),)),), ())
    ranks = (ranks[0] + (Op(Kind.RECV, peer=2, size_bytes=10),),) + ranks[1:]
    result = replay(Schedule("chain", ranks))
    first, second = sorted(result.messages, key=lambda m: m.start_s)[:2]
    assert first.size_bytes == 500_000 and second.start_s >= first.received_s
