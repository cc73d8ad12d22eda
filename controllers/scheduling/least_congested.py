"""Least-congested re-placement: one elephant after another onto the path whose fullest link is emptiest.

Greedy, with hysteresis: a flow that has a path leaves it only for one on which its fullest link would
be emptier by more than the hysteresis.
"""
from __future__ import annotations

import numpy

from controllers.scheduling.paths import Path
from controllers.scheduling.place import Pair, Situation, loads


def least_congested(situation: Situation) -> dict[Pair, Path]:
    """A path for every elephant; the largest demands choose first, among equals in the order given."""
    paths, demands = situation.paths, situation.demands
    placed = {pair: path for pair, path in situation.placed.items() if pair in demands}
    load = situation.background + loads(paths, demands, placed)
    for pair, demand in sorted(demands.items(), key=lambda item: -item[1]):
        old = placed.get(pair)
        if old is not None:
            load[list(old)] -= demand
        filled = [_fullest(paths.capacity, load, path, demand) for path in paths.of(*pair)]
        best = int(numpy.argmin(filled))
        path = paths.of(*pair)[best]
        if old is not None:
            gain = _fullest(paths.capacity, load, old, demand) - filled[best]
            path = path if gain > situation.hysteresis else old
        placed[pair] = path
        load[list(path)] += demand
    return placed


def _fullest(capacity: numpy.ndarray, load: numpy.ndarray, path: Path, demand: float) -> float:
    """The utilisation of the path's fullest link with `demand` on it; 0 for a path without links."""
    return max(((load[link] + demand) / capacity[link] for link in path), default=0.0)
