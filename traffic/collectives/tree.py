"""Double binary tree all-reduce (Sanders, Speck and Träff, Parallel Computing 2009; NCCL 2.4's trees).

Each tree carries half of the buffer up to its root, where it is summed, and down again. Ranks that
are leaves in one tree are inner nodes in the other, so that all ranks send about as much.
"""
from __future__ import annotations

from traffic.collectives.arguments import check_arguments
from traffic.program import Program, split
from traffic.schedule import Schedule

Parents = list[int | None]
"""The parent of each rank; None for the root."""

AHEAD = 4
"""Slices under way at once on an edge, as NCCL has a number of slots for each: two children that sent
their half of the buffer at once would fill the queue before their parent, and all else would wait there."""


def all_reduce(ranks: int, size_bytes: int, slices: int = 1, channels: int = 1) -> Schedule:
    """Every rank ends with the sum. With many slices the time nears twice that of sending the buffer."""
    check_arguments("double-binary-tree all-reduce", ranks, size_bytes, slices, channels)
    program = Program(ranks)
    for parents, (low, high) in zip(double_tree(ranks), split(0, size_bytes, 2)):
        depth = [_depth(parents, rank) for rank in range(ranks)]
        height = max(depth)
        for rank in sorted(range(ranks), key=lambda r: -depth[r]):  # children before their parents
            if parents[rank] is not None:
                program.add(rank, parents[rank], low, high, slices=slices, channels=channels,
                            phase="all-reduce", step=height - depth[rank], ahead=AHEAD)
        for rank in sorted(range(ranks), key=lambda r: depth[r]):
            if parents[rank] is not None:
                program.copy(parents[rank], rank, low, high, slices=slices, channels=channels,
                             phase="all-reduce", step=height + depth[rank] - 1, ahead=AHEAD)
    return program.schedule("double-binary-tree all-reduce", size_bytes)


def double_tree(ranks: int) -> tuple[Parents, Parents]:
    """Two binary trees over all ranks; no rank has children in both, or one where their number is odd.

    The second is the first mirrored, or shifted by one where the number of ranks is odd, as in
    NCCL's src/graph/trees.cc.
    """
    first = [_parent(rank, ranks) for rank in range(ranks)]
    if ranks % 2:
        second = [_shifted(first[(rank - 1) % ranks], ranks) for rank in range(ranks)]
    else:
        second = [_mirrored(first[ranks - 1 - rank], ranks) for rank in range(ranks)]
    return first, second


def _parent(rank: int, ranks: int) -> int | None:
    """In-order numbering: odd ranks are leaves, a rank's lowest set bit is its height; 0 is the root."""
    if rank == 0:
        return None
    bit = rank & -rank
    up = (rank ^ bit) | (bit << 1)
    return up if up < ranks else rank ^ bit


def _shifted(parent: int | None, ranks: int) -> int | None:
    return None if parent is None else (parent + 1) % ranks


def _mirrored(parent: int | None, ranks: int) -> int | None:
    return None if parent is None else ranks - 1 - parent


def _depth(parents: Parents, rank: int) -> int:
    depth = 0
    while (parent := parents[rank]) is not None:
        rank, depth = parent, depth + 1
    return depth
