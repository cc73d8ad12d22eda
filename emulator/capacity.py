"""How much this machine can forward in real time, and the largest rate that stays inside it.

A prediction, made before a run; whether it held is the fidelity verdict's business afterwards. The
costs are measured on a 2-core virtual machine (`benchmarks/hop_cost.py` and `benchmarks/forwarding.py`
measure another); machines differ, so a margin is kept.
"""
from __future__ import annotations

import math
import socket
import time
from dataclasses import dataclass
from functools import cache

from topologies.graph import Graph
from traffic.load import pairs
from traffic.paths import Paths
from traffic.schedule import Workload
from traffic.wire import Wire

BUSY_LIMIT = 0.65
"""A core must be idle for 35 % of every second (Handigol et al., CoNEXT'12); fidelity check 2."""
MARGIN = 0.75
"""`auto` aims at this share of the limit: single seconds are busier than the mean."""
RELAY_S = 18e-6
"""What the relay of `--delay` adds to each switch passed, 1.2 links on the average: copies in and out and a
wake-up, at 25 us of the relay's own time a link, the forwarding that happens within it included.
"""
STEPS = (1.0, 2.0, 5.0)
HIGHEST_RATE_BPS = 1e9
REFERENCE_PROBE_S = 9e-6
_PROBES = 50


@dataclass(frozen=True)
class Cost:
    """CPU seconds of the busiest core: per packet and switch passed, and per second just for being there.

    `port_s` grows the first with the ports of the fabric (userspace Open vSwitch polls them all).
    """

    hop_s: float
    port_s: float
    idle: float


COSTS = {
    ("ovs", "netdev"): Cost(hop_s=4e-6, port_s=1.5e-6, idle=0.12),
    ("bpf", "bpf"): Cost(hop_s=12e-6, port_s=0.0, idle=0.10),
    ("ovs", "system"): Cost(hop_s=4e-6, port_s=0.0, idle=0.10),
}


@dataclass(frozen=True)
class Capacity:
    """Switch passages a second at the workload's busiest, and the predicted busy share of a core."""

    packet_hops_per_s: float
    busy: float

    @property
    def fits(self) -> bool:
        """Within the limit of fidelity check 2."""
        return self.busy <= BUSY_LIMIT


def packet_hops_per_s(workload: Workload, paths: Paths, wire: Wire) -> float:
    """Packets (data and acknowledgements) times switches passed, a second, while all senders send.

    No more hosts can send at full rate than there are receivers, and the other way round.
    """
    hosts = paths.graph.hosts
    moved = hops = 0.0
    sources, destinations = set(), set()
    for (source, destination, _), size_bytes in pairs(workload.schedule).items():
        a, b = hosts[workload.placement[source]].name, hosts[workload.placement[destination]].name
        sources.add(a)
        destinations.add(b)
        moved += size_bytes
        hops += size_bytes * (len(paths.first(a, b)) - 1)
    if not moved:
        return 0.0
    senders = min(len(sources), len(destinations))
    frames_per_s = senders * wire.rate_bps / (8 * wire.frame_bytes)
    return 1.5 * frames_per_s * hops / moved


@cache
def slowness() -> float:
    """How many times slower than the machine of COSTS this one passes packets; at least 1.

    Measured once, on loopback, in a few milliseconds: the best of several batches of small datagrams, so
    that what else runs does not count. A faster machine is not trusted to be faster all along.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as end:
        end.bind(("127.0.0.1", 0))
        end.settimeout(1.0)
        here = end.getsockname()
        best = math.inf
        for _ in range(10):
            began = time.perf_counter()
            for _ in range(_PROBES):
                end.sendto(b"x", here)
                end.recv(16)
            best = min(best, (time.perf_counter() - began) / _PROBES)
    return max(1.0, best / REFERENCE_PROBE_S)


def predict(workload: Workload, paths: Paths, wire: Wire, switch: str, datapath: str) -> Capacity:
    """The load of a workload at this rate."""
    cost = COSTS[switch, datapath]
    hops = packet_hops_per_s(workload, paths, wire)
    relayed_s = RELAY_S if wire.delay_s else 0.0
    per_hop = (cost.hop_s + cost.port_s * _switch_ports(paths.graph) + relayed_s) * slowness()
    return Capacity(hops, cost.idle + hops * per_hop)


def largest_rate_bps(workload: Workload, paths: Paths, mtu: int, switch: str, datapath: str,
                     delay_s: float = 0.0) -> float:
    """The largest of 1, 2, 5, 10, … kb/s whose prediction stays a margin below the limit."""
    best = 1000.0
    for exponent in range(3, 10):
        for step in STEPS:
            rate = step * 10**exponent
            if rate > HIGHEST_RATE_BPS:
                break
            wire = Wire(rate, mtu, delay_s)
            if predict(workload, paths, wire, switch, datapath).busy > MARGIN * BUSY_LIMIT:
                return best
            best = rate
    return best


def _switch_ports(graph: Graph) -> int:
    return sum(len(graph.neighbours[switch.name]) for switch in graph.switches)
