"""From what a run brought back to what the verdict looks at."""
from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from emulator.events.tally import TURNED_BACK
from emulator.fabric.link import shape
from emulator.fidelity.observations import Observations, PathDelay, Planned
from emulator.outcome import Outcome
from emulator.plan import Plan
from emulator.telemetry.pauses import PauseRecord
from traffic.engine import RTT_SAMPLE_S
from traffic.records import Connection, ConnectionKey

LONG_FLOW_SAMPLES = 20
FEWEST_GAPS = 1000
ALL_ALONG = 0.8
REROUTING = ("link", "switch", "drain", "undrain")  # events after which tables change


def observe(plan: Plan, outcome: Outcome) -> Observations | None:
    """None where the run broke off before there was anything to judge."""
    engine, recording, between = outcome.engine, outcome.recording, outcome.between
    if engine is None or recording is None or between is None:
        return None
    sent = {c.key: c for c in engine.connections}
    return Observations(
        ports=outcome.ports, mtu=plan.wire.mtu,
        burst_bytes=max(shape(rate, plan.wire.mtu, plan.buffer_bytes).burst_bytes
                        for rate in {port.rate_bps for port in outcome.ports}),
        start_s=outcome.started_s, end_s=outcome.ended_s, series=recording.series, cores=recording.cores,
        between=between, shaped_bps=outcome.shaped_bps, offloads=outcome.offloads,
        packet_ins=outcome.packet_ins, unfinished=tuple(engine.stuck), bytes_expected=engine.bytes_expected,
        bytes_received=engine.bytes_received, payload_errors=engine.checksum_errors + engine.wrong_values,
        datapath_losses=_unplanned(outcome), planned=_planned(outcome), dequeue_gap_deviation=_gaps(outcome),
        impossible_windows=outcome.impossible_windows,
        link_faults=outcome.link_faults,
        group_packets={} if any(outcome.bit_errors.values()) else outcome.group_packets,
        lost_samples=outcome.packets.lost_samples if outcome.packets else None,
        delay=outcome.delay, switch_drops=_told_to_drop(outcome),
        program_cpu_s=outcome.program.cpu_s if outcome.program else None,
        **_lossless(plan, outcome), paths=tuple(_delays(plan, outcome, sent)))


def _told_to_drop(outcome: Outcome) -> dict[str, int]:
    """Packets that each switch lost on order: bit errors of its links."""
    drops: Counter[str] = Counter()
    port = {port.name: port for port in outcome.ports}
    for name, count in outcome.bit_errors.items():
        drops[port[name].node] += count
    return dict(drops)


def _woken(outcome: Outcome, pauses: PauseRecord) -> dict[str, int]:
    """Frames that only woke a queue: the switch that sent one never received it, and the next one kept it."""
    port, kept = {port.name: port for port in outcome.ports}, Counter[str]()
    for each in pauses.ports:
        if port[each.port].netns is None:
            kept[port[each.port].node] -= each.kicks
        kept[port[port[each.port].peer].node] += each.kicks
    return dict(kept)


def _lossless(plan: Plan, outcome: Outcome) -> dict[str, Any]:
    """Pauses, and drops in spite of them."""
    record = outcome.packets
    if record is None or record.pauses is None:
        return {}
    numbers = {number for number, each in enumerate(plan.classes.classes) if each.lossless}
    return {"pauses": record.pauses, "kept_frames": _woken(outcome, record.pauses), "lossless_drops": sum(
        queue.dropped_packets for queue in record.queues if queue.traffic_class in numbers)}


def _planned(outcome: Outcome) -> Planned:
    """What events did on purpose."""
    record = outcome.events
    if record is None:
        return Planned()
    return Planned(record.interrupted, record.reshaped, record.altered_at_end, record.lost_at,
                   bool(record.end.lost))


def _unplanned(outcome: Outcome) -> Mapping[str, int]:
    """Packets lost where no queue is, without those that an event explains: their drops are in the port's."""
    record = outcome.events
    causes = []
    if record and record.interrupted:
        causes += ["no rule", "by rule", "no live bucket", "port down"]
    if record and any(each.kind in REROUTING for each in record.happenings):
        causes.append(TURNED_BACK)
    return {what: count for what, count in outcome.datapath_losses.items()
            if not any(what.endswith(f": {cause}") for cause in causes)}


