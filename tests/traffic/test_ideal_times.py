"""The simulation against the closed forms, and both against the bound of the busiest link."""
from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.errors import BadInput
from tests.traffic.conftest import star
from traffic import formulas, patterns
from traffic.collectives import chain, halving_doubling, hierarchical, pairwise, ring, tree
from traffic.collectives.parameter_server import parameter_server
from traffic.ideal import formula, ideal, message_ideal_s
from traffic.paths import Paths
from traffic.pipeline import pipeline
from traffic.placement import place
from traffic.schedule import Collective, Kind, Op, Schedule, Workload
from traffic.simulate import simulate
from traffic.training import training
from traffic.wire import Wire

WIRE = Wire(10e6, 1500)


def job(schedule, hosts, kind="linear", collective="all-reduce", seed=0):
    placement = place(kind, len(schedule.ranks), star(hosts).hosts, seed)
    return Workload(schedule.name, schedule, placement,
                    collective=Collective(collective, schedule.buffer_bytes))


@pytest.mark.parametrize("kind", ["linear", "random"])
@pytest.mark.parametrize("ranks", [2, 3, 5, 8, 13, 16])
@pytest.mark.parametrize("make", [ring.all_reduce, ring.reduce_scatter, ring.all_gather])
def test_ring_simulation_within_2_percent_of_the_formula(k4, make, ranks, kind):
    workload, paths = job(make(ranks, ranks * 144_800), 16, kind), Paths(k4)
    simulated = simulate(workload.schedule, workload.placement, paths, WIRE)
    assert simulated.completion_s == pytest.approx(formula(workload, paths, WIRE), rel=0.02)


@pytest.mark.parametrize("ranks", [2, 4, 8, 16])
def test_halving_doubling_simulation_within_2_percent_of_the_formula(k4, ranks):
    workload, paths = job(halving_doubling.all_reduce(ranks, ranks * 144_800), 16), Paths(k4)
    simulated = simulate(workload.schedule, workload.placement, paths, WIRE)
    assert simulated.completion_s == pytest.approx(formula(workload, paths, WIRE), rel=0.02)


def star_time_s(paths, schedule):
    return simulate(schedule, place("linear", len(schedule.ranks), paths.graph.hosts, 0), paths, WIRE).completion_s


def test_other_collectives_within_7_percent_of_their_formulas(star16):
    paths, size_bytes, beta_s = Paths(star16), 1_000_000, WIRE.beta_s(shared=True)
    alpha_s = 8 * 1514 / 10e6
    racks = [[4 * rack + i for i in range(4)] for rack in range(4)]
    rings = star_time_s(paths, hierarchical.all_reduce(racks, size_bytes))
    assert rings == pytest.approx(formulas.hierarchical_s(4, 4, size_bytes, alpha_s, beta_s), rel=0.07)
    blocks = star_time_s(paths, pairwise.all_to_all(16, size_bytes))
    assert blocks == pytest.approx(formulas.all_to_all_s(16, size_bytes, alpha_s, beta_s), rel=0.02)
    trees = star_time_s(paths, tree.all_reduce(16, size_bytes, slices=40))
    assert trees == pytest.approx(formulas.double_binary_tree_s(16, size_bytes, alpha_s, beta_s), rel=0.07)
    for servers in (2, 4, 8):
        pushed = star_time_s(paths, parameter_server(16, servers, size_bytes))
        want_s = formulas.parameter_server_s(16 - servers, servers, size_bytes, alpha_s, WIRE.beta_s())
        assert pushed == pytest.approx(want_s, rel=0.07)
        sliced = star_time_s(paths, parameter_server(16, servers, size_bytes, slices=4))
        assert sliced < pushed  # slices let workers pull while others still push
    for down in (chain.broadcast, chain.reduce):  # one buffer long, and a slice for each further rank
        time_s = star_time_s(paths, down(16, size_bytes, slices=50))
        assert time_s == pytest.approx(size_bytes * (1 + 14 / 50) * beta_s + 15 * alpha_s, rel=0.05)


