"""Which path each elephant takes: what a scheduler is given and gives back, and the loads that follow."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy

from controllers.scheduling.paths import Path, PathLists

Pair = tuple[str, str]
"""(source host, destination host)"""
Demands = Mapping[Pair, float]
"""What each pair would take, as a fraction of a host link."""
Placement = Mapping[Pair, Path]
"""The path of each pair that has been given one; the others are hashed."""

FITS = 1e-6  # by how much sums of demands may pass a capacity in floating point


@dataclass(frozen=True)
class Situation:
    """What a scheduler sees in one period: all elephants with their demands, where they are now, and what
    else the links carry (fractions of a host link, a value a directed link).

    `hysteresis` is the gain, as a fraction of a host link, below which nothing is moved.
    """

    paths: PathLists
    demands: Demands
    placed: Placement
    background: numpy.ndarray
    hysteresis: float
    seed: int
    period: int


Scheduler = Callable[[Situation], dict[Pair, Path]]


def loads(paths: PathLists, demands: Demands, placed: Placement) -> numpy.ndarray:
    """What the placed pairs put on each directed link, in units of a host link."""
    load = numpy.zeros(len(paths.capacity))
    for pair, path in placed.items():
        for link in path:
            load[link] += demands.get(pair, 0.0)
    return load


def excess(paths: PathLists, demands: Demands, placed: Placement) -> float:
    """By how much, over all links, demand passes capacity: the energy that annealing lowers."""
    over = loads(paths, demands, placed) - paths.capacity
    return float(over[over > FITS].sum())
