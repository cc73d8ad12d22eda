"""Recursive halving and doubling (Thakur, Rabenseifner and Gropp, IJHPCA 2005, as in MPICH).

2 log2(n) steps instead of the ring's 2(n-1). Where n is no power of two, the first of the ranks
fold in pairs: one of each pair hands its data to the other, sits out, and gets its result at the end.
"""
from __future__ import annotations

from collections.abc import Sequence

from traffic.collectives.arguments import check_arguments
from traffic.program import Program, split
from traffic.schedule import Schedule


def all_reduce(ranks: int, size_bytes: int, slices: int = 1, channels: int = 1) -> Schedule:
    """Every rank ends with the sum; for a power of two each sends 2(n-1)/n of `size_bytes`."""
    check_arguments("halving-doubling all-reduce", ranks, size_bytes, slices, channels)
    program, fold = Program(ranks), _Fold(ranks)
    cut = {"slices": slices, "channels": channels, "phase": "all-reduce"}
    bounds = _bounds(split(0, size_bytes, len(fold.members)))
    # The nearest first: the largest messages go the shortest way. The chunk that a rank then owns
    # is any one; here that does not matter.
    distances = fold.distances
    for kept, out in fold.pairs:
        program.add(out, kept, 0, size_bytes, step=0, **cut)
    half = fold.first_step + len(distances)
    write_halving(program, fold.members, bounds, distances, first_step=fold.first_step, **cut)
    write_doubling(program, fold.members, bounds, distances, first_step=half, **cut)
    for kept, out in fold.pairs:
        program.copy(kept, out, 0, size_bytes, step=half + len(distances), **cut)
    return program.schedule("halving-doubling all-reduce", size_bytes)


def reduce_scatter(ranks: int, size_bytes: int, slices: int = 1, channels: int = 1) -> Schedule:
    """Rank i ends with the sum of chunk i."""
    check_arguments("halving-doubling reduce-scatter", ranks, size_bytes, slices, channels)
    program, fold = Program(ranks), _Fold(ranks)
    cut = {"slices": slices, "channels": channels, "phase": "reduce-scatter"}
    chunks, distances = split(0, size_bytes, ranks), fold.distances[::-1]  # this order leaves v chunk v
    for kept, out in fold.pairs:
        program.add(out, kept, 0, size_bytes, step=0, **cut)
    write_halving(program, fold.members, fold.bounds(chunks), distances, first_step=fold.first_step, **cut)
    for kept, out in fold.pairs:
        program.copy(kept, out, *chunks[out], step=fold.first_step + len(distances), **cut)
    return program.schedule("halving-doubling reduce-scatter", size_bytes)


def all_gather(ranks: int, size_bytes: int, slices: int = 1, channels: int = 1) -> Schedule:
    """Every rank ends with chunk i of rank i, for all i; `size_bytes` is the total."""
    check_arguments("halving-doubling all-gather", ranks, size_bytes, slices, channels)
    program, fold = Program(ranks), _Fold(ranks)
    cut = {"slices": slices, "channels": channels, "phase": "all-gather"}
    chunks, distances = split(0, size_bytes, ranks), fold.distances[::-1]
    for kept, out in fold.pairs:
        program.copy(out, kept, *chunks[out], step=0, **cut)
    write_doubling(program, fold.members, fold.bounds(chunks), distances, first_step=fold.first_step, **cut)
    for kept, out in fold.pairs:
        for low, high in ((0, chunks[out][0]), (chunks[out][1], size_bytes)):  # all but its own
            program.copy(kept, out, low, high, step=fold.first_step + len(distances), **cut)
    return program.schedule("halving-doubling all-gather", size_bytes)


class _Fold:
    """The power-of-two core of `ranks`: pairs (2v, 2v+1) of the first ranks fold into 2v."""

    def __init__(self, ranks: int) -> None:
        core = 1 << (ranks.bit_length() - 1)
        folded = ranks - core
        self.pairs = [(2 * v, 2 * v + 1) for v in range(folded)]
        self.members = [2 * v if v < folded else v + folded for v in range(core)]
        self.distances = [1 << bit for bit in range(core.bit_length() - 1)]
        self.first_step = 1 if folded else 0

    def bounds(self, chunks: list[tuple[int, int]]) -> list[int]:
        """Borders of the members' shares where each keeps the chunk of the rank folded into it too."""
        return [chunks[rank][0] for rank in self.members] + [chunks[-1][1]]


def write_halving(program: Program, members: Sequence[int], bounds: Sequence[int], distances: Sequence[int],
                  *, slices: int, channels: int, phase: str, first_step: int) -> None:
    """Add a reduce-scatter among a power of two of `members`.

    Share i is bytes [bounds[i], bounds[i + 1]). At distance d, partners v and v^d hold the same range
    of shares; each gives away the half that the other keeps. members[v] ends with the share that
    `_owned` says.
    """
    n = len(members)
    start = [0] * n  # first share of the range that v still works on
    width = n
    for step, distance in enumerate(distances, first_step):
        width //= 2
        start = [share + (width if v & distance else 0) for v, share in enumerate(start)]
        for v in range(n):
            given = start[v ^ distance]
            program.add(members[v], members[v ^ distance], bounds[given], bounds[given + width],
                        slices=slices, channels=channels, phase=phase, step=step)


def write_doubling(program: Program, members: Sequence[int], bounds: Sequence[int], distances: Sequence[int],
                   *, slices: int, channels: int, phase: str, first_step: int) -> None:
    """Add an all-gather: the way of `write_halving` with the same `distances` back."""
    n = len(members)
    start = [_owned(v, n, distances) for v in range(n)]
    width = 1
    for step, distance in enumerate(reversed(distances), first_step):
        for v in range(n):
            program.copy(members[v], members[v ^ distance], bounds[start[v]], bounds[start[v] + width],
                         slices=slices, channels=channels, phase=phase, step=step)
        start = [min(start[v], start[v ^ distance]) for v in range(n)]
        width *= 2


def _owned(v: int, n: int, distances: Sequence[int]) -> int:
    """The share that halving leaves member v: v itself if the farthest came first, else v bit-reversed."""
    share, width = 0, n
    for distance in distances:
        width //= 2
        share += width if v & distance else 0
    return share


def _bounds(chunks: list[tuple[int, int]]) -> list[int]:
    return [low for low, _ in chunks] + [chunks[-1][1]]
