"""Topology files of HPCC's ns-3 (alibaba-edu/High-Precision-Congestion-Control, simulation/mix) as Graphs.

    6 2 5                          nodes, switches, links
    4 5                            which nodes are switches
    0 4 100Gbps 0.001ms 0          node node rate delay error_rate
    …

Node n is host n: hosts come first, from 0.
"""
from __future__ import annotations

import re
from dataclasses import dataclass

from mininet.topo import Topo

from emulator.errors import BadInput
from emulator.units import show_rate, show_time
from topologies.from_mininet import graph_from_topo
from topologies.graph import Graph
from traffic.importers.text import Word, decimal, read_lines, shown, slip, whole_number, words_of

MOST_NODES = 8192
MOST_LINKS = 65536
RATES = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}
TIMES = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
COLUMNS = ("node", "node", "rate", "delay", "error_rate")


@dataclass(frozen=True)
class HpccLink:
    """A link of the target: bits per second, seconds one way, share of packets lost."""

    line: int
    a: int
    b: int
    rate_bps: float
    delay_s: float
    error_rate: float


@dataclass(frozen=True)
class HpccFabric:
    """A whole file. The Graph has the wiring and the ratios of the speeds; `links` the target's figures.

    `host_rate_bps` is the target's rate of host 0's link, which is speed 1 in the Graph.
    """

    graph: Graph
    host_rate_bps: float
    links: tuple[HpccLink, ...]


def read_hpcc_topo(path: str) -> HpccFabric:
    """The fabric that the file describes; BadInput with file, line and column for whatever does not fit."""
    lines = [(number, words_of(text)) for number, text in enumerate(read_lines(path, "an HPCC topology"), 1)]
    lines = [(number, words) for number, words in lines if words and not words[0].startswith("#")]
    if not lines or len(lines[0][1]) != 3:
        count = len(lines[0][1]) if lines else 0
        extra = "; a SimAI topology, whose servers have several links, cannot be built" if count == 6 else ""
        raise slip(path, lines[0][0] if lines else 1,
                   f"the first line must be: nodes, switches, links; it has {count} words{extra}.")
    line, words = lines[0]
    nodes, switch_count, link_count = (
        whole_number(path, line, name, word, 1, most) for name, word, most in
        zip(("nodes", "switches", "links"), words, (MOST_NODES, MOST_NODES, MOST_LINKS)))
    if len(lines) < 2 or len(lines[1][1]) != switch_count:
        raise slip(path, lines[min(1, len(lines) - 1)][0], f"the second line must name {switch_count} "
                                                           "switches.")
    switches = _switches(path, *lines[1], nodes)
    if len(lines) - 2 != link_count:
        raise slip(path, line, f"it says {link_count} links, but the file has {len(lines) - 2}.", words[2])
    links = tuple(_link(path, number, row, nodes) for number, row in lines[2:])
    hosts = nodes - switch_count
    for host in range(hosts):
        if host in switches:
            raise slip(path, lines[1][0], f"node {host} is a switch, but hosts must have the numbers 0 to "
                                          f"{hosts - 1}.")
    first = next((link for link in links if 0 in (link.a, link.b)), None)
    if hosts < 1 or first is None:
        raise BadInput(f"{path}: node 0, the first host, has no link.")
    topo = Topo()
    names = [f"h{node + 1}" if node < hosts else f"s{node}" for node in range(nodes)]
    for node, name in enumerate(names):
        if node < hosts:
            topo.addHost(name)
        else:
            topo.addSwitch(name, dpid=f"{node:016x}")
    for link in links:
        topo.addLink(names[link.a], names[link.b], speed=link.rate_bps / first.rate_bps)
    graph = graph_from_topo(topo, f"hpcc:{path}", _notes(path, first.rate_bps, links))
    return HpccFabric(graph, first.rate_bps, links)


def _switches(path: str, line: int, words: list[Word], nodes: int) -> set[int]:
    found: set[int] = set()
    for word in words:
        switch = whole_number(path, line, "switch", word, 0, nodes - 1)
        if switch in found:
            raise slip(path, line, f"switch {switch} is named twice.", word)
        found.add(switch)
    return found


def _link(path: str, line: int, words: list[Word], nodes: int) -> HpccLink:
    if len(words) != len(COLUMNS):
        raise slip(path, line, f"{len(words)} columns where {len(COLUMNS)} are expected: "
                               f"{' '.join(COLUMNS)}.")
    a, b = (whole_number(path, line, "node", word, 0, nodes - 1) for word in words[:2])
    if a == b:
        raise slip(path, line, f"node {a} is linked to itself.", words[1])
    rate = re.fullmatch(r"([0-9]{1,6}(?:\.[0-9]{1,6})?)([kKMGT]?)(bps|b/s)", words[2])
    if not rate or not float(rate[1]):
        raise slip(path, line, f'the rate "{shown(words[2])}" is not of the form 100Gbps.', words[2])
    delay = re.fullmatch(r"([0-9]{1,6}(?:\.[0-9]{1,9})?)(ns|us|ms|s)", words[3])
    if not delay:
        raise slip(path, line, f'the delay "{shown(words[3])}" is not of the form 1us.', words[3])
    return HpccLink(line, a, b, float(rate[1]) * RATES[rate[2].lower()], float(delay[1]) * TIMES[delay[2]],
                    decimal(path, line, "error_rate", words[4], 1.0))


def _notes(path: str, host_rate_bps: float, links: tuple[HpccLink, ...]) -> tuple[str, ...]:
    delays = sorted({link.delay_s for link in links})
    lossy = sum(1 for link in links if link.error_rate)
    shown_delays = " and ".join(map(show_time, delays[:3])) + (" and more" if delays[3:] else "")
    notes = [f"{path}: the target's host link has {show_rate(host_rate_bps)}, which --rate stands for; its "
             f"links have delays of {shown_delays}, which a topology does not apply; --delay gives all one."]
    if lossy:
        notes.append(f"{path}: the error rates of {lossy} links are not applied.")
    return tuple(notes)
