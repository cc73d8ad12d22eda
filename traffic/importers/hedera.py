"""Traffic pattern files of Hedera (Al-Fares et al., NSDI'10), as in mininet/mininet-tests, hedera/inputs.

One line a flow, fields parted by blanks:

    src_ip dst_ip dst_port type seed start_time stop_time flow_size r/e repetitions pause r/e [rpc_delay r/e]

The files drive endless flows for a minute; here each line is one finite flow.
"""
from __future__ import annotations

import ipaddress
from dataclasses import dataclass

from emulator.errors import BadInput
from topologies.graph import Graph
from traffic.importers.text import decimal, read_lines, shown, slip, words_of
from traffic.patterns import Pairs, flows
from traffic.schedule import Workload

FIELDS = ("src_ip", "dst_ip", "dst_port", "type", "seed", "start_time", "stop_time", "flow_size")


@dataclass(frozen=True)
class Line:
    """One flow of a pattern file. `size` is only meant relative to the others'."""

    number: int
    source_ip: str
    destination_ip: str
    start_s: float
    size: float


def read_hedera(path: str) -> tuple[Line, ...]:
    """Parse a pattern file; every slip is a BadInput with file and line."""
    lines = []
    for number, text in enumerate(read_lines(path, "a Hedera traffic pattern"), 1):
        words = words_of(text)
        if not words or words[0].startswith("#"):
            continue
        if len(words) < len(FIELDS):
            raise slip(path, number, f"{len(words)} fields where at least {len(FIELDS)} are expected "
                                     f"({' '.join(FIELDS)}).")
        for ip in words[:2]:
            try:
                ipaddress.IPv4Address(ip)
            except ValueError:
                raise slip(path, number, f'"{shown(ip)}" is not an IPv4 address.', ip) from None
        if words[3] != "TCP":
            raise slip(path, number, f'type "{shown(words[3])}" cannot be sent; only TCP can.', words[3])
        start_s = decimal(path, number, "start_time", words[5])
        size = decimal(path, number, "flow_size", words[7])
        if not size:
            raise slip(path, number, "flow_size 0 sends nothing.", words[7])
        lines.append(Line(number, words[0], words[1], start_s, size))
    if not lines:
        raise BadInput(f"{path} has no flows: nothing would be sent.")
    return tuple(lines)


def hedera_pairs(path: str, lines: tuple[Line, ...], graph: Graph) -> Pairs:
    """(source, destination) of each line, by the addresses of the hosts of `graph`: places in graph.hosts,
    which of one of several jobs are only its own.
    """
    host_of = {host.ip: place for place, host in enumerate(graph.hosts)}
    for line in lines:
        for ip in (line.source_ip, line.destination_ip):
            if ip not in host_of:
                raise slip(path, line.number, f"no host of {graph.name} for this workload has the address {ip}; "
                                              f"its hosts are {graph.hosts[0].ip} to {graph.hosts[-1].ip}.")
        if line.source_ip == line.destination_ip:
            raise slip(path, line.number, f"{line.source_ip} sends to itself.")
    return [(host_of[line.source_ip], host_of[line.destination_ip]) for line in lines]


def hedera_workload(path: str, lines: tuple[Line, ...], pairs: Pairs, largest_bytes: int,
                    dilation: float = 1.0) -> Workload:
    """The largest flows send `largest_bytes`, the others in proportion; starts times `dilation`."""
    largest = max(line.size for line in lines)
    sizes = [max(1, round(largest_bytes * (line.size / largest))) for line in lines]
    schedule, placement = flows("hedera", pairs, sizes, starts_s=[line.start_s * dilation for line in lines])
    note = f"{path}: stop times, repetitions and pauses are left out; each line is one flow of finite size."
    return Workload(path, schedule, placement, notes=(note,))

