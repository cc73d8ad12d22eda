"""Checks 4 to 8 of the verdict: each passes on a sound run and fails on the fault it is there for."""
from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sound_run import (
    DROPPED,
    FRAME,
    LIMIT_BYTES,
    PORTS,
    SENT,
    failed,
    only,
    series,
    sound,
    with_link,
    with_queue,
)

from emulator.fabric.spec import Port
from emulator.fidelity import judge
from emulator.fidelity.accounts import CHECKSUM_ERRORS, SOCKET_DROPS
from emulator.observe import renewed
from emulator.telemetry.counters import Backlog


def test_a_sound_run_passes_and_says_why() -> None:
    verdict = judge(sound())
    assert verdict.verdict == "pass", verdict.reasons
    assert verdict.reasons == ()
    block = json.loads(json.dumps(verdict.as_json()))
    assert block["verdict"] == "pass"
    assert all(set(check) == {"name", "value", "limit", "ok", "why"} and check["why"]
               for check in block["checks"])


def test_names_are_unique() -> None:
    names = [check.name for check in judge(sound()).checks]
    assert len(set(names)) == len(names)


@given(st.integers(1, 10**9))
def test_depths_that_nobody_read_fail(number: int) -> None:
    assert judge(replace(sound(), lost_samples=0)).verdict == "pass"
    check = only(replace(sound(), lost_samples=number), "queue-samples")
    assert check.value == number and "overwritten" in check.why and "lower --rate" in check.why


# 4. conservation

@given(st.sampled_from(["rx_packets", "tx_packets"]), st.sampled_from([port.name for port in PORTS]),
       st.integers(1, 10**6))
def test_a_packet_too_many_or_too_few_fails(counter: str, name: str, more: int) -> None:
    run = sound()
    number = getattr(run.between.links[name], counter)
    check = failed(with_link(run, name, **{counter: number + more}))["conservation"]
    assert check.value >= more
    assert name in check.why


@given(st.sampled_from(["rx_dropped", "rx_errors", "tx_errors"]), st.sampled_from(PORTS),
       st.integers(1, 10**6))
def test_a_drop_of_an_interface_fails(counter: str, port: Port, number: int) -> None:
    check = only(with_link(sound(), port.name, **{counter: number}), "conservation")
    assert check.value == number
    assert f"{port.name} counts {number} {counter}" in check.why


def test_a_packet_lost_inside_a_switch_fails() -> None:
    run = replace(with_queue(sound(), "s1-eth2", dropped_packets=DROPPED - 3), group_packets={})
    check = only(run, "conservation")
    assert check.value == 3
    assert "s1 received 1000 packets and lost 3 inside" in check.why
    assert failed(replace(run, switch_drops={"s1": 3})) == {}


@given(st.integers(1, DROPPED))
def test_packets_still_queued_are_not_lost(number: int) -> None:
    run = with_queue(sound(), "s1-eth2", dropped_packets=DROPPED - number, queued_packets=number)
    assert failed(run) == {}


@pytest.mark.parametrize("counter", SOCKET_DROPS)
def test_a_drop_of_a_socket_fails(counter: str) -> None:
    run = sound()
    between = replace(run.between, sockets={"h1": {}, "h2": {counter: 5}})
    assert f"h2 counts 5 {counter}" in only(replace(run, between=between), "conservation").why


def test_a_drop_of_a_core_or_of_the_datapath_fails() -> None:
    run = sound()
    dropped = replace(run, between=replace(run.between, backlog=Backlog(4, 0)))
    assert only(dropped, "conservation").value == 4
    assert "6 lookups lost" in only(replace(run, datapath_losses={"lookups lost": 6}), "conservation").why


# 5. packet size

def test_a_large_packet_in_a_queue_fails() -> None:
    seen = series()
    large = replace(seen, queued_packets=seen.queued_packets // 5)
    assert "at least 6.489 kB" in only(replace(sound(), series=(large,)), "packet-size").why


def test_a_reading_between_two_packets_is_not_a_large_packet() -> None:
    seen = series()
    queued = seen.queued_packets.copy()
    queued[:] -= 1
    assert failed(replace(sound(), series=(replace(seen, queued_packets=queued),))) == {}


def test_segments_in_fewer_packets_fail() -> None:
    assert "1200 segments" in only(with_queue(sound(), "h1-eth0", sent_packets=1200), "packet-size").why


def test_an_offload_that_is_on_fails() -> None:
    assert "h1-eth0 has gso, gro on" in only(
        replace(sound(), offloads={"h1-eth0": ("gso", "gro"), "h2-eth0": ()}), "packet-size").why


# 6. queues

def test_a_queue_above_its_limit_fails() -> None:
    run = replace(sound(), series=(series(depth=42 * FRAME),), paths=())
    assert only(run, "queue-limit").value == 42 * FRAME - LIMIT_BYTES


def test_waiting_that_no_queue_explains_fails() -> None:
    run = sound()
    check = only(replace(run, paths=(replace(run.paths[0], rtt_s=0.2),)), "littles-law")
    assert check.value > 1
    assert "h1-h2" in check.why


# 7. control

def test_a_packet_in_fails() -> None:
    assert only(replace(sound(), packet_ins=2), "packet-in").value == 2


def test_groups_that_disagree_with_the_queues_fail() -> None:
    assert only(replace(sound(), group_packets={"s1-eth2": SENT + 5}), "groups").value == 5


# 8. flows

def test_an_unfinished_flow_fails() -> None:
    assert "rank 3 waits" in only(replace(sound(), unfinished=("rank 3 waits for rank 2",)), "finished").why


@pytest.mark.parametrize("received", [999_999, 1_000_001])
def test_bytes_missing_or_twice_fail(received: int) -> None:
    assert only(replace(sound(), bytes_received=received), "delivered").value == received


def test_nothing_sent_is_not_success() -> None:
    only(replace(sound(), bytes_expected=0, bytes_received=0), "delivered")


@pytest.mark.parametrize("counter", CHECKSUM_ERRORS)
def test_checksum_errors_fail(counter: str) -> None:
    run = sound()
    between = replace(run.between, sockets={"h1": {counter: 1}})
    assert only(replace(run, between=between), "checksums").value == 1
    assert only(replace(run, payload_errors=1), "checksums").value == 1


def test_reasons_name_their_check() -> None:
    verdict = judge(replace(sound(), packet_ins=2, payload_errors=1))
    assert verdict.verdict == "fail"
    assert [reason.partition(":")[0] for reason in verdict.reasons] == ["packet-in", "checksums"]


def test_round_trips_that_are_not_renewed_are_not_judged():
    """A connection that a strict class starves keeps the handshake's round trip, however long its packets wait."""
    assert not renewed((2.8e-05,) * 60)
    assert not renewed((2.8e-05,) * 40 + tuple(0.1 + number / 1e3 for number in range(20)))
    assert renewed(tuple(0.1 + (number % 7) / 1e3 for number in range(60)))
