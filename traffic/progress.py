"""How far a running schedule is: which operations may start when another one has finished."""
from __future__ import annotations

from traffic.dag import Dag
from traffic.schedule import Kind


class Progress:
    """One iteration over a Dag: `ready` at the start, then `finish` for each operation, once.

    A receive becomes ready when its rank has come to it (it is posted), whether or not its message
    is there: messages are the engine's business, so the edge from send to receive is left out.
    """

    def __init__(self, graph: Dag) -> None:
        self._graph = graph
        self._waits = graph.waits.copy()
        for receive in graph.match.values():
            self._waits[receive] -= 1
        self.done = bytearray(len(graph.ops))
        self.left = len(graph.ops)

    def ready(self) -> list[int]:
        """Operations that wait for nothing."""
        return [node for node, count in enumerate(self._waits) if count == 0]

    def waits(self, node: int) -> bool:
        """True while an operation that must come first has not finished."""
        return self._waits[node] > 0

    def finish(self, node: int) -> list[int]:
        """Mark an operation as finished; returns those that may start now."""
        self.done[node] = 1
        self.left -= 1
        match = self._graph.match.get(node) if self._graph.ops[node].kind is Kind.SEND else None
        waits, free = self._waits, []
        for follower in self._graph.followers[node]:
            if follower == match:
                match = None  # only the message's own edge; a trigger to the same receive counts
                continue
            waits[follower] -= 1
            if waits[follower] == 0:
                free.append(follower)
        return free
