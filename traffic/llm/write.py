"""One training iteration of a transformer as a schedule: forward, backward, optimizer, and what they send.

Every pass of a pipeline stage is written for all ranks of the stage at once, block by block: computing,
the tensor-parallel all-reduce of its layers (where it crosses the fabric), dispatch and combine of
tokens between experts, the gather of sharded parameters before it, the reduction of gradients after it.
Stages take turns until all passes stand; a rank computes one thing at a time.
"""
from __future__ import annotations

from collections.abc import Sequence

from traffic.collectives.ring import write_all_reduce
from traffic.llm.cut import Cut
from traffic.llm.gradients import Gradients, lay_out
from traffic.llm.job import LlmJob
from traffic.llm.layout import Layout
from traffic.llm.order import Pass, passes, source
from traffic.llm.scale import Scale
from traffic.llm.timing import layer_time, optimizer_s
from traffic.llm.volumes import expert_bytes, pipeline_bytes, tensor_bytes
from traffic.pipeline import BACKWARD, FORWARD
from traffic.program import Program, split
from traffic.schedule import Schedule

Deps = tuple[int, ...]
SCALE_UP = "tensor (scale-up)"
"""Phase of the time in which sums move inside a host."""


def write_iteration(job: LlmJob, layout: Layout, cut: Cut, scale: Scale, racks: Sequence[str] = ()
                    ) -> Schedule:
    """The schedule of one iteration in emulated bytes and seconds. With `racks`, the rack of each rank's
    host, gradients are summed within racks first."""
    return _Iteration(job, layout, cut, scale, racks).write()


