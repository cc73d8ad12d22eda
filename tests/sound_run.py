"""A run without a fault, as the verdict sees it, and ways to put one fault into it."""
from __future__ import annotations

from dataclasses import replace

import numpy as np

from emulator.fabric.spec import Port
from emulator.fidelity import Check, Observations, PathDelay, judge
from emulator.telemetry.counters import Backlog, QueueCounters, Snapshot
from emulator.telemetry.cpu import CoreSeries
from emulator.telemetry.links import LinkCounters
from emulator.telemetry.series import QueueSeries

RATE_BPS, LIMIT_BYTES, MTU, FRAME, BURST = 5_000_000, 60_000, 1500, 1514, 1600
START_S, END_S, PERIOD_S = 100.0, 110.0, 0.01

# h1 - s1 - h2: what h1 sends arrives at h2
PORTS = tuple(
    Port(name, node, 0, 1, netns, RATE_BPS, LIMIT_BYTES, link, peer) for name, node, netns, link, peer in (
        ("h1-eth0", "h1", "h1", 0, "s1-eth1"), ("s1-eth1", "s1", None, 0, "h1-eth0"),
        ("s1-eth2", "s1", None, 1, "h2-eth0"), ("h2-eth0", "h2", "h2", 1, "s1-eth2")))
SENT, DROPPED = 1000, 10


def series(ports: tuple[Port, ...] = PORTS[1:3], actual_bps: float = RATE_BPS, depth: int = 30 * FRAME,
           end_s: float = END_S + 1, late_s: float = 1e-4, late_every: int = 1) -> QueueSeries:
    """Ports that send whole frames at `actual_bps` with a queue that never empties."""
    due_s = np.arange(START_S - 1, end_s, PERIOD_S)
    lateness_s = np.where(np.arange(len(due_s)) % late_every == 0, late_s, 1e-4)
    time_s = due_s + lateness_s
    shape = (len(time_s), len(ports))
    sent = np.floor((time_s - time_s[0]) * actual_bps / 8 / FRAME)[:, None].astype(np.int64) * FRAME
    full = np.full(shape, depth)
    return QueueSeries(ports, PERIOD_S, time_s, np.full(len(time_s), 1e-4), lateness_s, full,
                       full // FRAME, np.broadcast_to(sent, shape), np.zeros(shape, np.int64),
                       np.full(len(ports), np.nan))


def sound() -> Observations:
    link = {"h1-eth0": LinkCounters(0, SENT), "s1-eth1": LinkCounters(SENT, 0),
            "s1-eth2": LinkCounters(0, SENT - DROPPED), "h2-eth0": LinkCounters(SENT - DROPPED, 0)}
    queue = {"h1-eth0": QueueCounters(sent_packets=SENT), "s1-eth1": QueueCounters(),
             "s1-eth2": QueueCounters(sent_packets=SENT - DROPPED, dropped_packets=DROPPED),
             "h2-eth0": QueueCounters()}
    bounds = np.arange(START_S - 1, END_S + 2)
    cores = CoreSeries(bounds, np.full((len(bounds) - 1, 2), 0.6), np.zeros((len(bounds) - 1, 2)))
    return Observations(
        PORTS, MTU, BURST, START_S, END_S, (series(),), cores,
        Snapshot(12.0, link, queue, {"h1": {}, "h2": {"Tcp.RetransSegs": 3}}, Backlog(0, 9)),
        {port.name: float(RATE_BPS) for port in PORTS}, {}, 0, (), 10**6, 10**6, 0,
        group_packets={"s1-eth2": SENT},
        paths=(PathDelay("h1-h2", ("s1-eth2",), 30 * FRAME * 8 / RATE_BPS + 0.010, 0.010),),
        dequeue_gap_deviation=(0.08, 0.28))


def failed(run: Observations) -> dict[str, Check]:
    return {check.name: check for check in judge(run).checks if not check.ok}


def only(run: Observations, name: str) -> Check:
    """The one check that fails; its sentence."""
    found = failed(run)
    assert list(found) == [name], {name: check.why for name, check in found.items()}
    return found[name]


def with_link(run: Observations, name: str, **changed: int) -> Observations:
    links = {**run.between.links, name: replace(run.between.links[name], **changed)}
    return replace(run, between=replace(run.between, links=links))


def with_queue(run: Observations, name: str, **changed: int) -> Observations:
    queues = {**run.between.queues, name: replace(run.between.queues[name], **changed)}
    return replace(run, between=replace(run.between, queues=queues))
