"""The egress queues under real packets: drops, marks, delays, classes, gates, losses."""
from __future__ import annotations

import json
import subprocess
import time
from dataclasses import asdict

from emulator.asic.assemble import faults
from emulator.asic.layout import CAUSES, MAX_CLASSES
from emulator.asic.pipeline import PipelineBucket, PipelineGroup
from emulator.asic.queueing import TrafficClass, eight_queues, one_queue
from emulator.asic.telemetry import QueueTelemetry
from tests.asic.fabrics import UP, Lab, lab, tables, udp
from tests.asic.traffic import Stream, exchange, per_window
from tests.fabric.graphs import leaf_spine

RATE_BPS, BUFFER_BYTES, K_BYTES = 20e6, 60_000, 20_000
FRAME = 1442  # 1400 bytes of payload
BURSTS, BURST_PACKETS, PAUSE_S = 6, 40, 0.25


def addresses(made: Lab) -> dict[str, str]:
    return {host.name: host.ip for host in made.fabric.spec.graph.hosts}


def tc_drops(name: str) -> dict[str, int]:
    """kind -> packets that the kernel counts as dropped by the qdiscs of an interface."""
    shown = subprocess.run(["tc", "-s", "-j", "qdisc", "show", "dev", name], check=True, timeout=10,
                           capture_output=True, text=True).stdout
    return {each["kind"]: each["drops"] for each in json.loads(shown)}


def by_name(totals, name: str, traffic_class: int = 0):
    return next(each for each in totals
                if (each.key.port.name, each.key.traffic_class) == (name, traffic_class))


def gaps_of(ports, name: str) -> list:
    found = next(each for each in ports if each.port.name == name)
    return [found.gaps, found.gap_deviation_p90, found.gap_deviation_p99]


def incast() -> dict:
    """Two hosts send flat out to a third: its port is full, nothing else is."""
    made = lab(leaf_spine(1, 1, 3), RATE_BPS, buffer_bytes=BUFFER_BYTES, queueing=one_queue(K_BYTES))
    telemetry = QueueTelemetry(made.chip)
    telemetry.start()
    streams = [Stream("h1", "h3", ecn=2), Stream("h2", "h3", ecn=0)]
    exchange(streams, addresses(made), 1.2, at={0.1 * i: telemetry.drain for i in range(1, 12)})
    totals, ports, depths = telemetry.finish()
    hot = by_name(totals, "l1-eth3")
    column = depths.keys.index(hot.key)
    _, grid = depths.on_grid(0.001)
    return {
        "hot": {k: v for k, v in asdict(hot).items() if k != "key"}, "tc": tc_drops("l1-eth3"),
        "sent": [s.sent for s in streams], "received": [s.received for s in streams],
        "ce": [s.ce for s in streams],
        "elsewhere": sum(t.dropped_packets + t.lost_packets for t in totals if t is not hot),
        "refused": sum(sum(p.refused.values()) for p in ports),
        "percentiles": depths.percentiles(column, (50, 99, 100)), "grid_max": int(grid[:, column].max()),
        "grid_elsewhere": int(max(grid[:, i].max() for i in range(len(depths.keys)) if i != column)),
        "samples": len(depths.time_s), "lost": depths.lost,
        "gaps": gaps_of(ports, "l1-eth3"),
        "faults": faults(made.fabric, one_queue(K_BYTES)),
        "queue_states": [[q.port, q.tx.packets, q.dropped] for q in made.datapath.queues(made.dpid("l1"))],
    }


