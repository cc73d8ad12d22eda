"""Global First Fit (Hedera, NSDI'10, 4.2): the first path that has room for a flow's whole demand.

Room once given is kept until the flow ends; a flow that fits nowhere stays with its hash.
"""
from __future__ import annotations

import numpy

from controllers.scheduling.paths import Path
from controllers.scheduling.place import FITS, Pair, Situation, loads


def first_fit(situation: Situation) -> dict[Pair, Path]:
    """The placement of all elephants that fit, those already placed first.

    A demand that has grown since may no longer fit where it was; then the flow is placed anew.
    """
    paths, demands = situation.paths, situation.demands
    placed: dict[Pair, Path] = {}
    load = loads(paths, demands, placed)
    waiting = []
    for pair, demand in demands.items():
        old = situation.placed.get(pair)
        if old is not None and _fits(situation, load, old, demand - situation.hysteresis):
            placed[pair] = old
            load[list(old)] += demand
        else:
            waiting.append(pair)
    for pair in waiting:
        for path in paths.of(*pair):
            if _fits(situation, load, path, demands[pair]):
                placed[pair] = path
                load[list(path)] += demands[pair]
                break
    return placed


def _fits(situation: Situation, load: numpy.ndarray, path: Path, demand: float) -> bool:
    capacity = situation.paths.capacity
    return all(load[link] + demand <= capacity[link] + FITS for link in path)
