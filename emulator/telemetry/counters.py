"""Counters of links, queues, sockets and cores, read before and after the traffic, and what came between.

Reading happens while nothing is sent: a snapshot is not one moment, and only then do numbers of
different places have to agree.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace

from emulator.errors import MachineLacks
from emulator.fabric.spec import HostSite, Port
from emulator.telemetry.links import LinkCounters, read_links
from emulator.telemetry.namespaces import inside
from emulator.telemetry.qdisc import QueueReader
from emulator.telemetry.ticks import now_ns

_WRAP = 1 << 32


@dataclass(frozen=True)
class QueueCounters:
    """A port's root qdisc. queued_packets and backlog_bytes are what waits, the others counters.

    sent_packets counts what segmentation would make of a packet, link counters do not: where the two
    differ, packets above the MTU passed. direct_packets went out unshaped, having no class.
    """

    sent_bytes: int = 0
    sent_packets: int = 0
    dropped_packets: int = 0
    direct_packets: int = 0
    queued_packets: int = 0
    backlog_bytes: int = 0
    shaped: bool = True


@dataclass(frozen=True)
class Backlog:
    """Summed over all cores, of /proc/net/softnet_stat; it is the whole machine's, not one run's.

    dropped: packets refused because a core's input queue was full; squeezed: times that receiving
    ran out of its time slice.
    """

    dropped: int = 0
    squeezed: int = 0


@dataclass(frozen=True)
class Snapshot:
    """Everything at about time_s (CLOCK_MONOTONIC).

    links, queues: by interface name. sockets: host name -> counter -> value, named as nstat(8) does
    without the blank: 'Tcp.RetransSegs', 'TcpExt.TCPBacklogDrop', 'IpExt.InCEPkts'.
    """

    time_s: float
    links: Mapping[str, LinkCounters]
    queues: Mapping[str, QueueCounters]
    sockets: Mapping[str, Mapping[str, int]]
    backlog: Backlog


def take_snapshot(ports: Sequence[Port], hosts: Sequence[HostSite]) -> Snapshot:
    """Read all counters; enters each host's namespace in turn, so it needs root."""
    time_s = now_ns() * 1e-9
    with open("/proc/net/softnet_stat") as table:
        backlog = parse_softnet(table.read())
    return Snapshot(time_s, _links(ports), _queues(ports),
                    {host.name: protocol_counters(host.netns) for host in hosts}, backlog)


def difference(before: Snapshot, after: Snapshot) -> Snapshot:
    """What was counted between two snapshots of the same fabric; of what waits, how much more it is.

    `shaped` is that of `after`, time_s the seconds between.

    Raises MachineLacks when an interface or host has gone in between.
    """
    for what, early, late in (("interface", before.links, after.links),
                              ("queue", before.queues, after.queues),
                              ("host", before.sockets, after.sockets)):
        for name in early:
            if name not in late:
                raise MachineLacks(f"The {what} {name} was there before the traffic and is gone after it.")
    return Snapshot(
        after.time_s - before.time_s,
        {name: after.links[name] - early for name, early in before.links.items()},
        {name: _since(early, after.queues[name]) for name, early in before.queues.items()},
        {host: {name: after.sockets[host].get(name, 0) - value for name, value in early.items()}
         for host, early in before.sockets.items()},
        Backlog(after.backlog.dropped - before.backlog.dropped,
                after.backlog.squeezed - before.backlog.squeezed))


def without_drops(counted: Snapshot, lost: Mapping[str, int]) -> Snapshot:
    """`counted` with `lost` packets of each interface taken out of its drops: a program in front of the queue
    dropped them, which is counted with the queue's own, and they are told apart (bit errors).
    """
    return replace(counted, queues={
        name: replace(queue, dropped_packets=queue.dropped_packets - lost.get(name, 0))
        for name, queue in counted.queues.items()})


def _since(before: QueueCounters, after: QueueCounters) -> QueueCounters:
    # a qdisc that was replaced counts from zero; that it was is the sampler's to say
    restarted = after.sent_bytes < before.sent_bytes
    early = QueueCounters() if restarted else before
    return QueueCounters(
        after.sent_bytes - early.sent_bytes, after.sent_packets - early.sent_packets,
        (after.dropped_packets - early.dropped_packets) % _WRAP,
        (after.direct_packets - early.direct_packets) % _WRAP,
        after.queued_packets - before.queued_packets, after.backlog_bytes - before.backlog_bytes,
        after.shaped)


def _links(ports: Sequence[Port]) -> dict[str, LinkCounters]:
    found = {netns: read_links(netns) for netns in dict.fromkeys(port.netns for port in ports)}
    counters = {}
    for port in ports:
        if port.ifindex not in found[port.netns]:
            raise MachineLacks(f"The interface {port.name} (index {port.ifindex}) is not there.")
        counters[port.name] = found[port.netns][port.ifindex]
    return counters


def _queues(ports: Sequence[Port]) -> dict[str, QueueCounters]:
    reader = QueueReader([(port.netns, port.ifindex) for port in ports])
    try:
        reading = reader.read()
    finally:
        reader.close()
    columns = zip(*(getattr(reading, field.name).tolist() for field in fields(QueueCounters)))
    return {port.name: QueueCounters(*column) for port, column in zip(ports, columns)}


def protocol_counters(netns: str) -> dict[str, int]:
    """All counters of the IP, TCP and UDP stack of a namespace."""
    counters: dict[str, int] = {}
    with inside(netns):
        for name in ("snmp", "netstat"):
            with open(f"/proc/thread-self/net/{name}") as table:
                counters |= parse_protocol_counters(table.read())
    return counters


def parse_protocol_counters(text: str) -> dict[str, int]:
    """'Tcp.RetransSegs' -> value, from /proc/net/snmp or netstat: a line of names, then one of values."""
    counters: dict[str, int] = {}
    lines = text.splitlines()
    for names, values in zip(lines[::2], lines[1::2]):
        protocol, _, names = names.partition(":")
        other, _, values = values.partition(":")
        if protocol != other:
            raise MachineLacks(f"The protocol counters of this kernel are not readable: the names of "
                               f"{protocol} are followed by the values of {other}.")
        counters |= {f"{protocol}.{name}": int(value) for name, value in zip(names.split(), values.split())}
    return counters


def parse_softnet(text: str) -> Backlog:
    """From /proc/net/softnet_stat: a line a core; second column dropped, third time_squeeze, hexadecimal."""
    rows = [[int(word, 16) for word in line.split()] for line in text.splitlines()]
    return Backlog(sum(row[1] for row in rows), sum(row[2] for row in rows))
