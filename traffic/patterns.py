"""Traffic patterns of the data-centre literature (Al-Fares et al., NSDI'10): finite flows, all at once.

A pattern is a list of (source, destination) host indices; `flows` makes it a schedule.
"""
from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from emulator.errors import BadInput
from traffic.program import Program, split
from traffic.schedule import PACE, Schedule

Pairs = list[tuple[int, int]]


def stride(hosts: int, distance: int) -> Pairs:
    """Host x sends to host x + distance (mod hosts)."""
    if distance % hosts == 0:
        raise BadInput(f"pattern stride={distance}: each of the {hosts} hosts would send to itself; "
                       f"use 1 to {hosts - 1}.")
    return [(x, (x + distance) % hosts) for x in range(hosts)]


def pair(hosts: int, source: int, destination: int) -> Pairs:
    """One flow between two hosts, counted from 0."""
    for host in (source, destination):
        if not 0 <= host < hosts:
            raise BadInput(f"pattern pair={source}-{destination}: there is no host {host}; hosts are "
                           f"0 to {hosts - 1}.")
    if source == destination:
        raise BadInput(f"pattern pair={source}-{destination}: a host cannot send to itself.")
    return [(source, destination)]


def incast(hosts: int, senders: int) -> Pairs:
    """Hosts 0 to senders-1 all send to the last host."""
    if not 1 <= senders <= hosts - 1:
        raise BadInput(f"pattern incast={senders}: with {hosts} hosts there can be 1 to {hosts - 1} senders.")
    return [(x, hosts - 1) for x in range(senders)]


def random_bijection(hosts: int, seed: int) -> Pairs:
    """Each host sends to one host and receives from one, never itself; uniform over such permutations."""
    if hosts < 2:
        raise BadInput("pattern random-bijection needs at least 2 hosts.")
    rng = random.Random(f"bijection {seed}")
    order = list(range(hosts))
    # A shuffle has no fixed point with probability 1/e, so about three tries are needed; 1000
    # failures in a row have probability 1e-199.
    for _ in range(1000):
        rng.shuffle(order)
        if all(x != y for x, y in enumerate(order)):
            return list(enumerate(order))
    raise AssertionError("no permutation without fixed points in 1000 shuffles")


@dataclass(frozen=True)
class Pace:
    """A flow in messages of `message_bytes`, one every `period_s`, whatever became of those before."""

    message_bytes: int
    period_s: float


def _paced(program: Program, source: int, destination: int, size_bytes: int, pace: Pace, start_s: float,
           channel: int, name: str) -> None:
    """Each message waits for a moment of its own, counted from the start, so that no lateness adds up."""
    for step, low in enumerate(range(0, size_bytes, pace.message_bytes)):
        at_s = start_s + step * pace.period_s
        deps = (program.compute(source, at_s, (), PACE, step),) if at_s else ()
        program.message(source, destination, min(pace.message_bytes, size_bytes - low), deps=deps,
                        channel=channel, phase=name, step=step)


def staggered(racks: Sequence[object], pods: Sequence[object], edge_p: float, pod_p: float,
              seed: int) -> Pairs:
    """Each host sends to a host of its rack with probability edge_p, to another rack of its pod with pod_p,
    else further away; as in the authors' own files, no two send to the same host.

    racks[x], pods[x]: the rack and the pod of host x. How far each host sends is drawn first; then the
    nearest choose first, since they have the fewest hosts to choose from. Who finds none left at his distance
    takes the next further one, or else a nearer one.
    """
    if not (0 <= edge_p <= 1 and 0 <= pod_p <= 1 and edge_p + pod_p <= 1 + 1e-9):
        raise BadInput(f"pattern staggered={edge_p:g}-{pod_p:g}: two probabilities with a sum of at most 1 "
                       f"are needed, of the same rack and of the same pod.")
    hosts = range(len(racks))
    rng = random.Random(f"staggered {seed}")

    def away(x: int, y: int) -> int:
        return 0 if racks[x] == racks[y] else 1 if pods[x] == pods[y] else 2

    for _ in range(1000):  # a draw fails where the last host left is the one that has to choose
        drawn = [0 if point < edge_p else 1 if point < edge_p + pod_p else 2 for point in
                 (rng.random() for _ in hosts)]
        free, chosen = set(hosts), {}
        for x in sorted(hosts, key=lambda x: (drawn[x], rng.random())):
            wanted = [*range(drawn[x], 3), *range(drawn[x] - 1, -1, -1)]
            found = next((near for distance in wanted if (near := [
                y for y in sorted(free) if y != x and away(x, y) == distance])), None)
            if found is None:
                break
            chosen[x] = rng.choice(found)
            free.discard(chosen[x])
        else:
            return sorted(chosen.items())
    raise BadInput(f"pattern staggered needs at least 2 hosts, not {len(racks)}.")


def flows(name: str, pairs: Pairs, sizes_bytes: Sequence[int], connections: int = 1,
          starts_s: Sequence[float] | None = None, classes: Sequence[str] = ("",),
          paces: Sequence[Pace | None] = (None,)) -> tuple[Schedule, tuple[int, ...]]:
    """(schedule, placement): flow i sends sizes_bytes[i] from starts_s[i] on (default 0).

    Each flow is spread over `connections` connections of its own. There are as many ranks as hosts
    in use, in host order; placement[r] is the host of rank r. Flow i belongs to the traffic class
    classes[i] and keeps to paces[i] (None: all at once); both are taken in turn where there are fewer.
    """
    placement = tuple(sorted({host for pair in pairs for host in pair}))
    rank = {host: r for r, host in enumerate(placement)}
    program = Program(len(placement))
    used: dict[tuple[int, int], int] = {}
    for i, (source, destination) in enumerate(pairs):
        a, b = rank[source], rank[destination]
        start_s = starts_s[i] if starts_s else 0.0
        deps = (program.compute(a, start_s, (), PACE, 0),) if start_s else ()
        program.traffic_class, pace = classes[i % len(classes)], paces[i % len(paces)]
        for low, high in split(0, sizes_bytes[i], connections):
            if low < high:
                channel = used.get((a, b), 0)
                used[a, b] = channel + 1
                if pace is None:
                    program.message(a, b, high - low, deps=deps, channel=channel, phase=name)
                else:
                    _paced(program, a, b, high - low, pace, start_s, channel, name)
    return program.schedule(name), placement
