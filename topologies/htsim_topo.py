"""Topology files of htsim (`.topo`; csg-htsim, sim/datacenter/fat_tree_topology.cpp) as Graphs.

A header (Nodes, Tiers, Podsize) and a block for each of 2 or 3 tiers: Downlink_speed_Gbps,
Radix_Down, Radix_Up, Bundle, Oversubscribed, Downlink_Latency_ns, Switch_Latency_ns. `#` begins a
comment line, names are in any case.
"""
from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from emulator.errors import BadInput, nearest
from emulator.units import show_rate, show_time
from topologies.clos3 import Clos3
from topologies.from_mininet import graph_from_topo
from topologies.graph import Graph
from traffic.importers.text import shown, slip, words_of

HEADER = ("nodes", "tiers", "podsize")
TIER = ("downlink_speed_gbps", "radix_down", "radix_up", "bundle", "oversubscribed", "downlink_latency_ns",
        "switch_latency_ns")
REQUIRED = ("downlink_speed_gbps", "radix_down", "downlink_latency_ns")
VALUE_LAST = 10**9


@dataclass(frozen=True)
class HtsimFabric:
    """A `.topo` file. The Graph carries its wiring and the ratios of its speeds; here is the rest.

    `host_rate_bps` is the target's host link; `link_delay_s` and `switch_delay_s` are those of each
    tier, from the hosts up (a link belongs to the tier above it).
    """

    graph: Graph
    host_rate_bps: float
    link_delay_s: tuple[float, ...]
    switch_delay_s: tuple[float, ...]


@dataclass(frozen=True)
class _Entry:
    value: int
    line: int


_Block = dict[str, _Entry]


