"""Ring all-reduce, reduce-scatter and all-gather (Patarasuk and Yuan, JPDC 2009; NCCL's ring).

Rank i sends only to rank i+1. The buffer is cut into one chunk a rank; each chunk is cut further
into channels (connections that work side by side) and slices (a slice is passed on as soon as it
has arrived, while the rest of the chunk is still on the wire).
"""
from __future__ import annotations

from collections.abc import Sequence

from traffic.collectives.arguments import check_arguments
from traffic.program import Program, split
from traffic.schedule import Schedule

Range = tuple[int, int]
"""[low, high) in the buffer, bytes."""


def all_reduce(ranks: int, size_bytes: int, slices: int = 1, channels: int = 1) -> Schedule:
    """Every rank ends with the sum; each sends 2(n-1)/n of `size_bytes` in 2(n-1) steps.

    Where n does not divide `size_bytes` the chunks differ by one byte; all ranks together send
    exactly 2(n-1) times `size_bytes`.
    """
    check_arguments("ring all-reduce", ranks, size_bytes, slices, channels)
    program = Program(ranks)
    write_all_reduce(program, range(ranks), split(0, size_bytes, ranks), slices, channels)
    return program.schedule("ring all-reduce", size_bytes)


def bidirectional_all_reduce(ranks: int, size_bytes: int, slices: int = 1, channels: int = 1) -> Schedule:
    """Two rings at once: the first half of the buffer goes up the ranks, the second half down.

    Each rank sends as much as in one ring, half of it to either neighbour.
    """
    check_arguments("bidirectional ring all-reduce", ranks, size_bytes, slices, channels)
    program = Program(ranks)
    middle = size_bytes // 2
    write_all_reduce(program, range(ranks), split(0, middle, ranks), slices, channels)
    write_all_reduce(program, range(ranks)[::-1], split(middle, size_bytes, ranks), slices, channels)
    return program.schedule("bidirectional ring all-reduce", size_bytes)


def reduce_scatter(ranks: int, size_bytes: int, slices: int = 1, channels: int = 1) -> Schedule:
    """Rank i ends with the sum of chunk i of the `size_bytes` that each rank holds; n-1 steps."""
    check_arguments("ring reduce-scatter", ranks, size_bytes, slices, channels)
    program = Program(ranks)
    write_reduce_scatter(program, range(ranks), split(0, size_bytes, ranks), slices, channels)
    return program.schedule("ring reduce-scatter", size_bytes)


def all_gather(ranks: int, size_bytes: int, slices: int = 1, channels: int = 1) -> Schedule:
    """Every rank ends with chunk i of rank i, for all i; `size_bytes` is the total; n-1 steps."""
    check_arguments("ring all-gather", ranks, size_bytes, slices, channels)
    program = Program(ranks)
    write_all_gather(program, range(ranks), split(0, size_bytes, ranks), slices, channels)
    return program.schedule("ring all-gather", size_bytes)


def write_all_reduce(program: Program, group: Sequence[int], chunks: Sequence[Range], slices: int = 1,
                     channels: int = 1, *, phase: str = "all-reduce", first_step: int = 0) -> None:
    """Add a ring all-reduce among `group` over `chunks`, one a member: reduce-scatter, all-gather."""
    write_reduce_scatter(program, group, chunks, slices, channels, phase=phase, first_step=first_step)
    write_all_gather(program, group, chunks, slices, channels, phase=phase,
                     first_step=first_step + len(group) - 1)


def write_reduce_scatter(program: Program, group: Sequence[int], chunks: Sequence[Range], slices: int = 1,
                         channels: int = 1, *, phase: str = "reduce-scatter", first_step: int = 0) -> None:
    """Add a ring reduce-scatter: group[i] ends with the sum of chunks[i] over the group."""
    n = len(group)
    for step in range(n - 1):
        for i, source in enumerate(group):
            # chunk c starts its way at rank c+1 and so ends, complete, at rank c
            program.add(source, group[(i + 1) % n], *chunks[(i - step - 1) % n], slices=slices,
                        channels=channels, phase=phase, step=first_step + step)


def write_all_gather(program: Program, group: Sequence[int], chunks: Sequence[Range], slices: int = 1,
                     channels: int = 1, *, phase: str = "all-gather", first_step: int = 0) -> None:
    """Add a ring all-gather: every member ends with chunks[i] of group[i], for all i."""
    n = len(group)
    for step in range(n - 1):
        for i, source in enumerate(group):
            program.copy(source, group[(i + 1) % n], *chunks[(i - step) % n], slices=slices,
                         channels=channels, phase=phase, step=first_step + step)
