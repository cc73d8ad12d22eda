"""Real arithmetic on the bytes that travel: each block checksummed, the result compared with numpy's."""
from __future__ import annotations

import zlib

import numpy

from traffic.dag import Dag
from traffic.interpret import interpret
from traffic.schedule import Workload


class Verification:
    """The data buffers of all ranks during one iteration, uint8 with addition modulo 256.

    Afterwards an all-reduce is compared with numpy's sum over the ranks, anything else with what
    the schedule gives when it is executed in memory.
    """

    def __init__(self, workload: Workload, graph: Dag, seed: int) -> None:
        self._workload, self._graph, self._seed = workload, graph, seed
        self.checksum_errors = 0
        self.wrong_values = 0

    def begin(self, iteration: int) -> None:
        """Fresh data for every rank, the same for the same seed and iteration."""
        schedule = self._workload.schedule
        rng = numpy.random.default_rng((self._seed, iteration))
        shape = (len(schedule.ranks), schedule.buffer_bytes)
        self._initial = rng.integers(0, 256, shape, dtype=numpy.uint8)
        self._buffers = self._initial.copy()
        self._blocks: dict[int, numpy.ndarray] = {}

    def outgoing(self, send: int) -> tuple[memoryview, int]:
        """The bytes that operation `send` sends, as they are now, and their checksum."""
        op, rank = self._graph.ops[send], self._graph.rank[send]
        if op.offset < 0:  # nobody's data: a pattern of its own, so that a mix-up shows
            data = numpy.random.default_rng((self._seed, send)).bytes(op.size_bytes)
        else:
            data = self._buffers[rank, op.offset:op.offset + op.size_bytes].tobytes()
        return memoryview(data), zlib.crc32(data)

    def land(self, recv: int, block: memoryview, checksum: int) -> None:
        """Store what operation `recv` received: in the buffer, or aside for the reduce that follows."""
        op, rank = self._graph.ops[recv], self._graph.rank[recv]
        if zlib.crc32(block) != checksum:
            self.checksum_errors += 1
        values = numpy.frombuffer(block, numpy.uint8)
        if op.offset < 0:
            self._blocks[recv] = values
        else:
            self._buffers[rank, op.offset:op.offset + len(values)] = values

    def reduce(self, node: int) -> None:
        """Add the block that the reduce's first dependency received."""
        op, rank = self._graph.ops[node], self._graph.rank[node]
        if op.offset >= 0:
            values = self._blocks.pop(self._graph.first[rank] + op.deps[0])
            self._buffers[rank, op.offset:op.offset + len(values)] += values

    def end(self) -> None:
        """Count the values that are not what they should be."""
        collective = self._workload.collective
        if collective and collective.name == "all-reduce":
            right = self._initial.sum(axis=0, dtype=numpy.uint8)
        else:
            right = interpret(self._workload.schedule, self._initial)
        self.wrong_values += int(numpy.count_nonzero(self._buffers != right))
