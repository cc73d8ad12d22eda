"""From what a run brought back to what the verdict looks at."""
from __future__ import annotations

from emulator.fabric.link import shape
from emulator.fidelity.observations import Observations, PathDelay
from emulator.outcome import Outcome
from emulator.plan import Plan
from topologies.graph import Link, interface
from traffic.engine import RTT_SAMPLE_S
from traffic.records import Connection, ConnectionKey

LONG_FLOW_SAMPLES = 20
FEWEST_GAPS = 1000
ALL_ALONG = 0.8


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
        datapath_losses=outcome.datapath_losses, dequeue_gap_deviation=_gaps(outcome),
        impossible_windows=outcome.impossible_windows,
        link_faults=outcome.link_faults,
        program_cpu_s=outcome.program.cpu_s if outcome.program else None,
        paths=tuple(_delays(plan, outcome, sent)))


def _gaps(outcome: Outcome) -> tuple[float, float] | None:
    """(p90, p99) of the port whose departures deviate most, among those that were backlogged long enough."""
    ports = [gap for gap in outcome.packets.gaps if gap.gaps >= FEWEST_GAPS] if outcome.packets else []
    if not ports:
        return None
    worst = max(ports, key=lambda gap: gap.p90)
    return worst.p90, worst.p99


def _delays(plan: Plan, outcome: Outcome, connections: dict[ConnectionKey, Connection]) -> list[PathDelay]:
    """Round trips of the connections that were busy all along and whose acknowledgements' way is known.

    A connection is sampled while it has something under way: where it pauses, its round trips tell of the
    busy times and the queues' means of all times, and Little's law says nothing.
    """
    links = _links(plan)
    fewest = max(LONG_FLOW_SAMPLES, ALL_ALONG * (outcome.ended_s - outcome.started_s) / RTT_SAMPLE_S)
    delays = []
    for key, back in outcome.return_paths.items():
        connection = connections.get(key)
        if connection is None or len(connection.rtt_samples_s) < fewest:
            continue
        if not (back and outcome.paths[key]):  # spread over many paths
            continue
        path = [links[frozenset(pair)] for pair in zip(outcome.paths[key], outcome.paths[key][1:])]
        base = plan.wire.one_way_s(path, plan.wire.payload_bytes) + plan.wire.ack_s(path)
        hosts = outcome.paths[key]
        delays.append(PathDelay(f"{hosts[0]}-{hosts[-1]}", (*_ports(hosts, links), *_ports(back, links)),
                                sum(connection.rtt_samples_s) / len(connection.rtt_samples_s), base))
    return delays


def _links(plan: Plan) -> dict[frozenset[str], Link]:
    return {frozenset((link.a, link.b)): link for link in plan.graph.links}


def _ports(nodes: tuple[str, ...], links: dict[frozenset[str], Link]) -> list[str]:
    """The interfaces that send a packet along `nodes`."""
    names = []
    for node, after in zip(nodes, nodes[1:]):
        link = links[frozenset((node, after))]
        names.append(interface(node, link.a_port if link.a == node else link.b_port))
    return names
