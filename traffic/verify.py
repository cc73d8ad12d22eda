"""Real arithmetic on the bytes that travel: each block checksummed, each all-reduce compared with numpy's sum."""
from __future__ import annotations

import zlib

import numpy

from traffic.dag import Dag
from traffic.schedule import Workload

WORD_BYTES = 4


class Verification:
    """The data buffers of all ranks during one iteration.

    Values are small whole numbers in float32, so sums are exact whatever their order, and any
    difference is an error of the transport or of the schedule.
    """

    def __init__(self, workload: Workload, dag: Dag, seed: int) -> None:
        self._workload, self._dag, self._seed = workload, dag, seed
        self.checksum_errors = 0
        self.wrong_values = 0

    def begin(self, iteration: int) -> None:
        """Fresh data for every rank, the same for the same seed and iteration."""
        size = self._workload.schedule.buffer_bytes // WORD_BYTES
        rng = numpy.random.default_rng((self._seed, iteration))
        self._initial = [rng.integers(0, 100, size).astype(numpy.float32) for _ in self._workload.schedule.ranks]
        self._buffers = [values.copy() for values in self._initial]
        self._blocks: dict[int, numpy.ndarray] = {}

    def outgoing(self, send: int) -> tuple[memoryview, int]:
        """A copy of the bytes that operation `send` sends, and their checksum."""
        op, rank = self._dag.ops[send], self._dag.rank[send]
        data = memoryview(self._buffers[rank]).cast("B")[op.offset:op.offset + op.size_bytes].tobytes()
        return memoryview(data), zlib.crc32(data)

    def land(self, recv: int, block: memoryview, checksum: int) -> None:
        """Store what operation `recv` received: in the buffer, or aside for the reduce that follows."""
        op, rank = self._dag.ops[recv], self._dag.rank[recv]
        if zlib.crc32(block) != checksum:
            self.checksum_errors += 1
        values = numpy.frombuffer(block, numpy.float32)
        if op.offset < 0:
            self._blocks[recv] = values
        else:
            start = op.offset // WORD_BYTES
            self._buffers[rank][start:start + len(values)] = values

    def reduce(self, number: int) -> None:
        """Add the block that the reduce's first dependency received."""
        op, rank = self._dag.ops[number], self._dag.rank[number]
        values = self._blocks.pop(self._dag.base[rank] + op.deps[0])
        start = op.offset // WORD_BYTES
        self._buffers[rank][start:start + len(values)] += values

    def end(self) -> None:
        """Compare every rank's buffer with the sum over all ranks."""
        total = numpy.sum(self._initial, axis=0)
        self.wrong_values += sum(int(numpy.count_nonzero(values != total)) for values in self._buffers)
