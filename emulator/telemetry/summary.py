"""The blocks `links`, `queues` and `loss` of summary.json, from what was sampled and counted. Pure.

Numbers are SI: seconds, bytes, ratios. A port is one direction of a link.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

import numpy as np

from emulator.fabric.spec import Port
from emulator.telemetry.counters import Snapshot
from emulator.telemetry.packets import PacketRecord, QueueRecord
from emulator.telemetry.series import QueueSeries
from emulator.telemetry.statistics import (
    DepthStatistics,
    depth_statistics,
    jain,
    max_over_mean,
    microbursts,
    utilisation,
)
from topologies.graph import Graph


def links_block(series: Sequence[QueueSeries], graph: Graph, frame_bytes: int) -> dict[str, object]:
    """Utilisation of all ports, by tier and direction, and how even the uplinks are.

    up is away from the hosts. An uplink is the upward port of a link between two switches; where there
    is none, uplink_jain and uplink_max_over_mean are null. frame_bytes: MTU and Ethernet header.
    """
    ports: list[Port] = []
    means, peaks = [np.empty(0)], [np.empty(0)]
    for part in series:
        mean, peak = utilisation(part, frame_bytes)
        ports += part.ports
        means.append(mean)
        peaks.append(peak)
    mean, peak = np.concatenate(means), np.concatenate(peaks)
    links = {link.index: link for link in graph.links}
    up = np.array([links[port.link].a == port.node for port in ports], bool)
    between = np.array([links[port.link].a in graph.switch for port in ports], bool)
    tiers = np.array([links[port.link].tier for port in ports])
    by_tier = {}
    for tier in dict.fromkeys(tiers.tolist()):
        of = tiers == tier
        by_tier[tier] = {"utilisation_mean": _mean(mean[of]), "utilisation_up_mean": _mean(mean[of & up]),
                         "utilisation_down_mean": _mean(mean[of & ~up]),
                         "utilisation_peak": float(peak[of].max())}
    uplinks = mean[up & between]
    return {"utilisation_mean": _mean(mean), "utilisation_peak": float(peak.max(initial=0.0)),
            "by_tier": by_tier,
            "uplink_jain": jain(uplinks) if len(uplinks) else None,
            "uplink_max_over_mean": max_over_mean(uplinks) if len(uplinks) else None}


def _mean(values: np.ndarray) -> float | None:
    return float(values.mean()) if len(values) else None


def queues_block(series: Sequence[QueueSeries], frame_bytes: int) -> dict[str, object]:
    """Depth and delay of the switch port with the largest mean depth; `by_port` has every port.

    Delay is what a packet that arrives behind that depth waits: depth * 8 / rate. microbursts: see
    statistics.microbursts; longest_burst_s the longest of them.
    """
    rows: list[tuple[Port, dict[str, object]]] = []
    for part in series:
        bursts = microbursts(part, frame_bytes)
        for port, depth, durations in zip(part.ports, depth_statistics(part), bursts):
            rows.append((port, _queue(port, depth, durations)))
    at_switches = [row for port, row in rows if port.netns is None]
    worst = max(at_switches, key=lambda row: row["mean_bytes"]) if at_switches else _NO_QUEUE
    return {**worst, "by_port": [row for _, row in rows]}


def _queue(port: Port, depth: DepthStatistics, bursts_s: np.ndarray) -> dict[str, object]:
    byte_s = 8 / port.rate_bps
    return {"port": port.name, **asdict(depth), "delay_p50_s": depth.p50_bytes * byte_s,
            "delay_p99_s": depth.p99_bytes * byte_s, "delay_max_s": depth.max_bytes * byte_s,
            "limit_bytes": port.limit_bytes, "microbursts": len(bursts_s),
            "longest_burst_s": float(bursts_s.max(initial=0.0))}


_NO_QUEUE = dict.fromkeys(
    _queue(Port("", "", 0, 0, None, 1.0, 0, 0, ""), DepthStatistics(0, 0, 0, 0, 0), np.empty(0)))


def exact_queues(block: dict[str, object], record: PacketRecord) -> dict[str, object]:
    """`queues_block` with the numbers of every queue that was seen packet by packet in the place of samples.

    Of a port with several classes, the class with the largest mean depth stands for the port, with its part of
    the port's buffer as the limit.
    """
    best: dict[str, QueueRecord] = {}
    for queue in record.queues:
        if queue.port not in best or queue.mean_bytes > best[queue.port].mean_bytes:
            best[queue.port] = queue
    rows = [{**row, **_exact(best[row["port"]])} if row["port"] in best else row for row in block["by_port"]]
    at_switches = [row for row in rows if row["port"] in best]
    worst = max(at_switches, key=lambda row: row["mean_bytes"]) if at_switches else _NO_QUEUE
    return {**worst, "by_port": rows}


def _exact(queue: QueueRecord) -> dict[str, object]:
    """The fields of a row that the switch itself knows; no packet, no delay."""
    delays = {name: getattr(queue, name) for name in ("delay_p50_s", "delay_p99_s", "delay_max_s")}
    return {"mean_bytes": queue.mean_bytes, "p50_bytes": queue.p50_bytes, "p95_bytes": queue.p95_bytes,
            "p99_bytes": queue.p99_bytes, "max_bytes": float(queue.max_bytes),
            "limit_bytes": queue.limit_bytes,
            **{name: 0.0 if np.isnan(value) else value for name, value in delays.items()}}


def loss_block(between: Snapshot, ports: Sequence[Port]) -> dict[str, object]:
    """What was dropped in the queues, sent again and marked, from counters before and after.

    loss_rate: packets dropped anywhere over packets that the hosts offered to their own ports.
    ecn_marked_fraction: of the packets that reached the hosts and could be marked, those that were.
    by_link: the ports that dropped, most first, each with its share of what was offered to it.
    """
    queues = {port.name: between.queues[port.name] for port in ports}
    dropped = sum(queue.dropped_packets for queue in queues.values())
    offered = sum(queues[port.name].sent_packets + queues[port.name].dropped_packets
                  for port in ports if port.netns is not None)
    able = sum(_total(between, f"IpExt.{name}") for name in ("InECT0Pkts", "InECT1Pkts", "InCEPkts"))
    lossy = [{"link": port.link, "port": port.name, "dropped_packets": queues[port.name].dropped_packets,
              "loss_rate": queues[port.name].dropped_packets
              / (queues[port.name].sent_packets + queues[port.name].dropped_packets)}
             for port in ports if queues[port.name].dropped_packets]
    return {"dropped_packets": dropped, "loss_rate": dropped / offered if offered else 0.0,
            "retransmitted_segments": _total(between, "Tcp.RetransSegs"),
            "ecn_marked_fraction": _total(between, "IpExt.InCEPkts") / able if able else 0.0,
            "by_link": sorted(lossy, key=lambda row: -row["dropped_packets"])}


def _total(between: Snapshot, counter: str) -> int:
    return sum(counters.get(counter, 0) for counters in between.sockets.values())