def bursts() -> dict:
    """Bursts of small packets with long pauses between and behind them: mostly the queue is empty."""
    made = lab(leaf_spine(1, 1, 3), RATE_BPS / 2, buffer_bytes=BUFFER_BYTES)
    telemetry, sources = QueueTelemetry(made.chip), [udp("h1"), udp("h2")]
    sink = (addresses(made)["h3"], 7000)
    telemetry.start()
    for _ in range(BURSTS):
        for _ in range(BURST_PACKETS):
            for source in sources:
                source.sendto(bytes(100), sink)
        time.sleep(PAUSE_S)
        telemetry.drain()
    totals, _, depths = telemetry.finish()
    hot = by_name(totals, "l1-eth3")
    column = depths.keys.index(hot.key)
    _, grid = depths.on_grid(0.0001)
    for source in sources:
        source.close()
    return {"mean": hot.depth_mean_bytes, "max": hot.depth_max_bytes,
            "sampled_mean": float(grid[:, column].mean()),
            "percentiles": depths.percentiles(column, (50, 95, 100)), "lost": depths.lost}


CLASSES = (TrafficClass(weight=3), TrafficClass(), TrafficClass(), TrafficClass(), TrafficClass(),
           TrafficClass(), TrafficClass(), TrafficClass(strict=True))


def classes() -> dict:
    """Weights 3:1 between classes 0 and 1; then class 7, strict, takes half of the link from both."""
    queueing = eight_queues(CLASSES)
    made = lab(leaf_spine(1, 1, 4), RATE_BPS, buffer_bytes=BUFFER_BYTES, queueing=queueing)
    telemetry, found = QueueTelemetry(made.chip), {"faults": faults(made.fabric, queueing)}
    strict = Stream("h3", "h4", dscp=56, bytes_per_s=RATE_BPS / 16)
    for name, extra in (("weighted", []), ("strict", [strict])):
        telemetry.start()
        exchange([Stream("h1", "h4", dscp=0), Stream("h2", "h4", dscp=8), *extra], addresses(made), 1.5)
        totals, _, _ = telemetry.finish()
        queues = [by_name(totals, "l1-eth4", number) for number in range(MAX_CLASSES)]
        found[name] = [queue.sent_bytes for queue in queues]
        found[f"{name}_drops"] = [queue.dropped_packets for queue in queues]
        found[f"{name}_delay_s"] = queues[7].sojourn_p99_s
    return found


def gates() -> dict:
    """Class 3 of a port is paused for a while: 0.5 s into the exchange, until 0.9 s."""
    classes = tuple(TrafficClass(limit_bytes=500_000) for _ in range(MAX_CLASSES))
    queueing = eight_queues(classes, pausable=True)
    made = lab(leaf_spine(1, 1, 3), RATE_BPS, buffer_bytes=BUFFER_BYTES, queueing=queueing)
    port = made.ifindex("l1-eth3")
    telemetry, times = QueueTelemetry(made.chip), {}

    def change(name, act):
        def do():
            made.chip.observe(port)
            times[name] = [time.monotonic(), int(made.chip.queue(port, 3)["sent_packets"])]
            act(port, 3)
        return do

    def look(name):
        def do():
            made.chip.observe(port)
            times[name] = [time.monotonic(), int(made.chip.queue(port, 3)["sent_packets"])]
        return do

    telemetry.start()
    streams = [Stream("h1", "h3", dscp=24, bytes_per_s=RATE_BPS / 8 * 0.4),
               Stream("h2", "h3", dscp=0, bytes_per_s=RATE_BPS / 8 * 0.4)]
    exchange(streams, addresses(made), 1.4, at={
        0.5: change("pause", made.chip.pause), 0.9: change("resume", made.chip.resume), 0.89: look("held"),
        0.91: look("running")})
    totals, ports, _ = telemetry.finish()
    windows = [[per_window(stream, 0.1)[i] for i in range(14)] for stream in streams]
    return {"times": times, "windows": windows, "sent": [s.sent for s in streams],
            "received": [s.received for s in streams], "faults": faults(made.fabric, queueing),
            "dropped": sum(t.dropped_packets for t in totals),
            "held": by_name(totals, "l1-eth3", 3).held_bytes,
            "deepest": by_name(totals, "l1-eth3", 3).depth_max_bytes, "gaps": gaps_of(ports, "l1-eth3")}


