"""Recursive halving and doubling (Thakur, Rabenseifner and Gropp, IJHPCA 2005, as in MPICH).

2 log2(n) steps instead of the ring's 2(n-1). Where n is no power of two, the first of the ranks
fold in pairs: one of each pair hands its data to the other, sits out, and gets the result at the end.
"""
from __future__ import annotations

from collections.abc import Sequence

from traffic.collectives.arguments import check_arguments
from traffic.program import Program, split
from traffic.schedule import Schedule


def all_reduce(ranks: int, size_bytes: int, slices: int = 1, channels: int = 1) -> Schedule:
    """Every rank ends with the sum; for a power of two each sends 2(n-1)/n of `size_bytes`."""
    check_arguments("halving-doubling all-reduce", ranks, size_bytes, slices, channels)
    program = Program(ranks)
    core = 1 << (ranks.bit_length() - 1)
    folded = ranks - core
    # members[v] carries the v-th place of the power-of-two core; odd ranks below 2*folded sit out
    members = [2 * v if v < folded else v + folded for v in range(core)]
    phase, step = "all-reduce", 1 if folded else 0
    for v in range(folded):
        program.add(2 * v + 1, 2 * v, 0, size_bytes, slices=slices, channels=channels, phase=phase)
    write_halving(program, members, 0, size_bytes, slices, channels, phase=phase, first_step=step)
    step += core.bit_length() - 1
    write_doubling(program, members, 0, size_bytes, slices, channels, phase=phase, first_step=step)
    step += core.bit_length() - 1
    for v in range(folded):
        program.copy(2 * v, 2 * v + 1, 0, size_bytes, slices=slices, channels=channels, phase=phase,
                     step=step)
    return program.schedule("halving-doubling all-reduce", size_bytes)


def write_halving(program: Program, members: Sequence[int], low: int, high: int, slices: int = 1,
                  channels: int = 1, *, phase: str = "reduce-scatter", first_step: int = 0) -> None:
    """Add a reduce-scatter of bytes [low, high) among a power of two of `members`.

    At distance d, partners v and v^d hold the same range of chunks; each gives away the half that
    the other keeps. members[v] ends with the chunk whose number is v with its bits reversed.
    """
    n = len(members)
    bounds = _bounds(low, high, n)
    start = [0] * n  # first chunk of the range that v still works on
    width = n
    for step, distance in enumerate(_distances(n), first_step):
        width //= 2
        start = [chunk + (width if v & distance else 0) for v, chunk in enumerate(start)]
        for v in range(n):
            given = start[v ^ distance]
            program.add(members[v], members[v ^ distance], bounds[given], bounds[given + width],
                        slices=slices, channels=channels, phase=phase, step=step)


def write_doubling(program: Program, members: Sequence[int], low: int, high: int, slices: int = 1,
                   channels: int = 1, *, phase: str = "all-gather", first_step: int = 0) -> None:
    """Add an all-gather of bytes [low, high): members[v] brings the chunk that `write_halving` left it."""
    n = len(members)
    bounds = _bounds(low, high, n)
    start = [sum(n // 2 // distance for distance in _distances(n) if v & distance) for v in range(n)]
    width = 1
    for step, distance in enumerate(reversed(_distances(n)), first_step):
        for v in range(n):
            program.copy(members[v], members[v ^ distance], bounds[start[v]], bounds[start[v] + width],
                         slices=slices, channels=channels, phase=phase, step=step)
        start = [min(start[v], start[v ^ distance]) for v in range(n)]
        width *= 2


def _distances(n: int) -> list[int]:
    """Partners' distances, the nearest first: so the largest messages go the shortest way."""
    return [1 << bit for bit in range(n.bit_length() - 1)]


def _bounds(low: int, high: int, parts: int) -> list[int]:
    """The borders of `parts` chunks: chunk i is [bounds[i], bounds[i + 1])."""
    return [start for start, _ in split(low, high, parts)] + [high]
