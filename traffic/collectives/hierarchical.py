"""Hierarchical all-reduce: within racks, between the racks of a pod, between pods.

Each level first reduce-scatters, so that the next one carries only the share of one rank; the
outermost all-reduces; then all-gathers lead back (Jia et al., arXiv:1807.11205, and BlueConnect,
Cho et al., MLSys 2019). Rings at every level. Groups need not be equal in size: a rank of a small
rack stands for several ranks of the largest.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Union

from emulator.errors import BadInput
from traffic.collectives.arguments import check_arguments
from traffic.collectives.ring import Range, write_all_gather, write_all_reduce, write_reduce_scatter
from traffic.program import Program, split
from traffic.schedule import Schedule

Tree = Union[int, Sequence["Tree"]]
"""A rank, or a group of such: [[0, 1], [2, 3]] are two racks of two. All ranks are equally deep."""


class Ring(NamedTuple):
    """One ring: members[i] owns chunks[i]. Level 0 is the outermost."""

    level: int
    members: list[int]
    chunks: list[Range]


def all_reduce(tree: Tree, size_bytes: int, slices: int = 1, channels: int = 1) -> Schedule:
    """Every rank of `tree` ends with the sum. Its ranks are 0 to n-1, each once, in any order."""
    ranks, widths = _shape(tree)
    check_arguments("hierarchical all-reduce", len(ranks), size_bytes, slices, channels)
    if sorted(ranks) != list(range(len(ranks))):
        raise BadInput(f"hierarchical all-reduce: the groups hold ranks {sorted(ranks)}, not each of 0 to "
                       f"{len(ranks) - 1} once.")
    program = Program(len(ranks))
    write_hierarchical(program, tree, (0, size_bytes), slices, channels)
    return program.schedule("hierarchical all-reduce", size_bytes)


def write_hierarchical(program: Program, tree: Tree, whole: Range, slices: int = 1, channels: int = 1
                       ) -> None:
    """Add an all-reduce of the bytes `whole` over the ranks of `tree`, any ranks of the program."""
    _, widths = _shape(tree)
    rings: list[Ring] = []
    _share_out(tree, 0, widths, whole, rings)
    step = 0
    for level in reversed(range(1, len(widths))):
        for ring in rings:
            if ring.level == level:
                write_reduce_scatter(program, ring.members, ring.chunks, slices, channels, first_step=step)
        step += widths[level] - 1
    for ring in rings:
        if ring.level == 0:
            write_all_reduce(program, ring.members, ring.chunks, slices, channels, first_step=step)
    step += 2 * (widths[0] - 1)
    for level in range(1, len(widths)):
        for ring in rings:
            if ring.level == level:
                write_all_gather(program, ring.members, ring.chunks, slices, channels, first_step=step)
        step += widths[level] - 1


def _shape(tree: Tree) -> tuple[list[int], list[int]]:
    """(the ranks, the largest number of members of a group at each level, outermost first)."""
    ranks: list[int] = []
    widths: list[int] = []
    groups = [tree]
    while groups:
        if not all(isinstance(group, Sequence) and group for group in groups):
            raise BadInput("hierarchical all-reduce: the ranks are not all equally deep in the groups, or a "
                           "group is empty.")
        widths.append(max(len(group) for group in groups))
        members = [member for group in groups for member in group]
        ranks = [member for member in members if isinstance(member, int)]
        groups = [] if len(ranks) == len(members) else members
    return ranks, widths


def _share_out(group: Sequence[Tree], level: int, widths: list[int], whole: Range,
               rings: list[Ring]) -> list[tuple[Range, int]]:
    """Add the rings inside `group` to `rings`; (share, the rank that holds it after reduce-scatter).

    Groups of one level cut `whole` alike, by the largest of them, so that the shares of siblings
    match; in a smaller group a member holds several.
    """
    if level == len(widths) - 1:
        columns = [(whole, list(group))]
    else:
        inner = [_share_out(member, level + 1, widths, whole, rings) for member in group]
        columns = [(share, [shares[k][1] for shares in inner]) for k, (share, _) in enumerate(inner[0])]
    held = []
    for share, members in columns:
        parts = split(*share, widths[level])
        owner = [part * len(members) // len(parts) for part in range(len(parts))]
        chunks = []
        for i in range(len(members)):
            own = [part for part, place in zip(parts, owner) if place == i]
            chunks.append((own[0][0], own[-1][1]))
        rings.append(Ring(level, members, chunks))
        held += [(part, members[place]) for part, place in zip(parts, owner)]
    return held
