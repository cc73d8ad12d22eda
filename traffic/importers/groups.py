"""Tensor-, data-, expert- and pipeline-parallel groups of a training job, by Megatron-LM's rank order.

Tensor-parallel ranks are neighbours, expert-parallel groups run over the data-parallel ranks, pipeline
stages are outermost (Narayanan et al., SC 2021; megatron/core/parallel_state.py).
"""
from __future__ import annotations

from dataclasses import dataclass

from emulator.errors import BadInput

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
        if kind == "all":
            return tuple(range(self.ranks))
        if kind == "tp":
            return tuple(range(rank - tensor, rank - tensor + self.tp))
        if kind == "pp":
            return tuple(range(position, self.ranks, stage))
        if kind == "dp":
            members = range(self.dp)
        elif kind == "ep":
            members = range(data // self.ep * self.ep, data // self.ep * self.ep + self.ep)
        else:
            members = range(data % self.ep, self.dp, self.ep)
        return tuple(first + member * self.tp + tensor for member in members)


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
