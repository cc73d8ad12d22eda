"""Tensor-, data-, expert- and pipeline-parallel groups of a training job, by Megatron-LM's rank order.

Tensor-parallel ranks are neighbours, expert-parallel groups run over the data-parallel ranks, pipeline
stages are outermost (Narayanan et al., SC 2021; megatron/core/parallel_state.py).
"""
from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from emulator.errors import BadInput
from traffic.trace import MOST_RANKS

KINDS = ("tp", "dp", "ep", "dp_ep", "pp", "all")
TRAFFIC_CLASS = {"tp": "tensor", "dp": "gradients", "ep": "expert", "dp_ep": "gradients", "pp": "pipeline",
                 "all": ""}


@dataclass(frozen=True)
class Parallel:
    """Sizes of the groups; ranks = tp * dp * pp, ep divides dp."""

    ranks: int
    tp: int = 1
    pp: int = 1
    ep: int = 1

    @property
    def dp(self) -> int:
        return self.ranks // (self.tp * self.pp)

    def group(self, kind: str, rank: int) -> tuple[int, ...]:
        """The group of this kind that `rank` belongs to, in ascending order.

        dp_ep: the ranks that hold copies of the same experts.
        """
        stage = self.tp * self.dp
        first, position = rank // stage * stage, rank % stage
        tensor, data = position % self.tp, position // self.tp
        own = first + tensor  # the first of the ranks that differ from this one in data only
        if kind == "all":
            return _every(0, self.ranks, 1)
        if kind == "tp":
            return _every(rank - tensor, rank - tensor + self.tp, 1)
        if kind == "pp":
            return _every(position, self.ranks, stage)
        if kind == "dp":
            return _every(own, first + stage, self.tp)
        if kind == "ep":
            expert = own + data // self.ep * self.ep * self.tp
            return _every(expert, expert + self.ep * self.tp, self.tp)
        return _every(own + data % self.ep * self.tp, first + stage, self.ep * self.tp)


@lru_cache(maxsize=MOST_RANKS)
def _every(start: int, stop: int, step: int) -> tuple[int, ...]:
    """range() as a tuple, one and the same for all members of a group: 4096 ranks have 4096 each."""
    return tuple(range(start, stop, step))


def parallel(what: str, ranks: int, tp: int, pp: int, ep: int) -> Parallel:
    """A checked Parallel; `what` begins the sentence."""
    for name, value in (("tensor", tp), ("pipeline", pp), ("expert", ep)):
        if value < 1:
            raise BadInput(f"{what}: {name}-parallel groups of {value} ranks cannot be.")
    if ranks % (tp * pp):
        raise BadInput(f"{what}: {ranks} ranks do not divide into tensor-parallel groups of {tp} and {pp} "
                       "pipeline "
                       f"stages; give ranks= as a multiple of {tp * pp}.")
    made = Parallel(ranks, tp, pp, ep)
    if made.dp % ep:
        raise BadInput(f"{what}: expert-parallel groups of {ep} do not divide the {made.dp} data-parallel "
                       "ranks.")
    return made
