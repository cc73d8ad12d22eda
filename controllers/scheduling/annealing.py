"""Simulated Annealing (Hedera, NSDI'10, 4.3): a core for each destination host, swapped within pods.

State: a label for each destination host; all flows to it take the path of that label (in a fat-tree: over
that core). Energy: what demand passes capacity by, summed over all links. Neighbour: the labels of two
hosts of a pod change places; where a pod has fewer hosts than there are labels one host takes another
label instead, now and then, since swaps alone would leave some labels out for ever. A worse state is taken
with probability exp(c (E - En) / T), T being the iterations that remain. The best state seen is kept, and
the next period starts from it.
"""
from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Mapping

import numpy

from controllers.scheduling.paths import Path
from controllers.scheduling.place import FITS, Pair, Situation, excess

ITERATIONS = 1000
SMALL_HOSTS, SMALL_C, LARGE_C = 16, 0.5, 1000.0  # the paper's c: 0.5 * T0 for 16 hosts, 1000 * T0 for more
RELABEL = 0.25


def annealing(situation: Situation) -> dict[Pair, Path]:
    """The placement of the best state found; what is placed now stays where the best state gains no more
    than `hysteresis` over it.
    """
    paths, demands = situation.paths, situation.demands
    if not demands:
        return {}
    if demands.keys() <= situation.placed.keys():
        kept = {pair: situation.placed[pair] for pair in demands}
        energy = excess(paths, demands, kept)
        if energy <= FITS:
            return kept
    else:
        kept, energy = {}, math.inf
    state = _Search(situation)
    best, least = state.run(random.Random(f"annealing {situation.seed} {situation.period}"))
    return kept if kept and energy - least <= situation.hysteresis else best


class _Search:
    """The state and its energy, kept up to date with each swap."""

    def __init__(self, situation: Situation):
        paths = self.paths = situation.paths
        self.flows: dict[str, list[tuple[Pair, float]]] = defaultdict(list)
        for pair, demand in situation.demands.items():
            self.flows[pair[1]].append((pair, demand))
        self.labels = max(len(paths.of(*pair)) for pair in situation.demands)
        self.pods = _pods(situation, self.flows)
        self.c = (SMALL_C if len(paths.graph.hosts) <= SMALL_HOSTS else LARGE_C) * ITERATIONS
        self.label = {}
        for number, hosts in enumerate(self.pods):
            for place, host in enumerate(hosts):  # one to one within a pod, as far as there are labels
                self.label[host] = (place + number) % self.labels
        self._adopt(situation.placed)
        self.capacity = paths.capacity
        self.load = numpy.zeros(len(self.capacity))
        for host in self.flows:
            self._carry(host, 1.0)
        self.energy = self._energy()

    def _adopt(self, placed: Mapping[Pair, Path]) -> None:
        """Start from the labels under which flows travel now."""
        for pair, path in placed.items():
            choices = self.paths.of(*pair)
            if pair[1] in self.flows and path in choices and len(choices) == self.labels:
                self.label[pair[1]] = choices.index(path)

    def path(self, pair: Pair) -> Path:
        choices = self.paths.of(*pair)
        return choices[self.label[pair[1]] * len(choices) // self.labels]

    def _carry(self, host: str, sign: float) -> None:
        for pair, demand in self.flows[host]:
            for link in self.path(pair):
                self.load[link] += sign * demand

    def _relabelled(self, changes: Mapping[str, int]) -> float:
        """Put new labels in force; the energy that follows."""
        for host in changes:
            self._carry(host, -1.0)
        self.label.update(changes)
        for host in changes:
            self._carry(host, 1.0)
        return self._energy()

    def _energy(self) -> float:
        over = self.load - self.capacity
        return float(over[over > FITS].sum())

    def run(self, rng: random.Random) -> tuple[dict[Pair, Path], float]:
        """(placement, energy) of the best state within ITERATIONS."""
        best, least = dict(self.label), self.energy
        for left in range(ITERATIONS, 0, -1):
            if least <= FITS:
                break
            changes = self._neighbour(rng)
            if not changes:
                break
            old = {host: self.label[host] for host in changes}
            energy = self._relabelled(changes)
            if energy < self.energy or rng.random() < math.exp(self.c * (self.energy - energy) / left):
                self.energy = energy
                if energy < least - FITS:
                    best, least = dict(self.label), energy
            else:
                self._relabelled(old)
        self.label = best
        return {pair: self.path(pair) for flows in self.flows.values() for pair, _ in flows}, least

    def _neighbour(self, rng: random.Random) -> dict[str, int]:
        """The labels that change: two swapped within a pod, or one that becomes another."""
        hosts = self.pods[int(rng.random() * len(self.pods))]
        scarce = len(hosts) < self.labels
        if len(hosts) < 2 or (scarce and rng.random() < RELABEL):
            host = hosts[int(rng.random() * len(hosts))]
            if self.labels < 2:
                return {}
            return {host: (self.label[host] + 1 + int(rng.random() * (self.labels - 1))) % self.labels}
        a, b = rng.sample(hosts, 2)
        return {a: self.label[b], b: self.label[a]}


def _pods(situation: Situation, wanted: Mapping[str, object]) -> list[list[str]]:
    """The destination hosts of each pod, or of each rack where a switch has no pod, in host order."""
    graph, pods = situation.paths.graph, defaultdict(list)
    for host in graph.hosts:
        if host.name in wanted:
            switch = graph.switch[host.rack]
            pods[switch.pod if switch.pod >= 0 else switch.name].append(host.name)
    return list(pods.values())
