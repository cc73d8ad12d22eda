"""The bookkeeping of a running schedule: which operation may start when another has finished."""
from __future__ import annotations

from traffic.schedule import Op, Schedule


class Dag:
    """A schedule flattened: operations numbered across all ranks, with the edges turned round."""

    def __init__(self, schedule: Schedule) -> None:
        self.ops: list[Op] = [op for ops in schedule.ranks for op in ops]
        self.rank: list[int] = [r for r, ops in enumerate(schedule.ranks) for _ in ops]
        self.base: list[int] = []
        total = 0
        for ops in schedule.ranks:
            self.base.append(total)
            total += len(ops)
        self.indegree: list[int] = [len(op.deps) + len(op.triggers) for op in self.ops]
        self.dependents: list[list[int]] = [[] for _ in self.ops]
        for number, op in enumerate(self.ops):
            base = self.base[self.rank[number]]
            for dep in op.deps:
                self.dependents[base + dep].append(number)
            for rank, index in op.triggers:
                self.dependents[self.base[rank] + index].append(number)


class DagState:
    """One iteration over a Dag: `ready` at the start, then `finish` each operation once."""

    def __init__(self, dag: Dag) -> None:
        self._dag = dag
        self._waiting = list(dag.indegree)
        self.done = bytearray(len(dag.ops))
        self.left = len(dag.ops)

    def ready(self) -> list[int]:
        """Operations that wait for nothing."""
        return [number for number, count in enumerate(self._waiting) if count == 0]

    def waits(self, number: int) -> bool:
        """True while a dependency of this operation has not finished."""
        return self._waiting[number] > 0

    def finish(self, number: int) -> list[int]:
        """Mark an operation as finished; returns those that may start now."""
        self.done[number] = 1
        self.left -= 1
        waiting, free = self._waiting, []
        for dependent in self._dag.dependents[number]:
            waiting[dependent] -= 1
            if waiting[dependent] == 0:
                free.append(dependent)
        return free
