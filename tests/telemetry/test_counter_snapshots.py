"""Snapshots of counters and what came between two of them."""
from __future__ import annotations

import dataclasses
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.telemetry.shaped_pair import Pair, blast, drained, overfill, reshape, run

from emulator.errors import MachineLacks
from emulator.fabric.spec import HostSite
from emulator.telemetry.counters import (
    Backlog,
    QueueCounters,
    Snapshot,
    difference,
    parse_protocol_counters,
    parse_softnet,
    take_snapshot,
)
from emulator.telemetry.links import LinkCounters
from emulator.telemetry.namespaces import inside

HOST = HostSite("h1", "h1", "10.0.0.2", "h1-eth0")

names = st.text("abcXYZ", min_size=1, max_size=6)


@given(st.dictionaries(names, st.dictionaries(names, st.integers(-1, 2**63)), max_size=4))
def test_protocol_counters_are_read_as_written(table: dict[str, dict[str, int]]) -> None:
    text = "".join(f"{protocol}: {' '.join(row)}\n{protocol}: {' '.join(map(str, row.values()))}\n"
                   for protocol, row in table.items())
    assert parse_protocol_counters(text) == {
        f"{protocol}.{name}": value for protocol, row in table.items() for name, value in row.items()}


def test_protocol_counters_out_of_step_are_refused() -> None:
    with pytest.raises(MachineLacks, match="names of Tcp .* values of Udp"):
        parse_protocol_counters("Tcp: A B\nUdp: 1 2\n")


def test_softnet_is_hexadecimal_and_summed() -> None:
    assert parse_softnet("000000ff 0000000a 00000001 0\n00000001 00000010 00000000 0\n") == Backlog(26, 1)


counts = st.integers(0, 2**31)


@given(counts, counts, counts)
def test_difference_of_sums_is_the_addend(first: int, second: int, state: int) -> None:
    def snapshot(time_s: float, value: int, state: int) -> Snapshot:
        return Snapshot(time_s, {"p": LinkCounters(*[value] * 8)},
                        {"p": QueueCounters(value, value, value % 2**32, value % 2**32, state, state)},
                        {"h": {"Tcp.RetransSegs": value}}, Backlog(value, value))

    between = difference(snapshot(1, first, 0), snapshot(3, first + second, state))
    assert between.time_s == 2
    assert set(dataclasses.astuple(between.links["p"])) == {second}
    assert between.queues["p"] == QueueCounters(second, second, second, second, state, state)
    assert between.sockets == {"h": {"Tcp.RetransSegs": second}}
    assert between.backlog == Backlog(second, second)


def test_an_interface_that_went_is_named() -> None:
    before = Snapshot(0, {"s1-eth1": LinkCounters()}, {}, {}, Backlog())
    with pytest.raises(MachineLacks, match="s1-eth1"):
        difference(before, Snapshot(1, {}, {}, {}, Backlog()))


@pytest.mark.root
def test_a_burst_is_accounted_for(pair: Pair) -> None:
    before = take_snapshot(pair.ports, [HOST])
    overfill("s1-eth1", 100)
    drained("s1-eth1")
    between = difference(before, take_snapshot(pair.ports, [HOST]))
    queue, link, peer = between.queues["s1-eth1"], between.links["s1-eth1"], between.links["h1-eth0"]
    assert queue.dropped_packets > 0
    assert queue.sent_packets + queue.dropped_packets + queue.queued_packets == 100
    assert queue.sent_packets == link.tx_packets == peer.rx_packets
    assert queue.sent_bytes == link.tx_bytes == peer.rx_bytes
    assert queue.shaped
    assert between.sockets["h1"]["IpExt.InNoECTPkts"] == peer.rx_packets


@pytest.mark.root
def test_segments_tell_packets_above_the_mtu(pair: Pair) -> None:
    run("ethtool -K s1-eth1 tx on sg on gso on tso on")
    reshape("s1-eth1", 50_000_000)
    before = take_snapshot(pair.ports, [HOST])
    with inside("h1"):
        listener = socket.create_server(("10.0.0.2", 5000))
    with listener, socket.create_connection(("10.0.0.2", 5000), timeout=5) as sender:
        receiver, _ = listener.accept()
        with receiver:
            sender.sendall(bytes(200_000))
            received = 0
            while received < 200_000:
                received += len(receiver.recv(65536))
    between = difference(before, take_snapshot(pair.ports, [HOST]))
    assert between.queues["s1-eth1"].sent_packets > between.links["s1-eth1"].tx_packets


@pytest.mark.root
def test_a_missing_interface_is_a_sentence(pair: Pair) -> None:
    blast(1)
    gone = dataclasses.replace(pair.switch, name="s1-eth9", ifindex=99)
    with pytest.raises(MachineLacks, match="s1-eth9"):
        take_snapshot([gone], [])
