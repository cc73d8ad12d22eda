"""Lists of flows between numbered nodes as a workload: node n is host n, every flow its own connection."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from emulator.errors import BadInput
from traffic.expand import Scale
from traffic.importers.text import slip
from traffic.mapping import hosts_of, pack, without
from traffic.program import Program
from traffic.schedule import PACE, Schedule, Workload


class AnyFlow(Protocol):
    """What a flow of any format has."""

    line: int
    source: int
    destination: int
    priority: int | None
    size_bytes: int
    start_s: float


def flows_workload(path: str, flows: Sequence[AnyFlow], hosts: int, scale: Scale,
                   how: str | None) -> Workload:
    """One message a flow. Starts count from the earliest one; a priority names the class `prioN`."""
    nodes = sorted({node for flow in flows for node in (flow.source, flow.destination)})
    rank = {node: number for number, node in enumerate(nodes)}
    earliest_s = min(flow.start_s for flow in flows)
    program = Program(len(nodes))
    connections: dict[tuple[int, int], int] = {}
    for flow in flows:
        a, b = rank[flow.source], rank[flow.destination]
        start_s = (flow.start_s - earliest_s) * scale.dilation
        deps = (program.compute(a, start_s, (), PACE, 0),) if start_s else ()
        connections[a, b] = connections.get((a, b), -1) + 1
        program.traffic_class = f"prio{flow.priority}"
        program.message(a, b, scale.size(flow.size_bytes), deps=deps, channel=connections[a, b], phase="flow")
    lines = {node: flow.line for flow in reversed(flows) for node in (flow.source, flow.destination)}
    notes = [f"{path}: destination ports are left out; the priority group of a flow is its traffic class "
             "(prio3, …)."]
    if earliest_s:
        notes.append(f"{path}: the first flow starts at once, not at {earliest_s:g} s.")
    schedule, placement, more = place_nodes(path, program.schedule("flows"), nodes, lines, max(nodes) + 1,
                                            hosts, how)
    return Workload(path, schedule, placement, notes=(*notes, *more))


def place_nodes(path: str, schedule: Schedule, nodes: Sequence[int], lines: dict[int, int], total: int,
                hosts: int, how: str | None) -> tuple[Schedule, tuple[int, ...], list[str]]:
    """(schedule, placement, notes): rank r is node nodes[r] of `total`; lines: where each comes first.

    Node n is host n. Where there are too few hosts `how` decides, or a BadInput that offers the choice.
    """
    far = next((node for node in sorted(nodes) if node >= hosts), None)
    if far is None:
        return schedule, tuple(nodes), []
    if how is None:
        raise slip(path, lines[far], f"node {far} needs a host of that number, but the fabric has {hosts} "
                                     "hosts (0 to "
                                     f"{hosts - 1}); use a larger fabric, or add ,map=pack (several nodes a "
                                     "host) or "
                                     ",map=first (only flows among the first).")
    if how == "pack":
        packed, placement = pack(schedule, hosts_of(nodes, total, hosts))
        return packed, placement, [
            f"{path}: map=pack puts {-(-total // hosts)} nodes on a host; "
            f"{schedule.bytes_sent - packed.bytes_sent} "
            "bytes among nodes of one host cost nothing."]
    kept = [node for node in nodes if node < hosts]
    if not kept:
        raise BadInput(f"{path}: map=first leaves no flow; none is among the first {hosts} nodes.")
    cut = without(schedule, {rank for rank, node in enumerate(nodes) if node >= hosts})
    merged, placement = pack(cut, [node if node < hosts else kept[0] for node in nodes])
    return merged, placement, [
        f"{path}: map=first leaves out {schedule.bytes_sent - merged.bytes_sent} bytes of flows from or to "
        "nodes from "
        f"{hosts} on; what waited for them does not."]
