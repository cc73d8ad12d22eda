"""Which rank holds which part of the model: the groups of tensor, data, expert and pipeline parallelism.

Megatron-LM numbers ranks tensor-parallel first, then data-parallel, pipeline outermost (SC'21,
megatron/core/parallel_state.py), so that the heaviest traffic stays between neighbours; another
`order` lists the dimensions from the innermost. Expert parallelism divides data parallelism: ep
consecutive replicas hold the experts between them (as Megatron and DeepSpeed-MoE do).
"""
from __future__ import annotations

import itertools
from dataclasses import dataclass

ORDERS = tuple("-".join(order) for order in itertools.permutations(("tp", "dp", "pp")))


@dataclass(frozen=True)
class Layout:
    """Sizes of the dimensions among the ranks of the fabric. `tp` is 1 where a host carries a whole
    tensor-parallel group."""

    tp: int
    dp: int
    pp: int
    ep: int = 1
    order: str = "tp-dp-pp"

    @property
    def ranks(self) -> int:
        return self.tp * self.dp * self.pp

    def rank(self, t: int, d: int, p: int) -> int:
        """The rank at tensor position t, replica d, pipeline stage p."""
        number, stride = 0, 1
        for name in self.order.split("-"):
            size, place = {"tp": (self.tp, t), "dp": (self.dp, d), "pp": (self.pp, p)}[name]
            number += place * stride
            stride *= size
        return number

    def stage(self, p: int) -> list[int]:
        """All ranks of pipeline stage p."""
        return [rank for group in self.data_groups(p) for rank in group]

    def tensor_groups(self, p: int) -> list[list[int]]:
        """Those who share a layer's matrices, one group a replica."""
        return [[self.rank(t, d, p) for t in range(self.tp)] for d in range(self.dp)]

    def data_groups(self, p: int) -> list[list[int]]:
        """Those who hold the same parameters outside the experts."""
        return [[self.rank(t, d, p) for d in range(self.dp)] for t in range(self.tp)]

    def expert_groups(self, p: int) -> list[list[int]]:
        """Those who hold all experts between them and exchange tokens."""
        return [group[first:first + self.ep] for group in self.data_groups(p)
                for first in range(0, self.dp, self.ep)]

    def expert_data_groups(self, p: int) -> list[list[int]]:
        """Those who hold the same experts."""
        return [group[e::self.ep] for group in self.data_groups(p) for e in range(self.ep)]
