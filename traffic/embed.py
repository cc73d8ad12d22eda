"""A collective's schedule as a part of a larger one: over any group of ranks, after what came before."""
from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from traffic.program import Program
from traffic.schedule import Kind, Op, Schedule


class Embedder:
    """Writes whole schedules into one Program, each with tags that no other has."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._tags: dict[tuple[int, int, int], int] = defaultdict(int)

    def embed(self, schedule: Schedule, group: Sequence[int], entries: Sequence[int], phase: str,
              traffic_class: str) -> list[int]:
        """Add `schedule`, its rank i being rank group[i]; returns an operation for each member that
        ends when the member is through.

        No member sends or reduces before its entries[i] has finished (a kernel that is launched);
        receives are posted from the start. Data stays unnamed (offset -1): several collectives share
        no buffer. Tags are even; the odd ones are left to other messages.
        """
        ends = []
        used: dict[tuple[int, int, int], int] = defaultdict(int)
        for member, ops in enumerate(schedule.ranks):
            rank, base = group[member], len(self._program.ops[group[member]])
            waited_for: set[int] = set()
            entered = False
            for op in ops:
                deps = tuple(base + dep for dep in op.deps)
                waited_for.update(op.deps)
                if op.kind is not Kind.RECV and all(ops[dep].kind is Kind.RECV for dep in op.deps):
                    deps, entered = (*deps, entries[member]), True
                peer, tag = -1, 0
                if op.peer >= 0:
                    peer = group[op.peer]
                    pair = (rank, peer) if op.kind is Kind.SEND else (peer, rank)
                    key = (*pair, op.channel)
                    tag = 2 * (self._tags[key] + op.tag)
                    used[key] = max(used[key], op.tag + 1)
                self._program.append(rank, Op(op.kind, deps, peer, op.size_bytes, tag, op.channel,
                                              op.duration_s, -1, phase, op.step, traffic_class))
            last = tuple(base + index for index in range(len(ops)) if index not in waited_for)
            # a member that only receives is through when it has, but not before it has come there itself
            last = last if entered else (*last, entries[member])
            ends.append(self._program.compute(rank, 0.0, last, phase, 0))
        for key, count in used.items():
            self._tags[key] += count
        return ends