class _Iteration:
    def __init__(self, job: LlmJob, layout: Layout, cut: Cut, scale: Scale, racks: Sequence[str]) -> None:
        self.job, self.layout, self.cut, self.scale = job, layout, cut, scale
        self.program = Program(layout.ranks)
        buckets, self.gradients_end = lay_out(job, cut, scale)
        shards, end = lay_out(job, Cut(cut.blocks, cut.blocks), scale, self.gradients_end) if job.zero == 3 \
            else ([], self.gradients_end)
        self.gradients = Gradients(self.program, job, layout, buckets, shards, racks)
        self.activations = end
        self.layers = job.chunk_layers // cut.blocks
        self.last: list[Deps] = [()] * layout.ranks
        """what a rank's next operation waits for: its last one"""
        self.begun: list[Deps] = [()] * layout.ranks
        """what its last computation waited for: from then on the next parameters may be fetched"""
        self.arrived: dict[tuple[int, Pass], int] = {}
        """(rank, pass) -> receive of its input"""

    def write(self) -> Schedule:
        job = self.job
        todo = [passes(stage, job.pp, job.microbatches, job.interleave) for stage in range(job.pp)]
        position, members = [0] * job.pp, [self.layout.stage(stage) for stage in range(job.pp)]
        while any(position[stage] < len(todo[stage]) for stage in range(job.pp)):
            for stage in range(job.pp):
                while position[stage] < len(todo[stage]):
                    each = todo[stage][position[stage]]
                    comes_from = source(stage, job.pp, job.interleave, each.kind, each.chunk)
                    if comes_from and (members[stage][0], each) not in self.arrived:
                        break  # the stage before has not been written that far yet
                    self._pass(stage, members[stage], each)
                    position[stage] += 1
        for stage in range(job.pp):
            self._update(stage, members[stage])
        most = max(tensor_bytes(job, backward) for backward in (False, True)) if self.layout.tp > 1 else 0
        room = self.scale.size_bytes(self.layers * most) if most else 0
        return self.program.schedule("llm", self.activations + room)

    def _pass(self, stage: int, ranks: list[int], each: Pass) -> None:
        """One micro-batch through one chunk on all ranks of a stage."""
        backward = each.kind == BACKWARD
        for rank in ranks:
            if (rank, each) in self.arrived:
                self.last[rank] += (self.arrived[rank, each],)
        reduces = backward and (each.microbatch + 1) % self.job.accumulation == 0
        blocks = range(self.cut.blocks)
        for block in reversed(blocks) if backward else blocks:
            self._block(stage, ranks, each, block, backward)
            if reduces and self.job.overlap:
                self._reduce(stage, each.chunk, block)
        self._hand_on(stage, each)
        if reduces and not self.job.overlap and self.job.accumulation < self.job.microbatches:
            self._reduce(stage, each.chunk, None)
            for rank in ranks:  # nothing else happens until it is over
                self.last[rank] += self._reduced(rank, each.chunk)

    def _block(self, stage: int, ranks: list[int], each: Pass, block: int, backward: bool) -> None:
        job, time = self.job, layer_time(self.job, backward)
        if job.zero == 3:
            ready = self.begun if job.overlap else self.last
            self.gradients.gather(stage, each.chunk, block, {rank: ready[rank] for rank in ranks})
            for rank in ranks:
                self.last[rank] += self.gradients.gathered(rank, each.chunk, block)
        if backward:
            self._experts(stage, ranks, each, time.expert_s)
            self._compute(ranks, each.kind, each.microbatch, time.dense_s)
        else:
            self._compute(ranks, each.kind, each.microbatch, time.dense_s)
            self._experts(stage, ranks, each, time.expert_s)
        if time.scaleup_s:
            self._compute(ranks, SCALE_UP, each.microbatch, time.scaleup_s)
        if self.layout.tp > 1:
            self._sum_activations(stage, each, backward)

    def _experts(self, stage: int, ranks: list[int], each: Pass, layer_s: float) -> None:
        """Tokens to their experts, the experts' work, and back; backward their gradients go the same way."""
        if not self.job.model.experts:
            return
        to, back = ("combine", "dispatch") if each.kind == BACKWARD else ("dispatch", "combine")
        self._exchange_tokens(stage, f"{to} {each.kind}", each.kind == BACKWARD)
        self._compute(ranks, each.kind, each.microbatch, layer_s)
        self._exchange_tokens(stage, f"{back} {each.kind}", each.kind == BACKWARD)

    def _compute(self, ranks: list[int], phase: str, microbatch: int, layer_s: float) -> None:
        duration_s = self.scale.duration_s(self.layers * layer_s)
        for rank in ranks:
            self.begun[rank] = self.last[rank]
            self.last[rank] = (self.program.compute(rank, duration_s, self.last[rank], phase, microbatch),)

    def _sum_activations(self, stage: int, each: Pass, backward: bool) -> None:
        """The all-reduces of a block's layers, as one."""
        self.program.traffic_class = "tensor"
        low = self.activations
        high = low + self.scale.size_bytes(self.layers * tensor_bytes(self.job, backward))
        for group in self.layout.tensor_groups(stage):
            for rank in group:
                before = self.program.written[rank].by(low, high)
                deps = tuple(sorted({*self.last[rank], *before}))
                opened = self.program.compute(rank, 0.0, deps, "activations", each.microbatch)
                self.program.written[rank].mark(low, high, opened)
            write_all_reduce(self.program, group, split(low, high, len(group)), phase=f"tensor {each.kind}")
            for rank in group:
                self.last[rank] = self.program.written[rank].by(low, high)

    def _exchange_tokens(self, stage: int, what: str, backward: bool) -> None:
        """One all-to-all among the holders of the experts; a rank goes on when all its tokens are there."""
        self.program.traffic_class = "expert"
        size = self.scale.size_bytes(self.layers * expert_bytes(self.job, backward) / self.job.ep)
        for group in self.layout.expert_groups(stage):
            came: dict[int, Deps] = {rank: () for rank in group}
            for step in range(1, len(group)):
                for place, rank in enumerate(group):
                    target = group[(place + step) % len(group)]
                    _, recv = self.program.message(rank, target, size, deps=self.last[rank], phase=what,
                                                   step=step - 1)
                    came[target] += (recv,)
            for rank in group:
                self.last[rank] += came[rank]

    def _hand_on(self, stage: int, each: Pass) -> None:
        """Send the pass's result to the stage that comes next, each rank to its like."""
        opposite = BACKWARD if each.kind == FORWARD else FORWARD
        target = source(stage, self.job.pp, self.job.interleave, opposite, each.chunk)
        if target is None:
            return
        self.program.traffic_class = "pipeline"
        size, (there, chunk) = self.scale.size_bytes(pipeline_bytes(self.job)), target
        for rank, peer in zip(self.layout.stage(stage), self.layout.stage(there)):
            _, recv = self.program.message(rank, peer, size, deps=self.last[rank], phase=each.kind,
                                           step=each.microbatch)
            self.arrived[peer, Pass(each.kind, each.microbatch, chunk)] = recv

    def _reduce(self, stage: int, chunk: int, block: int | None) -> None:
        """Reduce the buckets of a chunk that are complete with this block; all of them for None."""
        deps = {rank: self.last[rank] for rank in self.layout.stage(stage)}
        for bucket in reversed(self.gradients.buckets):
            if bucket.chunk == chunk and block in (None, bucket.first_block):
                self.gradients.reduce(stage, bucket, deps)

    def _reduced(self, rank: int, chunk: int) -> Deps:
        return tuple(op for bucket in self.gradients.buckets if bucket.chunk == chunk
                     for op in self.gradients.settled(rank, bucket.low, bucket.high))

    def _update(self, stage: int, ranks: list[int]) -> None:
        """What remains to be reduced, the optimizer, and its parameters to those who do not own them."""
        if not self.job.overlap and self.job.accumulation == self.job.microbatches:
            for chunk in reversed(range(self.job.interleave)):
                self._reduce(stage, chunk, None)
        updated = {}
        for rank in ranks:
            deps = {*self.last[rank], *self.gradients.settled(rank, 0, self.gradients_end)}
            updated[rank] = self.program.compute(rank, self.scale.duration_s(optimizer_s(self.job)),
                                                 tuple(sorted(deps)), "optimizer", 0)
        if self.job.zero in (1, 2):
            self.gradients.spread_parameters(stage, updated)
