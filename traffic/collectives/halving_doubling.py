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
    """Add a reduce-scatter of bytes [low, high): members[v] ends with chunk v. A power of two of them.

    At distance d, partners v and v^d share a range of chunks; each gives away the half that it will
    not own, and adds the other's to the half that it keeps.
    """
    n = len(members)
    bounds = _bounds(low, high, n)
    distance, step = n // 2, first_step
    while distance:
        for v in range(n):
            partner = v ^ distance
            start = partner // distance * distance  # first chunk of the half that the partner keeps
            program.add(members[v], members[partner], bounds[start], bounds[start + distance],
                        slices=slices, channels=channels, phase=phase, step=step)
        distance, step = distance // 2, step + 1


def write_doubling(program: Program, members: Sequence[int], low: int, high: int, slices: int = 1,
                   channels: int = 1, *, phase: str = "all-gather", first_step: int = 0) -> None:
    """Add an all-gather of bytes [low, high): members[v] brings chunk v. A power of two of them."""
    n = len(members)
    bounds = _bounds(low, high, n)
    distance, step = 1, first_step
    while distance < n:
        for v in range(n):
            start = v // distance * distance  # first chunk of what v has so far
            program.copy(members[v], members[v ^ distance], bounds[start], bounds[start + distance],
                         slices=slices, channels=channels, phase=phase, step=step)
        distance, step = distance * 2, step + 1


def _bounds(low: int, high: int, parts: int) -> list[int]:
    """The borders of `parts` chunks: chunk i is [bounds[i], bounds[i + 1])."""
    return [start for start, _ in split(low, high, parts)] + [high]
