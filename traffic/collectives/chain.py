"""Pipelined chain broadcast and reduce: NCCL's ring with one break in it.

Slices follow one another down the chain, so that for many slices the time is that of sending the
buffer once, however many ranks there are.
"""
from __future__ import annotations

from traffic.collectives.arguments import check_arguments
from traffic.program import Program
from traffic.schedule import Schedule


def broadcast(ranks: int, size_bytes: int, slices: int = 1, channels: int = 1) -> Schedule:
    """Every rank ends with rank 0's buffer; rank i passes it on to rank i+1."""
    check_arguments("chain broadcast", ranks, size_bytes, slices, channels)
    program = Program(ranks)
    for rank in range(ranks - 1):
        program.copy(rank, rank + 1, 0, size_bytes, slices=slices, channels=channels, phase="broadcast",
                     step=rank)
    return program.schedule("chain broadcast", size_bytes)


def reduce(ranks: int, size_bytes: int, slices: int = 1, channels: int = 1) -> Schedule:
    """Rank 0 ends with the sum of all buffers; rank i adds its own and passes it on to rank i-1."""
    check_arguments("chain reduce", ranks, size_bytes, slices, channels)
    program = Program(ranks)
    for step, rank in enumerate(range(ranks - 1, 0, -1)):
        program.add(rank, rank - 1, 0, size_bytes, slices=slices, channels=channels, phase="reduce",
                    step=step)
    return program.schedule("chain reduce", size_bytes)
