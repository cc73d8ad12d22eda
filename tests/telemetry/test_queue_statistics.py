"""Percentiles over time, utilisation, bursts, fairness, and the blocks of the summary."""
from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from emulator.fabric.spec import Port
from emulator.telemetry.counters import Backlog, QueueCounters, Snapshot
from emulator.telemetry.series import QueueSeries
from emulator.telemetry.statistics import (
    all_ticks,
    depth_statistics,
    held_s,
    jain,
    max_over_mean,
    microbursts,
    utilisation,
    weighted_percentiles,
)
from emulator.telemetry.packets import PacketRecord, QueueRecord
from emulator.telemetry.summary import exact_queues, links_block, loss_block, queues_block
from topologies.graph import Graph, Host, Link, Switch

FRAME = 1514
RATE_BPS = 1_211_200.0  # a frame takes 10 ms


def _port(name: str = "s1-eth1", node: str = "s1", link: int = 0, netns: str | None = None,
          rate_bps: float = RATE_BPS) -> Port:
    return Port(name, node, 1, 1, netns, rate_bps, 60_000, link, "")


def _series(ports: list[Port], sent: np.ndarray, depth: np.ndarray | None = None,
            period_s: float = 0.01, late: np.ndarray | None = None) -> QueueSeries:
    count = len(sent)
    due_s = 100.0 + np.arange(count) * period_s
    late = np.zeros(count) if late is None else late
    depth = np.zeros_like(sent) if depth is None else depth
    return QueueSeries(tuple(ports), period_s, due_s + late, np.zeros(count), late, depth,
                       depth // FRAME, sent, np.zeros_like(sent), np.full(len(ports), np.nan))


samples = st.lists(st.tuples(st.integers(0, 1000), st.integers(1, 9)), min_size=1, max_size=60)


@given(samples, st.floats(0, 1))
def test_percentiles_are_those_of_the_samples_repeated(pairs: list[tuple[int, int]], quantile: float) -> None:
    values, weights = map(np.array, zip(*pairs))
    repeated = np.sort(np.repeat(values, weights))
    expected = np.percentile(repeated, quantile * 100, method="inverted_cdf")
    close = np.percentile(repeated, max(0.0, quantile * (1 - 1e-9)) * 100, method="inverted_cdf")
    assert weighted_percentiles(values, weights.astype(float), [quantile])[0] in (expected, close)


def test_a_sample_counts_for_the_time_it_stands() -> None:
    assert held_s(np.array([0.0, 1.0, 4.0])).tolist() == [1.0, 3.0, 0.0]
    series = QueueSeries((_port(),), 1.0, np.array([0.0, 9.0, 10.0]), np.zeros(3), np.zeros(3),
                         np.array([[100], [900], [5000]]), np.zeros((3, 1)), np.zeros((3, 1)),
                         np.zeros((3, 1)), np.array([np.nan]))
    depth = depth_statistics(series)[0]
    assert (depth.mean_bytes, depth.p50_bytes, depth.p95_bytes, depth.max_bytes) == (180, 100, 900, 5000)


@given(st.lists(st.integers(0, 60_000), min_size=2, max_size=50))
def test_percentiles_are_in_order(depth: list[int]) -> None:
    column = np.array(depth)[:, None]
    found = depth_statistics(_series([_port()], column * 0, column))[0]
    assert found.p50_bytes <= found.p95_bytes <= found.p99_bytes <= found.max_bytes == max(depth)
    assert found.mean_bytes <= found.max_bytes * (1 + 1e-9)


@given(st.floats(0.0, 1.0), st.integers(300, 600))
def test_utilisation_of_a_steady_port(load: float, count: int) -> None:
    sent = (np.arange(count) * load).astype(int)[:, None] * FRAME
    mean, peak = utilisation(_series([_port()], sent), FRAME)
    assert mean[0] == pytest.approx(load, abs=1 / (count - 1) + 1e-9)
    assert mean[0] <= peak[0] + 1e-9
    assert peak[0] <= load + 1 / 100 + 1e-9


def test_bursts_are_unbroken_runs_of_hot_intervals() -> None:
    # 20 frames take 200 ms; 400 ms full, 400 ms silent, 200 ms full, then 40 % for a second
    packets = np.concatenate([np.ones(40), np.zeros(40), np.ones(20), np.tile([1, 0, 1, 0, 0], 20)])
    sent = np.append(0, np.cumsum(packets)).astype(int)[:, None] * FRAME
    durations = microbursts(_series([_port()], sent), FRAME)[0]
    assert durations.tolist() == pytest.approx([0.4, 0.2])


@given(st.lists(st.floats(0, 1e9), min_size=1, max_size=20))
@example([3.4e-161, 3.4e-161])
def test_jain_lies_between_one_over_n_and_one(values: list[float]) -> None:
    index = jain(np.array(values))
    assert 1 / len(values) - 1e-9 <= index <= 1 + 1e-9
    assert max_over_mean(np.array(values)) >= 1 - 1e-9


def test_jain_of_the_extremes() -> None:
    assert jain(np.array([5.0, 5.0, 5.0, 5.0])) == pytest.approx(1)
    assert jain(np.array([0.0, 0.0, 0.0, 8.0])) == pytest.approx(1 / 4)
    assert max_over_mean(np.array([0.0, 0.0, 0.0, 8.0])) == 4


@given(st.sets(st.integers(1, 40), max_size=20))
def test_missed_ticks_are_late_too(missed: set[int]) -> None:
    kept = [tick for tick in range(42) if tick not in missed]
    whole = _series([_port()], np.zeros((42, 1), int))
    series = QueueSeries(whole.ports, 0.01, whole.time_s[kept], *(np.zeros(len(kept)),) * 2,
                         *(np.zeros((len(kept), 1)),) * 4, whole.unshaped_s)
    due_s, late_s = all_ticks(series)
    found = dict(zip(np.rint((due_s - 100) / 0.01).astype(int).tolist(), np.rint(late_s / 0.01).tolist()))
    assert found == {tick: next(taken for taken in kept if taken >= tick) - tick for tick in range(42)}


def _graph() -> Graph:
    hosts = tuple(Host(f"h{i}", i, f"10.0.0.{i}", "", f"e{i}") for i in (1, 2))
    switches = tuple(Switch(name, i, tier, "", 0) for i, (name, tier) in
                     enumerate([("e1", 0), ("e2", 0), ("c1", 1)]))
    links = (Link(0, "h1", 0, "e1", 1, 1.0, "host-edge"), Link(1, "h2", 0, "e2", 1, 1.0, "host-edge"),
             Link(2, "e1", 2, "c1", 1, 1.0, "edge-core"), Link(3, "e2", 2, "c1", 2, 1.0, "edge-core"))
    return Graph("two", hosts, switches, links)


def test_the_links_block_tells_tiers_and_directions_apart() -> None:
    ports = [_port("e1-eth2", "e1", 2), _port("e2-eth2", "e2", 3), _port("c1-eth1", "c1", 2),
             _port("e1-eth1", "e1", 0)]
    hosts = [_port("h1-eth0", "h1", 0, "h1")]
    steps = np.arange(401)[:, None] * FRAME
    series = [_series(ports, steps * np.array([1, 0, 0, 0])), _series(hosts, steps)]
    block = links_block(series, _graph(), FRAME)
    assert block["utilisation_mean"] == pytest.approx(2 / 5)
    assert block["utilisation_peak"] == pytest.approx(1)
    assert block["by_tier"]["edge-core"]["utilisation_up_mean"] == pytest.approx(1 / 2)
    assert block["by_tier"]["edge-core"]["utilisation_down_mean"] == 0
    assert block["by_tier"]["host-edge"]["utilisation_up_mean"] == pytest.approx(1)
    assert block["uplink_jain"] == pytest.approx(1 / 2)
    assert block["uplink_max_over_mean"] == pytest.approx(2)
    json.dumps(block)


def test_of_a_port_with_classes_the_deepest_stands_with_its_own_limit() -> None:
    """A class that is full is at 100 % of its part of the buffer, not at a sixth of the port's."""
    block = queues_block([_series([_port()], np.zeros((3, 1), int))], FRAME)
    assert block["limit_bytes"] == 60_000
    queues = tuple(QueueRecord("s1-eth1", number, mean, 0, 0, 0, limit, 0, 0, 0, 1, 1, 0, 0, 0, 0, 1, limit)
                   for number, (mean, limit) in enumerate(((100.0, 50_000), (9000.0, 10_000))))
    nothing = np.zeros(0)
    exact = exact_queues(block, PacketRecord(queues, (), nothing, nothing, nothing, 0))
    assert exact["max_bytes"] == exact["limit_bytes"] == 10_000
    assert exact["by_port"][0]["limit_bytes"] == 10_000


def test_the_queues_block_names_the_deepest_switch_port() -> None:
    depth = np.full((100, 2), [1514, 45_420])
    ports = [_port("e1-eth1"), _port("e2-eth1")]
    host = _series([_port("h1-eth0", "h1", 0, "h1")], np.zeros((100, 1), int), np.full((100, 1), 59_000))
    block = queues_block([_series(ports, depth * 0, depth), host], FRAME)
    assert block["port"] == "e2-eth1"
    assert block["p99_bytes"] == 45_420
    assert block["delay_p99_s"] == pytest.approx(0.3)
    assert [row["port"] for row in block["by_port"]] == ["e1-eth1", "e2-eth1", "h1-eth0"]
    json.dumps(block)


def test_blocks_of_nothing_are_empty_not_wrong() -> None:
    empty = _series([_port("e1-eth1", "e1", 0)], np.zeros((0, 1), int))
    assert queues_block([empty], FRAME)["max_bytes"] == 0
    assert queues_block([], FRAME)["port"] is None
    assert links_block([empty], _graph(), FRAME)["utilisation_mean"] == 0
    assert links_block([], _graph(), FRAME)["by_tier"] == {}


def test_the_loss_block_divides_by_what_was_offered() -> None:
    ports = [_port("h1-eth0", "h1", 0, "h1"), _port("e1-eth1", "e1", 0), _port("e2-eth1", "e2", 1)]
    queues = {"h1-eth0": QueueCounters(sent_packets=90, dropped_packets=10),
              "e1-eth1": QueueCounters(sent_packets=40, dropped_packets=20), "e2-eth1": QueueCounters()}
    sockets = {"h1": {"Tcp.RetransSegs": 4}, "h2": {"Tcp.RetransSegs": 3, "IpExt.InECT0Pkts": 30,
                                                    "IpExt.InECT1Pkts": 0, "IpExt.InCEPkts": 10}}
    block = loss_block(Snapshot(1.0, {}, queues, sockets, Backlog()), ports)
    assert block["dropped_packets"] == 30
    assert block["loss_rate"] == pytest.approx(0.3)
    assert block["retransmitted_segments"] == 7
    assert block["ecn_marked_fraction"] == pytest.approx(0.25)
    assert [(row["port"], row["loss_rate"]) for row in block["by_link"]] == [
        ("e1-eth1", pytest.approx(1 / 3)), ("h1-eth0", pytest.approx(0.1))]