def read_topo(path: Path) -> HtsimFabric:
    """The fabric that the file describes; BadInput with file and line for whatever does not fit."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise BadInput(f"the topology file {path} does not exist.") from None
    except OSError as error:
        raise BadInput(f"the topology file {path} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise BadInput(f"the topology file {path} is not text.") from None
    header, tiers = _parse(path, text)
    topo = _clos(path, header, tiers)
    delays = [tuple(tier.get(name, _Entry(0, 0)).value / 1e9 for tier in tiers)
              for name in ("downlink_latency_ns", "switch_latency_ns")]
    host_rate_bps = tiers[0]["downlink_speed_gbps"].value * 1e9
    graph = graph_from_topo(topo, str(path), (_note(path, host_rate_bps, *delays),))
    return HtsimFabric(graph, host_rate_bps, *delays)


def _note(path: Path, host_rate_bps: float, link_delay_s: tuple[float, ...],
          switch_delay_s: tuple[float, ...]) -> str:
    """What of the file the Graph does not carry."""
    links, switches = (", ".join(map(show_time, each)) for each in (link_delay_s, switch_delay_s))
    more = f" and those of its switches ({switches})" if any(switch_delay_s) else ""
    return (f"{path}: the target's host link has {show_rate(host_rate_bps)}, which --rate stands for, and "
            f"other links run at the file's ratios to it; the delays of its tiers ({links} from the hosts "
            f"up){more} are not applied by a topology, --delay gives all links one.")


def _parse(path: Path, text: str) -> tuple[_Block, list[_Block]]:
    header: _Block = {}
    tiers: dict[int, _Block] = {}
    block, known = header, HEADER
    for number, line in enumerate(text.splitlines(), 1):
        words = words_of(line)
        if not words or words[0].startswith("#"):
            continue
        name = words[0].lower()
        if len(words) != 2 or not re.fullmatch(r"[0-9]{1,10}", words[1]) or int(words[1]) > VALUE_LAST:
            raise slip(str(path), number, f'"{shown(line.strip())}" is not a name and one whole number.',
                       words[-1])
        value = int(words[1])
        if name == "tier":
            if value in tiers or value > 2:
                why = "comes twice" if value in tiers else "is not one of 0 to 2"
                raise slip(str(path), number, f"tier {value} {why}.", words[1])
            block, known = tiers.setdefault(value, {}), TIER
            continue
        if name not in known:
            raise slip(str(path), number, f'"{shown(words[0])}" is unknown here{nearest(name, known)}.',
                       words[0])
        if name in block:
            raise slip(str(path), number, f"{words[0]} is given twice, first in line {block[name].line}.",
                       words[0])
        block[name] = _Entry(value, number)
    for name in HEADER:
        if name not in header:
            raise BadInput(f"{path}: the header has no {name.capitalize()}.")
    count = header["tiers"].value
    if count not in (2, 3):
        raise BadInput(f"{path}:{header['tiers'].line}: {count} tiers; 2 or 3 can be built.")
    if sorted(tiers) != list(range(count)):
        raise BadInput(f"{path}:{header['tiers'].line}: the header says {count} tiers, "
                       f"but the file describes tiers {sorted(tiers)}.")
    return header, [tiers[i] for i in range(count)]


def _clos(path: Path, header: _Block, tiers: list[_Block]) -> Clos3:
    for i, tier in enumerate(tiers):
        for name in REQUIRED if i == len(tiers) - 1 else (*REQUIRED, "radix_up"):
            if name not in tier:
                raise BadInput(f"{path}: tier {i} has no {name.capitalize()}.")
            if tier[name].value == 0 and name != "downlink_latency_ns":
                raise BadInput(f"{path}:{tier[name].line}: {name.capitalize()} must be more than 0.")
    if "radix_up" in tiers[-1]:
        raise BadInput(f"{path}:{tiers[-1]['radix_up'].line}: the top tier has no uplinks.")
    down = [tier["radix_down"] for tier in tiers]
    bundle = [tier.get("bundle", _Entry(1, 0)).value for tier in tiers]
    if bundle[0] != 1:
        raise BadInput(f"{path}:{tiers[0]['bundle'].line}: a host has one link, not a bundle of {bundle[0]}.")
    pods = _quotient(path, header["nodes"], header["podsize"].value, "Nodes", "Podsize")
    leaves = _quotient(path, header["podsize"], down[0].value, "Podsize", "Radix_Down of tier 0")
    spines = _quotient(path, tiers[0]["radix_up"], bundle[1], "Radix_Up of tier 0", "Bundle of tier 1")
    cores = 0
    _equal(path, down[1], leaves * bundle[1], f"Radix_Down of tier 1 must join {leaves} leaves")
    if len(tiers) == 3:
        cores = _quotient(path, tiers[1]["radix_up"], bundle[2], "Radix_Up of tier 1", "Bundle of tier 2")
        _equal(path, down[2], pods * bundle[2], f"Radix_Down of tier 2 must join {pods} pods")
    elif pods != 1:
        raise BadInput(f"{path}:{header['podsize'].line}: with 2 tiers all nodes are one pod, "
                       f"so Podsize must be {header['nodes'].value}.")
    ratios = [_oversubscription(path, below, above) for below, above in zip(tiers, tiers[1:], strict=False)]
    try:
        return Clos3(pods, leaves, spines, cores, down[0].value, ratios[0], ratios[1] if cores else 1.0,
                     bundle[1], bundle[2] if cores else 1)
    except ValueError as error:
        raise BadInput(f"{path}: {error}.") from None


def _oversubscription(path: Path, below: Mapping[str, _Entry], above: Mapping[str, _Entry]) -> float:
    """What a switch of the lower tier takes in over what it sends up, checked against what the file says."""
    ratio = (below["radix_down"].value * below["downlink_speed_gbps"].value
             / (below["radix_up"].value * above["downlink_speed_gbps"].value))
    said = below.get("oversubscribed")
    if said is not None and abs(said.value - ratio) > 1e-6 * ratio:
        raise BadInput(f"{path}:{said.line}: Oversubscribed {said.value}, but the radixes and speeds "
                       f"give {ratio:g}.")
    return ratio


def _quotient(path: Path, entry: _Entry, divisor: int, what: str, by: str) -> int:
    if divisor == 0 or entry.value == 0 or entry.value % divisor:
        raise BadInput(f"{path}:{entry.line}: {what} {entry.value} is not a multiple of {by} {divisor}.")
    return entry.value // divisor


def _equal(path: Path, entry: _Entry, expected: int, what: str) -> None:
    if entry.value != expected:
        raise BadInput(f"{path}:{entry.line}: {what}, so it is {expected}, not {entry.value}.")