def test_a_barrier_takes_a_round_trip_of_small_frames_per_doubling(star16):
    paths = Paths(star16)
    path = paths.first_links("h1", "h2")
    time_s = star_time_s(paths, pairwise.barrier(16))
    assert time_s == pytest.approx(4 * WIRE.one_way_s(path, 1) + WIRE.ack_s(path), rel=0.02)


@pytest.mark.parametrize("delay_s", [0.0, 0.002])
def test_latency_bound_ring(star16, delay_s):
    """One frame a chunk: here the delays are most of the time and must be right too."""
    wire = Wire(10e6, 1500, delay_s)
    workload, paths = job(ring.all_reduce(16, 16 * 1448), 16), Paths(star16)
    simulated = simulate(workload.schedule, workload.placement, paths, wire)
    path = paths.first_links("h1", "h2")
    delivered_s = simulated.completion_s - wire.ack_s(path)  # the formula does not wait for the last ACK
    assert delivered_s == pytest.approx(formula(workload, paths, wire), rel=0.02)


def test_slices_hide_delays_but_never_beat_the_bandwidth(k4):
    paths = Paths(k4)
    times = [ideal(job(ring.all_reduce(16, 16 * 144_800, slices), 16), paths, WIRE) for slices in (1, 2, 4)]
    completions = [time.simulated.completion_s for time in times]
    assert completions[1] < completions[0] and completions[2] == pytest.approx(completions[1])
    assert all(time.busiest.time_s <= time.simulated.completion_s for time in times)
    assert len({time.formula_s for time in times}) == 1


@given(ranks=st.integers(2, 16), size_bytes=st.integers(16_000, 10**6), seed=st.integers(0, 99),
       slices=st.integers(1, 3), make=st.sampled_from([ring.all_reduce, halving_doubling.all_reduce]))
@settings(max_examples=25, deadline=None)
def test_no_simulation_beats_the_busiest_host_link(k4, ranks, size_bytes, seed, slices, make):
    workload = job(make(ranks, size_bytes, slices), 16, "random", seed=seed)
    simulated = simulate(workload.schedule, workload.placement, Paths(k4), WIRE)
    most = max(sum(op.size_bytes for op in ops if op.kind is kind)
               for ops in workload.schedule.ranks for kind in (Kind.SEND, Kind.RECV))
    assert simulated.completion_s >= most * WIRE.beta_s()
    assert max(map(max, filter(None, simulated.end_s))) == simulated.completion_s


@pytest.mark.parametrize("stages, microbatches", [(1, 4), (2, 4), (4, 8), (8, 8), (4, 2)])
def test_pipeline_with_small_transfers_is_the_1f1b_formula(k4, stages, microbatches):
    schedule = pipeline(stages, microbatches, 100, 0.05, 0.1)
    time_s = simulate(schedule, place("linear", stages, k4.hosts, 0), Paths(k4), WIRE).completion_s
    assert time_s == pytest.approx(formulas.pipeline_1f1b_s(stages, microbatches, 0.05, 0.1), rel=0.02)
    bubble = 1 - microbatches * 0.15 / time_s
    assert bubble == pytest.approx(formulas.pipeline_bubble(stages, microbatches), abs=0.02)


def test_training_is_a_pipeline_and_a_ring(k4):
    schedule = training(4, 4, 8, 100, 400_000, 0.05, 0.1)
    time_s = simulate(schedule, place("linear", 16, k4.hosts, 0), Paths(k4), WIRE).completion_s
    alpha_s = 3 * 8 * 1514 / 10e6  # a rack pair has one switch on its way, a pod pair three, cross-pod five
    want_s = (formulas.pipeline_1f1b_s(4, 8, 0.05, 0.1)
              + formulas.ring_all_reduce_s(4, 400_000, alpha_s, WIRE.beta_s(shared=True)))
    assert time_s == pytest.approx(want_s, rel=0.02)


