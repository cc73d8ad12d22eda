"""Gradients, optimizer and sharded parameters of a training iteration, added to a Program.

Each bucket has a place in the buffer of every rank, so that a run with --verify checks real sums. A
gate, an operation without duration, says when a rank's part of a place may travel: once what computed
it and what last changed it are done.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from traffic.collectives.hierarchical import write_hierarchical
from traffic.collectives.ring import write_all_gather, write_all_reduce, write_reduce_scatter
from traffic.llm.cut import Cut
from traffic.llm.job import LlmJob
from traffic.llm.layout import Layout
from traffic.llm.scale import Scale
from traffic.llm.volumes import gradient_params
from traffic.program import Program, split


@dataclass(frozen=True)
class Bucket:
    """Gradients of the blocks [first_block, end_block) of a chunk; [low, high) in the ranks' buffers.
    With compression `encoded` is the size of what a rank sends for all of it, else 0."""

    chunk: int
    first_block: int
    end_block: int
    experts: bool
    low: int
    high: int
    encoded: int = 0


def lay_out(job: LlmJob, cut: Cut, scale: Scale, low: int = 0) -> tuple[list[Bucket], int]:
    """The buckets of all chunks from `low` on, and where they end. Nothing where there is one copy."""
    buckets = []
    for experts, copies in ((False, job.dp), (True, job.dp // job.ep)):
        params = gradient_params(job, experts)
        if copies == 1 or not params:
            continue
        for chunk in range(job.interleave):
            for first, end in split(0, cut.blocks, cut.buckets):
                part = params * (end - first) / cut.blocks
                size, encoded = scale.size_bytes(part * job.element_bytes), 0
                if job.compression:
                    encoded = scale.size_bytes(job.compression.encoded_bytes(max(1, round(part))))
                    size = encoded * copies if job.compression.gathers else encoded
                buckets.append(Bucket(chunk, first, end, experts, low, low + size, encoded))
                low += size
    return buckets, low


class Gradients:
    """The data-parallel side of one job: what travels between the holders of the same parameters."""

    def __init__(self, program: Program, job: LlmJob, layout: Layout, buckets: Sequence[Bucket],
                 parameters: Sequence[Bucket], racks: Sequence[str] = ()) -> None:
        """`racks`: of each rank's host, for sums within racks first; empty for plain rings."""
        self.program, self.job, self.layout, self.racks = program, job, layout, racks
        self.buckets, self.parameters = buckets, parameters

    def groups(self, stage: int, bucket: Bucket) -> list[list[int]]:
        return self.layout.expert_data_groups(stage) if bucket.experts else self.layout.data_groups(stage)

    def gate(self, rank: int, bucket: Bucket, deps: tuple[int, ...], phase: str) -> None:
        """The rank's part of the bucket may travel once `deps` are done."""
        before = self.program.written[rank].by(bucket.low, bucket.high)
        opened = self.program.compute(rank, 0.0, tuple(sorted({*deps, *before})), phase, bucket.chunk)
        self.program.written[rank].mark(bucket.low, bucket.high, opened)

    def reduce(self, stage: int, bucket: Bucket, deps: dict[int, tuple[int, ...]]) -> None:
        """Sum a bucket over its groups; `deps` hold back each rank of the stage."""
        self.program.traffic_class = "gradients"
        for group in self.groups(stage, bucket):
            for rank in group:
                self.gate(rank, bucket, deps[rank], "gradients ready")
            chunks = split(bucket.low, bucket.high, len(group))
            if bucket.encoded:
                self._exchange_encoded(group, bucket, chunks)
            elif self.job.zero:
                write_reduce_scatter(self.program, group, chunks, phase="gradient reduce-scatter")
            elif len(by_rack := self._by_rack(group)) > 1:
                write_hierarchical(self.program, by_rack, (bucket.low, bucket.high))
            else:
                write_all_reduce(self.program, group, chunks, phase="gradient all-reduce")

    def _by_rack(self, group: list[int]) -> list[list[int]]:
        """The group by rack, where that was asked for and some rack has more than one of it."""
        found: dict[str, list[int]] = {}
        for rank in group if self.racks else ():
            found.setdefault(self.racks[rank], []).append(rank)
        return list(found.values()) if max(map(len, found.values()), default=0) > 1 else []

    def _exchange_encoded(self, group: list[int], bucket: Bucket, chunks: list[tuple[int, int]]) -> None:
        """Gather all encodings; or send each chunk's encoding to its owner, then gather the sums."""
        if self.job.compression.gathers:
            write_all_gather(self.program, group, chunks, phase="gather encoded gradients")
            return
        for step in range(1, len(group)):
            for place, source in enumerate(group):
                target = (place + step) % len(group)
                if chunks[target][0] < chunks[target][1]:
                    self.program.add(source, group[target], *chunks[target], phase="exchange encoded chunks",
                                     step=step - 1)
        write_all_gather(self.program, group, chunks, phase="gather encoded sums", first_step=len(group) - 1)

    def settled(self, rank: int, low: int, high: int) -> tuple[int, ...]:
        """The operations after which [low, high) of the rank's buffer is what it will be."""
        return self.program.written[rank].by(low, high) if low < high else ()

    def spread_parameters(self, stage: int, updated: dict[int, int]) -> None:
        """After the update of ZeRO-1 and -2: everybody gets the parameters that others own."""
        self.program.traffic_class = "parameters"
        for bucket in self.buckets:
            for group in self.groups(stage, bucket):
                for rank in group:
                    self.gate(rank, bucket, (updated[rank],), "parameters updated")
                write_all_gather(self.program, group, split(bucket.low, bucket.high, len(group)),
                                 phase="parameter all-gather")

    def gather(self, stage: int, chunk: int, block: int, deps: dict[int, tuple[int, ...]]) -> None:
        """ZeRO-3: all ranks of the stage gather the parameters of one block."""
        self.program.traffic_class = "parameters"
        for part in self._of(chunk, block):
            for group in self.groups(stage, part):
                for rank in group:
                    self.gate(rank, part, deps[rank], "parameters wanted")
                write_all_gather(self.program, group, split(part.low, part.high, len(group)),
                                 phase="parameter all-gather")

    def gathered(self, rank: int, chunk: int, block: int) -> tuple[int, ...]:
        """What the computation of a block waits for under ZeRO-3."""
        return tuple(op for part in self._of(chunk, block) for op in self.settled(rank, part.low, part.high))

    def _of(self, chunk: int, block: int) -> list[Bucket]:
        return [part for part in self.parameters if (part.chunk, part.first_block) == (chunk, block)]
