"""A training job in the units of the real cluster: what a user asks for, checked."""
from __future__ import annotations

from dataclasses import dataclass

from emulator.errors import BadInput
from traffic.compression import Scheme
from traffic.llm.model import Model

WHAT = "workload llm"
DTYPES = {"bf16": 2, "fp16": 2, "fp32": 4, "fp8": 1}
"""Bytes of an activation, a parameter and a gradient."""
MOST_BYTES = 1e18
PARTS_OF_STATE = 12
"""Bytes of optimizer state a parameter: Adam's two moments and a copy in fp32 (ZeRO, SC'20, 3.1)."""


@dataclass(frozen=True)
class LlmJob:
    """One iteration is `microbatches` passes of `microbatch` sequences through each replica.

    tp, dp, pp, ep: degrees of parallelism, in accelerators. interleave: virtual stages a rank holds.
    accumulation: micro-batches between two reductions of gradients. nvlink: tensor-parallel traffic
    stays inside a host that carries the whole group, over `scaleup_bps` each way. nics: network
    cards of such a host, which share its traffic; the fabric is one of their rails. flops: peak
    operations a second of an accelerator, of which kernels reach `efficiency`. forward_s, backward_s,
    optimizer_s: given times of a micro-batch on a rank and of the update, else None.
    """

    model: Model
    tp: int
    dp: int
    pp: int
    ep: int
    microbatches: int
    microbatch: int
    dtype: str
    zero: int
    interleave: int
    overlap: bool
    bucket_bytes: int
    accumulation: int
    compression: Scheme | None
    recompute: bool
    nvlink: bool
    nics: int
    scaleup_bps: float
    flops: float
    efficiency: float
    forward_s: float | None = None
    backward_s: float | None = None
    optimizer_s: float | None = None

    @property
    def accelerators(self) -> int:
        return self.tp * self.dp * self.pp

    @property
    def element_bytes(self) -> int:
        return DTYPES[self.dtype]

    @property
    def tokens(self) -> int:
        """Of one iteration, over all replicas."""
        return self.dp * self.microbatches * self.microbatch * self.model.seq

    @property
    def chunk_layers(self) -> int:
        """Layers of one virtual stage."""
        return self.model.layers // (self.pp * self.interleave)

    @property
    def dense_params(self) -> float:
        """Parameters outside the experts that an accelerator computes with. Embedding and head count
        as if spread over the stages, as frameworks balance them."""
        m = self.model
        return (m.layers * m.dense_layer_params + m.embedding_params) / (self.tp * self.pp)

    @property
    def expert_params(self) -> float:
        """Parameters of the experts that an accelerator holds."""
        m = self.model
        return m.layers * m.experts * m.expert_params / (self.tp * self.pp * self.ep)

    @property
    def state_bytes(self) -> float:
        """Memory of an accelerator for parameters, gradients and optimizer: (2 + 2 + 12) bytes a
        parameter in bf16, of which ZeRO's stages 1, 2, 3 divide the optimizer's, the gradients' and
        the parameters' part by dp (ZeRO, SC'20, figure 1)."""
        total = 0.0
        for params, copies in ((self.dense_params, self.dp), (self.expert_params, self.dp // self.ep)):
            for part, size in enumerate((PARTS_OF_STATE, self.element_bytes, self.element_bytes), 1):
                total += params * size / (copies if self.zero >= part else 1)
        return total


def check_job(job: LlmJob) -> None:
    """Raise BadInput unless the parts fit together; each sentence names the two numbers."""
    m = job.model
    _divides("layers", m.layers, "pp*interleave" if job.interleave > 1 else "pp", job.pp * job.interleave)
    _divides("heads", m.heads, "tp", job.tp)
    _divides("dp", job.dp, "ep", job.ep)
    _divides("microbatches", job.microbatches, "accumulation", job.accumulation)
    if job.ep > 1 and not m.experts:
        raise BadInput(f"{WHAT}: ep={job.ep} needs a model with experts, such as experts=8,topk=2.")
    if m.experts:
        _divides("experts", m.experts, "ep", job.ep)
        if m.topk > m.experts:
            raise BadInput(f"{WHAT}: topk={m.topk} is more than experts={m.experts}.")
    if job.interleave > 1 and job.pp == 1:
        raise BadInput(f"{WHAT}: interleave={job.interleave} needs a pipeline; pp is 1.")
    if job.interleave > 1:
        _divides("microbatches", job.microbatches, "pp (interleave needs it)", job.pp)
    if job.compression and job.zero:
        raise BadInput(f"{WHAT}: compression={job.compression} works on whole gradients, but zero={job.zero} "
                       "shares them out; use zero=0.")
    if job.nvlink:
        _divides("tp", job.tp, "nics", job.nics)
    elif job.nics > 1:
        raise BadInput(f"{WHAT}: nics={job.nics} belongs to nvlink=yes, where a host carries several ranks.")
    moved = (job.tokens * m.hidden * m.layers * job.element_bytes * 8 + m.params * job.element_bytes
             * job.accelerators * job.microbatches)
    if moved > MOST_BYTES:
        raise BadInput(f"{WHAT}: an iteration would move about {moved:.2g} bytes, more than 10^18; check "
                       "params, hidden, seq, microbatch and microbatches.")


def _divides(name: str, whole: int, by: str, part: int) -> None:
    if whole % part:
        raise BadInput(f"{WHAT}: {name}={whole} is not divisible by {by}={part}.")
