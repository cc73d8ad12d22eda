"""A datapath without packets: it holds tables, and `inject` runs a frame through the plain lookup.

Knobs for the tests: modes it lacks, its largest frame, how many queues a port has, and a file whose lines
are events ('down 1 2': switch 1, port 2; 'frame 1 2 HEX': a frame arrives) for an agent in another process.
"""
from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from emulator.asic.lookup import find_rule, parse, rewrite
from emulator.asic.pipeline import (
    MODES, Count, PipelineGroup, PipelineMatch, PipelineTables, PortState, QueueState)


class FakeDatapath:
    """`ports` ports (1..ports) on each switch of `dpids`."""

    def __init__(self, dpids=(1,), ports=4, modes=MODES, events: str | None = None,
                 largest_frame=1514, queues=8) -> None:
        self.modes, self.largest_frame, self.queue_count = modes, largest_frame, queues
        self.tables = {dpid: PipelineTables((), ()) for dpid in dpids}
        self.port_states = {dpid: {number: _port(dpid, number) for number in range(1, ports + 1)}
                            for dpid in dpids}
        self.counts: dict[int, dict[int, Count]] = {dpid: {} for dpid in dpids}
        self.buckets: dict[int, dict[int, list[Count]]] = {dpid: {} for dpid in dpids}
        self.sent: list[tuple[int, int, bytes]] = []
        self.replacements = 0
        self._events = Path(events) if events else None
        self._events_read = 0
        self._packet_in: Callable | None = None
        self._port_status: Callable | None = None

    def dpids(self):
        return list(self.tables)

    def replace_tables(self, dpid: int, tables: PipelineTables) -> None:
        for group in tables.groups:
            if group.mode not in self.modes:
                raise ValueError(f"group {group.id}: this datapath has no mode {group.mode}.")
        for rule in tables.rules:
            if rule.match.dscp == 63:
                raise ValueError("rule: this datapath cannot match DSCP 63.")
        self.replacements += 1
        old = self.counts[dpid]
        self.tables[dpid] = tables
        self.counts[dpid] = {rule.id: old.get(rule.id, Count(0, 0)) for rule in tables.rules}
        kept = self.buckets[dpid]
        self.buckets[dpid] = {
            group.id: kept[group.id] if len(kept.get(group.id, ())) == len(group.buckets) and group.buckets
            else [Count(0, 0)] * len(group.buckets) for group in tables.groups}

    def rule_counts(self, dpid: int):
        return dict(self.counts[dpid])

    def bucket_counts(self, dpid: int):
        return {number: list(counts) for number, counts in self.buckets[dpid].items()}

    def ports(self, dpid: int):
        return list(self.port_states[dpid].values())

    def queues(self, dpid: int):
        return [QueueState(port, queue, Count(10 * port + queue, 1000), queue)
                for port in self.port_states[dpid] for queue in range(self.queue_count)]

    def packet_out(self, dpid: int, port: int, frame: bytes) -> None:
        if len(frame) > self.largest_frame:
            raise ValueError(f"a frame of {len(frame)} bytes cannot be sent.")
        self.sent.append((dpid, port, frame))

    def watch(self, packet_in, port_status) -> None:
        self._packet_in, self._port_status = packet_in, port_status

    def descriptors(self):
        return []

    def poll(self, timeout_s: float) -> None:
        """Carry out the lines that were added to the events file."""
        if self._events is None or not self._events.exists():
            return
        lines = self._events.read_text().split("\n")[:-1]
        for line in lines[self._events_read:]:
            word, *rest = line.split()
            if word == "frame":
                self.inject(int(rest[0]), int(rest[1]), bytes.fromhex(rest[2]))
            else:
                self.set_port(int(rest[0]), int(rest[1]), word == "up")
        self._events_read = len(lines)

    def set_port(self, dpid: int, port: int, up: bool) -> None:
        state = self.port_states[dpid][port] = replace(self.port_states[dpid][port], up=up)
        if self._port_status:
            self._port_status(dpid, state)

    def inject(self, dpid: int, in_port: int, frame: bytes) -> list[tuple[int, bytes]]:
        """What leaves when `frame` arrives at `in_port`: (port, frame) pairs; packet-ins are told."""
        packet = parse(frame, in_port)
        rule = find_rule(self.tables[dpid].rules, packet)
        if rule is None:
            return []
        self._count(dpid, rule.id, frame)
        if rule.actions.to_controller and self._packet_in:
            self._packet_in(dpid, in_port, frame)
        port = rule.actions.output
        frame = rewrite(rule.actions, frame)
        if rule.actions.group is not None:
            group = next(g for g in self.tables[dpid].groups if g.id == rule.actions.group)
            place = self._member(dpid, group, packet)
            if place is None:
                return []
            bucket = group.buckets[place]
            self.buckets[dpid][group.id][place] = _plus(self.buckets[dpid][group.id][place], frame)
            port = bucket.port
            frame = (bucket.eth_dst or frame[:6]) + frame[6:]
        return [] if port is None else [(port, frame)]

    def _count(self, dpid: int, number: int, frame: bytes) -> None:
        self.counts[dpid][number] = _plus(self.counts[dpid][number], frame)

    def _member(self, dpid: int, group: PipelineGroup, packet: PipelineMatch) -> int | None:
        live = [n for n, bucket in enumerate(group.buckets)
                if self.port_states[dpid][bucket.watch_port or bucket.port].up and bucket.weight]
        if not live or group.fast_failover:
            return live[0] if live else None
        wheel = [n for n in live for _ in range(group.buckets[n].weight)]
        flow = (packet.ipv4_src, packet.ipv4_dst, packet.ip_proto, packet.l4_src, packet.l4_dst)
        key = repr((group.seed, *flow))
        return wheel[zlib.crc32(key.encode()) % len(wheel)]


def _port(dpid: int, number: int) -> PortState:
    mac = bytes((2, 0, 0, 0, dpid & 255, number))
    return PortState(number, f"s{dpid}-eth{number}", mac, True, 1e9, Count(0, 0), Count(0, 0), 0, 0)


def _plus(count: Count, frame: bytes) -> Count:
    return Count(count.packets + 1, count.bytes + len(frame))


def open_fake(argument: dict) -> FakeDatapath:
    """For an agent in a process of its own."""
    return FakeDatapath(**argument)
