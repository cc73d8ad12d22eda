"""Netlink dumps: the walk over messages, and the numbers against those of tc and ip."""
from __future__ import annotations

import json
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.telemetry.shaped_pair import Pair, blast, drained, overfill, reshape, run

from emulator.errors import MachineLacks
from emulator.telemetry.links import read_links
from emulator.telemetry.namespaces import inside
from emulator.telemetry.netlink import attributes, messages
from emulator.telemetry.qdisc import SAMPLED, WORDS, QueueReader


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)


@given(st.lists(st.tuples(st.integers(1, 100), st.binary(max_size=40))))
def test_attributes_come_back_as_they_were_packed(packed: list[tuple[int, bytes]]) -> None:
    data = b"".join(_padded(struct.pack("=HH", 4 + len(value), kind) + value) for kind, value in packed)
    walked = [(kind, data[start:end]) for kind, start, end in attributes(memoryview(data), 0, len(data))]
    assert walked == packed


@given(st.lists(st.tuples(st.sampled_from([16, 36]), st.binary(max_size=40))))
def test_only_messages_of_the_kind_asked_for(packed: list[tuple[int, bytes]]) -> None:
    data = b"".join(_padded(struct.pack("=IHHII", 16 + len(body), kind, 0, 0, 0) + body)
                    for kind, body in packed)
    walked = [data[start + 16:end] for start, end in messages(memoryview(data), 0, len(data), 36)]
    assert walked == [body for kind, body in packed if kind == 36]


@pytest.mark.parametrize("size", [0, 3, 4000])
def test_a_length_that_cannot_be_is_refused(size: int) -> None:
    data = struct.pack("=IHHII", size, 36, 0, 0, 0)
    with pytest.raises(MachineLacks, match=f"{size} bytes"):
        list(messages(memoryview(data), 0, len(data), 36))


def _readers(pair: Pair) -> QueueReader:
    return QueueReader([(port.netns, port.ifindex) for port in pair.ports])


@pytest.mark.root
def test_totals_are_those_of_tc(pair: Pair) -> None:
    overfill("s1-eth1", 120)
    blast(10, "h1")
    drained("s1-eth1")
    reading = _readers(pair).read()
    for column, port in enumerate(pair.ports):
        with inside(port.netns):
            root = json.loads(run(f"tc -s -j qdisc show dev {port.name} root"))[0]
        assert reading.shaped[column]
        assert root["kind"] == "htb"
        seen = [int(array[column]) for array in (
            reading.sent_bytes, reading.sent_packets, reading.dropped_packets, reading.backlog_bytes,
            reading.queued_packets)]
        assert seen == [root[key] for key in ("bytes", "packets", "drops", "backlog", "qlen")], port.name
    assert reading.dropped_packets[0] > 0, "120 packets of 1514 bytes do not fit a queue of 60 kB"
    assert reading.dropped_packets[0] + reading.sent_packets[0] == 120
    assert reading.direct_packets.tolist() == [0, 0]


@pytest.mark.root
def test_depth_is_that_of_the_leaf(pair: Pair) -> None:
    reader = _readers(pair)
    reshape("s1-eth1", 8_000)
    blast(20)
    blast(200)
    depth = reader.read()
    leaf = next(entry for entry in json.loads(run("tc -s -j qdisc show dev s1-eth1"))
                if entry["kind"] == "bfifo")
    # at 8 kb/s a packet takes 1.5 s: nothing leaves between the two readings
    assert depth.backlog_bytes[0] == leaf["backlog"] == 39 * 1514
    assert depth.queued_packets[0] == leaf["qlen"] == 39
    assert depth.dropped_packets[0] == leaf["drops"]


@pytest.mark.root
def test_words_and_reading_agree_and_a_removed_htb_is_seen(pair: Pair) -> None:
    blast(20)
    drained("s1-eth1")
    reader = _readers(pair)
    words = np.zeros((SAMPLED, 2), np.uint32)
    reader.read_words(words)
    whole = reader.read()
    assert words[WORDS.index("bytes")].tolist() == whole.sent_bytes.tolist()
    assert reader.relayouts == 0
    assert reader.shaped.tolist() == [True, True]
    run("tc qdisc del dev s1-eth1 root")
    reader.read_words(words)
    assert reader.relayouts == 1
    assert reader.shaped.tolist() == [False, True]


@pytest.mark.root
def test_packets_without_a_class_are_counted(pair: Pair) -> None:
    run("tc qdisc replace dev s1-eth1 root handle 2: htb default 9")
    blast(7)
    assert _readers(pair).read().direct_packets.tolist() == [7, 0]


@pytest.mark.root
def test_link_counters_are_those_of_ip(pair: Pair) -> None:
    blast(30)
    blast(5, "h1")
    drained("s1-eth1")
    for port in pair.ports:
        with inside(port.netns):
            shown = json.loads(run(f"ip -s -j link show dev {port.name}"))[0]["stats64"]
        counters = read_links(port.netns)[port.ifindex]
        for way, side in (("rx", shown["rx"]), ("tx", shown["tx"])):
            for key in ("packets", "bytes", "dropped", "errors"):
                assert getattr(counters, f"{way}_{key}") == side[key], (port.name, way, key)
    assert read_links()[pair.switch.ifindex].tx_packets == 30


@pytest.mark.root
def test_an_absent_namespace_is_a_sentence(sandbox: None) -> None:
    with pytest.raises(MachineLacks, match="/run/netns/h9"):
        QueueReader([("h9", 2)])
