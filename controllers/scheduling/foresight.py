"""Where global scheduling would put pairs of hosts that all send at once: for plans, without a fabric."""
from __future__ import annotations

import random
from collections.abc import Sequence

import numpy

from controllers.scheduling.demand import estimate
from controllers.scheduling.options import SCHEDULERS, Scheduling
from controllers.scheduling.paths import Path, PathLists
from controllers.scheduling.place import Pair, Situation


def foreseen(paths: PathLists, scheduling: Scheduling, pairs: Sequence[Pair], seed: int) -> dict[Pair, Path]:
    """The placement after one look at endless flows of `pairs`, discovered in an order drawn by `seed`.

    Pairs of one rack, and those that the scheduler leaves to their hash, are not in it.
    """
    order = [pair for pair in dict.fromkeys(pairs) if paths.of(*pair) and paths.of(*pair)[0]]
    random.Random(f"discovery {seed}").shuffle(order)
    demands = dict(zip(order, estimate(order), strict=True))
    elephants = {pair: demand for pair, demand in demands.items() if demand > scheduling.threshold}
    return SCHEDULERS[scheduling.scheduler](Situation(
        paths, elephants, {}, numpy.zeros(len(paths.capacity)), scheduling.hysteresis, seed, 1))
