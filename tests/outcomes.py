"""Plans and what a run of them might bring back, made without root: every message at its ideal time."""
from __future__ import annotations

from dataclasses import replace

import numpy as np

from emulator.errors import BadInput
from emulator.experiment import make
from emulator.fabric.spec import Port
from emulator.outcome import Outcome, Setup
from emulator.plan import Plan
from emulator.resolve import resolve
from emulator.telemetry.counters import Backlog, QueueCounters, Snapshot
from emulator.telemetry.cpu import CoreSeries
from emulator.telemetry.links import LinkCounters
from emulator.telemetry.series import QueueSeries, Recording
from topologies.graph import interface
from traffic.paths import Paths
from traffic.records import Connection, ConnectionKey, EngineResult, Iteration, Message, Span, TcpInfo
from traffic.schedule import Kind

START_S = 500.0
PERIOD_S = 0.01
INFO = TcpInfo(0.01, 0.001, 10, 1448, 0, 0, 5e6, 100, 100, 0, 0, 0)


def plan(**values: object) -> Plan:
    """The plan of an experiment on a userspace switch."""
    return resolve("", make({"topology": "leaf-spine:leaves=2,spines=2,hosts=2", "rate": "5mbit",
                             "workload": "pattern:stride=2,bytes=100kB", **values}), "ovs", "netdev")


def ports(made: Plan) -> tuple[Port, ...]:
    """Both ends of every link."""
    listed = []
    for link in made.graph.links:
        ends = ((link.a, link.a_port), (link.b, link.b_port))
        for (node, number), (peer, peer_number) in (ends, ends[::-1]):
            listed.append(Port(interface(node, number), node, number, len(listed) + 1,
                               node if node in made.graph.host else None, made.wire.link_rate_bps(link),
                               made.buffer_bytes, link.index, interface(peer, peer_number)))
    return tuple(listed)


def engine_result(made: Plan, late: float = 1.0) -> EngineResult:
    """Every message takes `late` times its ideal; the iterations follow one another."""
    paths, placement = Paths(made.graph), made.workload.placement
    hosts = [made.graph.hosts[index].name for index in placement]
    result, now_s, got = EngineResult(), START_S, 0
    keys = {}
    for index in range(made.iterations):
        start_s, end_s = now_s, now_s
        for rank, ops in enumerate(made.workload.schedule.ranks):
            for op in ops:
                if op.kind is not Kind.SEND:
                    continue
                way = paths.first_links(hosts[rank], hosts[op.peer])
                done_s = start_s + late * (made.wire.ideal_fct_s(way, op.size_bytes) + INFO.min_rtt_s)
                keys[ConnectionKey(rank, op.peer, op.channel, op.traffic_class)] = None
                result.messages.append(Message(index, rank, op.peer, op.channel, op.tag, op.size_bytes,
                                               start_s, done_s, done_s, 0, op.phase, op.step, op.traffic_class))
                result.spans.append(Span(index, rank, "send", op.phase, op.step, start_s, done_s,
                                         op.traffic_class))
                result.spans.append(Span(index, op.peer, "recv", op.phase, op.step, start_s, done_s,
                                         op.traffic_class))
                end_s = max(end_s, done_s)
                got += op.size_bytes
        result.received.append((start_s, got - made.workload.schedule.bytes_sent))
        result.received.append((end_s, got))
        result.iterations.append(Iteration(index, index >= made.workload.warmup, start_s, end_s))
        now_s = end_s
    result.connections.extend(
        Connection(key, 20000 + number, 30000 + number, "cubic", INFO) for number, key in enumerate(keys))
    return replace(result, bytes_expected=got, bytes_received=got)


def series(of: tuple[Port, ...], end_s: float, samples: int | None = None) -> QueueSeries:
    """Idle queues, sampled from the start to the end."""
    time_s = np.arange(START_S, end_s + PERIOD_S, PERIOD_S)[:samples]
    shape = (len(time_s), len(of))
    none, soon = np.zeros(shape, np.int64), np.full(len(time_s), 1e-4)
    return QueueSeries(of, PERIOD_S, time_s, soon, soon, none, none, none, none, np.full(len(of), np.nan))


def outcome(made: Plan, late: float = 1.0, samples: int | None = None) -> Outcome:
    """A whole run whose queues stayed empty."""
    engine, all_ports = engine_result(made, late), ports(made)
    end_s = engine.iterations[-1].end_s
    bounds = np.arange(START_S - 1, end_s + 2)
    cores = CoreSeries(bounds, np.full((len(bounds) - 1, 2), 0.6), np.zeros((len(bounds) - 1, 2)))
    parts = tuple(series(tuple(p for p in all_ports if (p.netns is None) is switch), end_s, samples)
                  for switch in (True, False))
    between = Snapshot(end_s - START_S, {p.name: LinkCounters(0, 0) for p in all_ports},
                       {p.name: QueueCounters() for p in all_ports},
                       {host.name: {} for host in made.graph.hosts}, Backlog())
    return Outcome(
        setup=Setup(0.1, 0.2, 0.1), environment={"kernel": "6.1", "switch": "ovs", "datapath": "netdev",
                                                 "clock": "real", "cpus": 2, "versions": {}}, ports=all_ports,
        engine=engine, started_s=START_S, ended_s=end_s, between=between,
        recording=Recording(parts, cores, 100.0, 100.0, 0.01, False), paths=_paths(made, engine),
        shaped_bps={p.name: p.rate_bps for p in all_ports}, log="said\n")


def _paths(made: Plan, engine: EngineResult) -> dict[ConnectionKey, tuple[str, ...]]:
    paths, placement = Paths(made.graph), made.workload.placement
    found = {}
    for connection in engine.connections:
        a, b = (made.graph.hosts[placement[rank]].name for rank in connection.key[:2])
        found[connection.key] = tuple(_hops(paths, a, b))
    return found


def _hops(paths: Paths, a: str, b: str):
    """The interfaces that send along the first shortest path."""
    towards, at = paths.towards(b), a
    while at != b:
        hop = towards.hops[at][0]
        link = paths.link[hop.link // 2]
        yield interface(at, link.b_port if hop.link % 2 else link.a_port)
        at = hop.node


def refusal(**values: object) -> str:
    """The sentence with which an experiment is refused."""
    try:
        plan(**values)
    except BadInput as error:
        return str(error)
    raise AssertionError(f"{values} were accepted")