def test_incast_is_bound_by_the_receiver_and_a_pair_by_its_path(k4):
    paths = Paths(k4)
    schedule, placement = patterns.flows("pattern", patterns.incast(16, 15), [100_000] * 15)
    result = ideal(Workload("incast", schedule, placement), paths, WIRE)
    assert result.ideal_s == pytest.approx(15 * 100_000 * WIRE.beta_s(), rel=0.02)
    assert result.formula_s is None and result.busiest.destination == "h16"
    schedule, placement = patterns.flows("pattern", patterns.pair(16, 0, 2), [1_000_000])
    path = paths.first_links("h1", "h3")
    result = ideal(Workload("pair", schedule, placement), paths, WIRE)
    assert result.ideal_s == pytest.approx(WIRE.one_way_s(path, 1_000_000)), "nobody waits for the last ACK"
    pair = Workload("pair", schedule, placement)
    assert message_ideal_s(pair, paths, WIRE, 0, 1, 1_000_000) == pytest.approx(result.ideal_s + WIRE.ack_s(path))


def test_an_oversubscribed_fabric_is_bound_by_its_uplinks(oversubscribed):
    schedule, placement = patterns.flows("pattern", patterns.stride(8, 4), [100_000] * 8)
    result = ideal(Workload("stride", schedule, placement), Paths(oversubscribed), WIRE)
    assert result.ideal_s == result.busiest.time_s == pytest.approx(4 * 100_000 * WIRE.beta_s(shared=True))
    assert result.simulated.completion_s < 0.6 * result.ideal_s


def test_operations_end_in_their_order(star16):
    wait = Op(Kind.COMPUTE, duration_s=1.0)
    schedule = Schedule("triggered", (
        (wait, Op(Kind.SEND, (0,), peer=1, size_bytes=1448)),
        (Op(Kind.RECV, peer=0, size_bytes=1448), Op(Kind.COMPUTE, duration_s=0.5, triggers=((0, 1),)))))
    end_s = simulate(schedule, (0, 1), Paths(star16), WIRE).end_s
    arrived_s = 1.0 + 2 * 8 * 1514 / 10e6
    assert end_s[0][0] == 1.0 and end_s[1][0] == pytest.approx(arrived_s)
    acknowledged_s = arrived_s + 2 * 8 * 66 / 10e6
    assert end_s[0][1] == pytest.approx(acknowledged_s) and end_s[1][1] == pytest.approx(acknowledged_s + 0.5)


def test_nothing_to_do_takes_no_time(star16):
    assert simulate(Schedule("nothing", ((),)), (0,), Paths(star16), WIRE).completion_s == 0.0


def test_bus_bandwidth_of_an_ideal_collective_is_the_goodput():
    beta_s = WIRE.beta_s()
    ring_s = formulas.ring_all_reduce_s(16, 10**6, 0.0, beta_s)
    assert formulas.busbw_bps("all-reduce", 16, 10**6, ring_s) == pytest.approx(8 / beta_s)
    half_s = formulas.ring_half_s(16, 10**6, 0.0, beta_s)
    assert formulas.busbw_bps("all-gather", 16, 10**6, half_s) == pytest.approx(8 / beta_s)
    assert formulas.busbw_bps("broadcast", 16, 10**6, 2.0) == formulas.algbw_bps(10**6, 2.0) == 4e6
    with pytest.raises(BadInput, match='did you mean "all-gather"'):
        formulas.busbw_bps("allgather", 4, 1, 1.0)


def test_other_formulas_against_hand_calculation():
    assert formulas.halving_doubling_s(16, 1600, 1.0, 0.01) == pytest.approx(8 + 2 * 15 * 100 * 0.01)
    assert formulas.double_binary_tree_s(16, 1000, 1.0, 0.01) == pytest.approx(8 + 20)
    apart = formulas.hierarchical_s(4, 4, 1600, 1.0, 0.01)
    assert apart == pytest.approx(2 * (3 + 12) + 2 * 3 + 2 * 0.75 * 4)
    shared = formulas.hierarchical_s(4, 4, 1600, 1.0, 0.01, shared_uplink=True)
    assert shared == pytest.approx(2 * (3 + 12) + 2 * 3 + 2 * 0.75 * 16)
    assert formulas.all_to_all_s(16, 1600, 1.0, 0.01) == pytest.approx(15 + 15)
    assert formulas.parameter_server_s(9, 3, 100, 1.0, 0.01) == pytest.approx(2 * (1 + 3))
    assert formulas.parameter_server_s(3, 9, 100, 1.0, 0.01) == pytest.approx(2 * (1 + 1))
