"""Bytes over each link against what the schedule says must cross it, headers and acknowledgements included.

Expected = frames of every planned message (its data, and 66 bytes of headers for each frame) on the links
of its connection's path, and on those of the way back its acknowledgements (`traffic/acks.py`). Where packets
of a flow take several paths, a split over all shortest ones. Told apart: segments that were sent again. Of the
background what it sent counts as planned.
"""
from __future__ import annotations

import platform
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy

from emulator.outcome import Outcome
from emulator.plan import Plan
from topologies.graph import Link, interface
from traffic.acks import Acks, growing_bytes, kernel_version
from traffic.load import even_split
from traffic.paths import Paths
from traffic.records import ConnectionKey, EngineResult
from traffic.schedule import Kind
from traffic.wire import ACK_BYTES, ACK_EVERY, Wire

LINK_BYTES_COLUMNS = ("source", "destination", "tier", "payload_bytes", "expected_data_bytes",
                      "expected_ack_bytes", "resent_bytes", "counted_bytes", "ratio",
                      "expected_packets", "counted_packets")
AGAINST = ("expected_bytes", "resent_bytes", "counted_over_expected")
"""What `by_tier` gives of each tier."""


@dataclass(frozen=True)
class LinkBytes:
    """One direction of a link. `ratio` = counted / (expected data + acknowledgements + resent); None where
    nothing is expected. resent_bytes: full frames, by the connections' own count of segments sent again."""

    link: Link
    source: str
    destination: str
    payload_bytes: float
    expected_data_bytes: float
    expected_ack_bytes: float
    resent_bytes: float
    counted_bytes: int
    expected_packets: float
    counted_packets: int

    @property
    def expected_bytes(self) -> float:
        """Resent ones too."""
        return self.expected_data_bytes + self.expected_ack_bytes + self.resent_bytes

    @property
    def ratio(self) -> float | None:
        return self.counted_bytes / self.expected_bytes if self.expected_bytes else None

    def row(self) -> tuple[Any, ...]:
        """In the order of LINK_BYTES_COLUMNS."""
        return (self.source, self.destination, self.link.tier, self.payload_bytes, self.expected_data_bytes,
                self.expected_ack_bytes, self.resent_bytes, self.counted_bytes, self.ratio,
                self.expected_packets, self.counted_packets)


@dataclass
class _Sent:
    """What a connection sends in the whole run, and how many acknowledgements that takes."""

    acks: Acks
    payload_bytes: float = 0.0
    data_bytes: float = 0.0
    frames: int = 0

    def add(self, wire: Wire, size_bytes: int, times: int) -> None:
        """A message, so many times."""
        frames = -(-size_bytes // wire.payload_bytes)
        self.payload_bytes += size_bytes * times
        self.data_bytes += wire.frames_bytes(size_bytes) * times
        self.frames += frames * times
        self.acks.add(frames, times)


def link_bytes(plan: Plan, outcome: Outcome) -> list[LinkBytes]:
    """Every link, both directions; empty for a run that did not come to its end: nothing is expected."""
    engine, between = outcome.engine, outcome.between
    if engine is None or between is None or engine.stuck or outcome.interrupted:
        return []
    sent = _planned(plan)
    _add_background(plan, engine, sent)
    resent = {c.key: c.info.total_retrans * float(plan.wire.frame_bytes) for c in engine.connections}
    payload = _over(plan, outcome, {key: s.payload_bytes for key, s in sent.items()})
    data = _over(plan, outcome, {key: s.data_bytes for key, s in sent.items()})
    again = _over(plan, outcome, resent)
    acks = _over(plan, outcome, {key: s.acks.count for key, s in sent.items()}, back=True)
    frames = _over(plan, outcome, {key: s.frames for key, s in sent.items()})
    listed = []
    for link in plan.graph.links:
        ends = ((link.a, link.a_port, link.b), (link.b, link.b_port, link.a))
        for way, (source, port, destination) in enumerate(ends):
            at, name = (link.index, way), interface(source, port)
            listed.append(LinkBytes(link, source, destination, float(payload[at]), float(data[at]),
                                    float(acks[at]) * ACK_BYTES, float(again[at]),
                                    between.queues[name].sent_bytes, float(frames[at] + acks[at]),
                                    between.queues[name].sent_packets))
    return listed


def by_tier(listed: Iterable[LinkBytes]) -> dict[str, dict[str, float | None]]:
    """Expected and resent bytes of each tier, both directions, and counted over expected."""
    sums: defaultdict[str, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
    for link in listed:
        for place, value in enumerate((link.expected_bytes, link.resent_bytes, link.counted_bytes)):
            sums[link.link.tier][place] += value
    return {tier: dict(zip(AGAINST, (expected, again, counted / expected if expected else None)))
            for tier, (expected, again, counted) in sums.items()}


def _planned(plan: Plan) -> defaultdict[ConnectionKey, _Sent]:
    """By the schedules of the jobs that run, all iterations."""
    growing = growing_bytes(plan.wire.payload_bytes, kernel_version(platform.release())) / plan.wire.payload_bytes
    every = 1 if plan.fabric.quickack else ACK_EVERY
    sent: defaultdict[ConnectionKey, _Sent] = defaultdict(lambda: _Sent(Acks(growing, every)))
    for _, job in plan.running:
        for rank, ops in enumerate(job.workload.schedule.ranks):
            for op in ops:
                if op.kind is Kind.SEND:
                    of = sent[ConnectionKey(job.first_rank + rank, job.first_rank + op.peer, op.channel,
                                            op.traffic_class)]
                    of.add(plan.wire, op.size_bytes, job.rounds)
    return sent


def _add_background(plan: Plan, engine: EngineResult, sent: dict[ConnectionKey, _Sent]) -> None:
    """What its flows that ended sent, and the segments that went out of the others."""
    first = len(plan.workload.placement)
    for message in engine.background:
        key = ConnectionKey(message.src, message.dst, message.channel, message.traffic_class)
        sent[key].add(plan.wire, message.size_bytes, 1)
    for connection in engine.connections:
        key, info = connection.key, connection.info
        segments = info.data_segs_out - info.total_retrans - sent[key].frames if key.src >= first else 0
        if segments > 0:
            sent[key].add(plan.wire, segments * plan.wire.payload_bytes, 1)


def _over(plan: Plan, outcome: Outcome, amounts: Mapping[ConnectionKey, float], back: bool = False
          ) -> numpy.ndarray:
    """Amounts laid over the connections' paths (`back`: from destination to source); as of `even_split`."""
    directed = {interface(*end): (link.index, way) for link in plan.graph.links
                for way, end in enumerate(((link.a, link.a_port), (link.b, link.b_port)))}
    ways = outcome.return_paths if back else outcome.paths
    endpoints, hosts, paths = plan.workload.endpoints, plan.graph.hosts, Paths(plan.graph)
    split: defaultdict[tuple[str, str], float] = defaultdict(float)
    load = even_split({}, paths)
    for key, amount in amounts.items():
        way = ways.get(key, ())
        for name in way:
            load[directed[name]] += amount
        if not way:
            a, b = (hosts[endpoints[rank]].name for rank in (key.src, key.dst))
            split[(b, a) if back else (a, b)] += amount
    return load + even_split(split, paths)
