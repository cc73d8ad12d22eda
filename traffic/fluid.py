"""What share of its ceiling a workload gets when switches hash whole flows: the fluid model.

Flows on fixed paths share links max-min fairly (Bertsekas and Gallager, Data Networks, 6.5.2). Every
switch chooses among its equal-cost next hops at random, as a good hash with a seed of its own does;
one seed of the draw stands for one set of source ports. Rates are fractions of a host link.
"""
from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy

from emulator.errors import BadInput
from traffic.paths import Paths
from traffic.schedule import Kind, Schedule, Workload

ROUTINGS = ("ecmp", "single")
Connection = tuple[int, int, int]
"""(source rank, destination rank, channel)"""


def max_min(paths: numpy.ndarray, capacity: numpy.ndarray) -> numpy.ndarray:
    """Max-min fair rates, shape (flows,). `paths`: directed links of each flow, shape (flows, longest
    path), -1 where a path is shorter; `capacity`: of each directed link, all > 0.
    """
    on_path = paths >= 0
    owner = numpy.broadcast_to(numpy.arange(len(paths))[:, None], paths.shape)[on_path]
    link = paths[on_path]
    left, rate = capacity.astype(float), numpy.zeros(len(paths))
    growing = numpy.ones(len(paths), dtype=bool)
    for _ in range(len(capacity)):  # each round fills a link and so fixes the flows that use it
        active = growing[owner]
        users = numpy.bincount(link[active], minlength=len(capacity))
        busy = users > 0
        if not busy.any():
            break
        step = (left[busy] / users[busy]).min()
        rate[growing] += step
        left -= step * users
        full = busy & (left <= 1e-9 * capacity)
        growing[owner[active & full[link]]] = False
    return rate


def draw_path(paths: Paths, source: str, destination: str, rng: random.Random) -> tuple[int, ...]:
    """The directed links of a path on which each node picks one of its next hops at random."""
    towards, node, links = paths.towards(destination), source, []
    if source not in towards.hops:
        raise BadInput(f"{paths.graph.name}: there is no path from {source} to {destination}.")
    while node != destination:
        hops = towards.hops[node]
        hop = hops[int(rng.random() * len(hops))]
        links.append(hop.link)
        node = hop.node
    return tuple(links)


@dataclass(frozen=True)
class Spread:
    """A quantity over seeds: mean, standard deviation, 5th and 95th percentile."""

    mean: float
    sd: float
    p5: float
    p95: float


@dataclass(frozen=True)
class Share:
    """What the fabric lets through of what the host links alone would.

    `throughput`: all flows together while all of them run (what long flows reach).
    `efficiency`: of the time; the messages of one step are under way together and a step lasts
    until its slowest flow is done. That is exact for rings and patterns; where partners exchange
    step by step, fast ranks run ahead into the next step and may slow the others further.
    """

    throughput: Spread
    efficiency: Spread


Placed = Callable[[Sequence[tuple[str, str]], int], Mapping[tuple[str, str], tuple[int, ...]]]
"""(pairs of hosts, seed) -> the directed links between their switches, of pairs given a path"""


EXPECTED_SEEDS = 100
"""Over which the plan and a job alone take the expected share."""


def expected_share(workload: Workload, paths: Paths, routing: str, seeds: Iterable[int],
                   placed: Placed | None = None) -> Share:
    """The distribution over `seeds` under routing 'ecmp', or, for 'single' (one path for each pair,
    through the lowest port at each node), the one value that there is.

    `placed`: under ecmp, the paths of those pairs of hosts that are not hashed. Multiply by the goodput ratio
    to get data. Compute times are left out: this is the network's part.
    """
    if routing not in ROUTINGS:
        raise BadInput(f'the fluid model covers routing {" and ".join(ROUTINGS)}, not "{routing}".')
    steps = messages_by_step(workload.schedule)
    if not steps:
        raise BadInput(f"{workload.name} sends nothing; there is no share to expect.")
    connections = list({connection: None for step in steps for connection in step})
    hosts = [paths.graph.hosts[host].name for host in workload.placement]
    capacity = numpy.ones(2 * (1 + max(paths.link)))
    for link in paths.graph.links:
        capacity[2 * link.index:2 * link.index + 2] = link.speed
    samples = []
    for seed in seeds if routing == "ecmp" else (0,):
        rng = random.Random(seed)
        given = placed([(hosts[a], hosts[b]) for a, b, _ in connections], seed) if placed else {}
        drawn = {(a, b, c): (draw_path(paths, hosts[a], hosts[b], rng) if routing == "ecmp"
                             else paths.first(hosts[a], hosts[b])) for a, b, c in connections}
        for (a, b, c), links in drawn.items():
            if (hosts[a], hosts[b]) in given:  # the hosts' own links are the same on all paths
                drawn[a, b, c] = (links[0], *given[hosts[a], hosts[b]], links[-1])
        samples.append(_share(steps, drawn, capacity))
    throughput, efficiency = numpy.array(samples).T
    return Share(_spread(throughput), _spread(efficiency))


def messages_by_step(schedule: Schedule) -> list[dict[Connection, int]]:
    """Bytes of each connection in each (phase, step), in order of first appearance.

    Where a phase sends slices its steps overlap, so that the whole phase counts as one step; not so where
    slices wait for what their own rank sent in the step before, as those of an all-to-all do.
    """
    steps: dict[tuple[str, int], dict[Connection, int]] = {}
    sliced: set[str] = set()
    in_step: set[str] = set()
    for rank, ops in enumerate(schedule.ranks):
        for op in ops:
            if op.kind is Kind.SEND:
                step = steps.setdefault((op.phase, op.step), {})
                key = (rank, op.peer, op.channel)
                if key in step:
                    sliced.add(op.phase)
                step[key] = step.get(key, 0) + op.size_bytes
                before = (Kind.SEND, op.phase, op.step - 1)
                if any((ops[dep].kind, ops[dep].phase, ops[dep].step) == before for dep in op.deps):
                    in_step.add(op.phase)
    together: dict[tuple[str, int], dict[Connection, int]] = {}
    for (phase, number), step in steps.items():
        merged = together.setdefault((phase, -1 if phase in sliced - in_step else number), {})
        for key, size_bytes in step.items():
            merged[key] = merged.get(key, 0) + size_bytes
    return list(together.values())


def _share(steps: list[dict[Connection, int]], drawn: dict[Connection, tuple[int, ...]],
           capacity: numpy.ndarray) -> tuple[float, float]:
    """(throughput, efficiency) of one draw."""
    known: dict[tuple[Connection, ...], tuple[numpy.ndarray, numpy.ndarray]] = {}
    ideal_time = time = carried = weight = 0.0
    for step in steps:
        together = tuple(step)
        if together not in known:  # a ring repeats the same flows step after step
            longest = max(len(drawn[connection]) for connection in together)
            table = numpy.array([drawn[c] + (-1,) * (longest - len(drawn[c])) for c in together])
            ends = numpy.array([(drawn[c][0], drawn[c][-1]) for c in together])
            known[together] = max_min(table, capacity), max_min(ends, capacity)
        rate, alone = known[together]
        size = numpy.fromiter(step.values(), float)
        time += (size / rate).max()
        ideal_time += (size / alone).max()
        carried += size.sum() * rate.sum() / alone.sum()
        weight += size.sum()
    return carried / weight, ideal_time / time


def _spread(samples: numpy.ndarray) -> Spread:
    p5, p95 = numpy.percentile(samples, (5, 95))
    return Spread(float(samples.mean()), float(samples.std()), float(p5), float(p95))
