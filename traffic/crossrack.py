"""What a collective sends from rack to rack, and what a ring that knows, or does not know, the racks would.

A ring all-reduce sends 2(n-1)/n of the buffer over each of its n edges. Placed at random, an edge leaves
its rack with probability (n-G)/(n-1), G ranks being in each of R = n/G racks: 2(n-G) buffers in all. In
rack order only R edges do: 2(n-1)/G. A hierarchical all-reduce sends 2(n-G)/G.
"""
from __future__ import annotations

from emulator.units import show_size
from topologies.graph import Graph
from traffic.load import pairs
from traffic.placement import racks_of
from traffic.program import split
from traffic.schedule import Schedule, Workload


def cross_rack_bytes(schedule: Schedule, placement: tuple[int, ...], graph: Graph) -> int:
    """Payload of one iteration between hosts of different racks."""
    rack = [graph.hosts[host].rack for host in placement]
    return sum(size_bytes for (source, destination, _), size_bytes in pairs(schedule).items()
               if rack[source] != rack[destination])


def blind_ring_bytes(placement: tuple[int, ...], size_bytes: int, graph: Graph) -> float:
    """What a ring all-reduce over these hosts in random order sends between racks, in the mean."""
    n = len(placement)
    groups = [len(group) for group in racks_of([graph.hosts[host] for host in placement])]
    leaves = 1 - sum(group * (group - 1) for group in groups) / (n * (n - 1))
    return leaves * n * 2 * (n - 1) / n * size_bytes


def ordered_ring_bytes(placement: tuple[int, ...], size_bytes: int, graph: Graph) -> int:
    """What a ring all-reduce over these hosts, rack after rack, sends between racks."""
    hosts = [graph.hosts[host] for host in placement]
    order = [hosts[place].rack for rack in racks_of(hosts) for place in rack]
    return sum(edge for source, edge in enumerate(ring_edges(len(order), size_bytes))
               if order[source] != order[(source + 1) % len(order)])


def ring_edges(ranks: int, size_bytes: int) -> list[int]:
    """Bytes that each rank of a ring all-reduce sends to the next one: on the first way round every chunk
    but its own, on the second every one but that of the next rank.
    """
    chunks = [high - low for low, high in split(0, size_bytes, ranks)]
    return [2 * size_bytes - chunks[rank] - chunks[(rank + 1) % ranks] for rank in range(ranks)]


def note(workload: Workload, graph: Graph) -> str:
    """A sentence for an all-reduce that spans racks; empty for anything else."""
    collective, placement = workload.collective, workload.placement
    if collective is None or collective.name != "all-reduce":
        return ""
    blind = blind_ring_bytes(placement, collective.size_bytes, graph)
    ordered = ordered_ring_bytes(placement, collective.size_bytes, graph)
    own = cross_rack_bytes(workload.schedule, placement, graph)
    if not blind or not ordered:
        return ""
    return (f"Between racks this {workload.schedule.name} sends {show_size(own)} an iteration; a ring over "
            f"the same hosts in random order {show_size(blind)} in the mean ({own / blind:.3f} of it), a "
            f"ring in rack order {show_size(ordered)}: {_verdict(own, ordered)}.")


def server_note(ranks: int, servers: int) -> str:
    """A sentence for a parameter server: where its bytes meet."""
    return (f"Every byte begins or ends at one of {servers} servers, {servers / ranks:.1%} of the {ranks} "
            "nodes; of a ring's bytes each node sends and receives the same share.")


def _verdict(own: int, ordered: int) -> str:
    if own > 1.05 * ordered:
        return f"rack order would save {1 - ordered / own:.0%} of it"
    return "the order of the ranks already saves as much as a hierarchy" if own >= ordered else (
        f"the order of the ranks alone already saves nearly as much, {ordered / own:.2f} times this")