def losses() -> dict:
    """Bit errors on the way into a switch from a host, and on the way out to a host."""
    made = lab(leaf_spine(1, 1, 3), 50e6, buffer_bytes=BUFFER_BYTES)
    bits = 8 * FRAME
    made.chip.set_bit_error_rate(made.ifindex("l1-eth1"), received=0.05 / bits)
    made.chip.set_bit_error_rate(made.ifindex("l1-eth3"), sent=0.02 / bits)
    telemetry = QueueTelemetry(made.chip)
    telemetry.start()
    streams = [Stream("h1", "h2", bytes_per_s=2.5e6), Stream("h2", "h3", bytes_per_s=2.5e6)]
    exchange(streams, addresses(made), 1.0)
    totals, ports, _ = telemetry.finish()
    return {"sent": [s.sent for s in streams], "received": [s.received for s in streams],
            "in": next(p.refused["wire loss"] for p in ports if p.port.name == "l1-eth1"),
            "out": by_name(totals, "l1-eth3").lost_packets,
            "all": sum(t.lost_packets + t.dropped_packets for t in totals)
            + sum(sum(p.refused.values()) for p in ports)}


def spread() -> dict:
    """1000 connections over two spines of weights 3:1; then a link goes down in the middle of a stream."""
    uplinks = PipelineGroup(UP, (PipelineBucket(4, 3), PipelineBucket(5, 1)), seed=9)
    made = lab(leaf_spine(2, 2, 3), 50e6, buffer_bytes=BUFFER_BYTES, uplinks=uplinks)
    leaf, ips = made.dpid("l1"), addresses(made)
    sink = udp("h4", 7000)
    for port in range(20000, 21000):
        source = udp("h1", port)
        source.sendto(b"x", (ips["h4"], 7000))
        source.close()
    got = sum(1 for _ in range(1000) if sink.recv(10))
    sink.close()
    counts = [count.packets for count in made.datapath.bucket_counts(leaf)[UP]]
    seen: list[tuple[float, int]] = []
    made.datapath.watch(lambda *_: None, lambda dpid, port: seen.append((dpid, port.number, port.up)))

    def cut():
        subprocess.run(["ip", "link", "set", "s1-eth1", "down"], check=True, timeout=10)

    streams = [Stream(f"h{i}", f"h{i + 3}", bytes_per_s=1e6) for i in (1, 2, 3)]
    exchange(streams, ips, 0.6, at={0.3: cut})
    made.datapath.poll(0.5)
    after = [count.packets for count in made.datapath.bucket_counts(leaf)[UP]]
    return {"got": got, "counts": counts, "share": counts[0] / sum(counts),
            "lost": [s.sent - s.received for s in streams], "sent": [s.sent for s in streams], "moved": after, "events": sorted(seen),
            "port_down": int(made.chip.drops["packets"][:, CAUSES.index("port down")].sum())}


def revisions() -> dict:
    """Tables are replaced 300 times while a stream runs: no packet may fall between two of them."""
    made = lab(leaf_spine(2, 2, 1), 20e6, buffer_bytes=BUFFER_BYTES, telemetry=False)
    graph, done = made.fabric.spec.graph, []

    def revise():
        for switch in graph.switches:
            uplinks = PipelineGroup(UP, (), seed=len(done) + 1)
            made.datapath.replace_tables(switch.dpid, tables(graph, switch, uplinks))
            done.append(switch.name)

    stream = Stream("h1", "h2", bytes_per_s=1.5e6)
    exchange([stream], addresses(made), 1.0, at={0.01 * i: revise for i in range(1, 76)})
    rule = max(made.datapath.rule_counts(made.dpid("l1")).items())[1]
    return {"sent": stream.sent, "received": stream.received, "revisions": len(done),
            "refused": int(made.chip.drops["packets"].sum()), "counted": rule.packets}