def _gaps(outcome: Outcome) -> tuple[float, float] | None:
    """(p90, p99) of the port whose departures deviate most, among those that were backlogged long enough and
    neither paused nor changed: the gap that this makes is no fault."""
    record = outcome.packets
    if record is None:
        return None
    unsteady = {each.port for each in record.pauses.ports} if record.pauses else set()
    if outcome.events:
        unsteady |= outcome.events.interrupted | outcome.events.reshaped
    ports = [gap for gap in record.gaps if gap.gaps >= FEWEST_GAPS and gap.port not in unsteady]
    if not ports:
        return None
    worst = max(ports, key=lambda gap: gap.p90)
    return worst.p90, worst.p99


def _delays(plan: Plan, outcome: Outcome, connections: dict[ConnectionKey, Connection]) -> list[PathDelay]:
    """Round trips of the connections that were busy all along and whose acknowledgements' way is known.

    A connection is sampled while it has something under way: where it pauses, its round trips tell of the
    busy times and the queues' means of all times, and Little's law says nothing. Where ports have classes,
    the means are those of its class.
    """
    if outcome.events and any(each.kind != "controller" for each in outcome.events.happenings):
        return []  # ways and rates changed: there is no one path to judge by
    links = {link.index: link for link in plan.graph.links}
    fewest = max(LONG_FLOW_SAMPLES, ALL_ALONG * (outcome.ended_s - outcome.started_s) / RTT_SAMPLE_S)
    numbers = {plan.class_number(key.traffic_class) for key in connections}
    waits_s = {number: _class_waits_s(plan, outcome, number) for number in numbers}
    mixed = _mixed(plan, outcome) if plan.classes else set()
    delays = []
    for key, back in outcome.return_paths.items():
        connection = connections.get(key)
        if connection is None or len(connection.rtt_samples_s) < fewest or not renewed(connection.rtt_samples_s):
            continue
        way = outcome.paths[key]
        if not (back and way):  # spread over many paths
            continue
        hosts = outcome.nodes(way)
        if mixed & {hosts[0], hosts[-1]}:
            continue
        waits = waits_s[plan.class_number(key.traffic_class)]
        path = [links[outcome.port[name].link] for name in way]
        base = plan.wire.one_way_s(path, plan.wire.payload_bytes) + plan.wire.ack_s(path)
        ports = (*way, *back)
        if any(math.isnan(waits.get(port, 0.0)) for port in ports):  # starved: no mean says how long it waits
            continue
        rtt_s = sum(connection.rtt_samples_s) / len(connection.rtt_samples_s)
        delays.append(PathDelay(f"{hosts[0]}-{hosts[-1]}", ports, rtt_s, base, waits))
    return delays


def renewed(samples_s: Sequence[float]) -> bool:
    """Whether most samples are of new round trips; where nothing is acknowledged a socket keeps its last."""
    changes = sum(before != after for before, after in pairwise(samples_s))
    return 2 * changes >= len(samples_s)


def _class_waits_s(plan: Plan, outcome: Outcome, number: int) -> dict[str, float]:
    """port -> mean wait in the queue of class `number`; empty where ports have one class."""
    record = outcome.packets
    if record is None or record.sent is None:
        return {}
    return {queue.port: record.mean_wait_s(column, outcome.started_s, outcome.ended_s)
            for column, queue in enumerate(record.queues) if queue.traffic_class == number}


def _mixed(plan: Plan, outcome: Outcome) -> set[str]:
    """Hosts that send data, and packets of several classes: how long each waits in the host's own port is
    not known. By host, not by rank: a host has one number in a job and another in the background."""
    classes: defaultdict[str, set[int]] = defaultdict(set)
    ends = {key: (nodes[0], nodes[-1]) for key, way in outcome.paths.items() if (nodes := outcome.nodes(way))}
    for key, hosts in ends.items():
        for host in hosts:
            classes[host].add(plan.class_number(key.traffic_class))
    return {source for source, _ in ends.values() if len(classes[source]) > 1}
