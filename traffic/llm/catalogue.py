"""The parameters of an llm job, in words: (key, meaning with unit, default)."""
from __future__ import annotations

MODEL = (
    ("params", "parameters of the model, such as 70e9 or 70B", "counted: 12 h^2 a layer and two embeddings"),
    ("layers", "transformer layers", "32"), ("hidden", "width h", "4096"),
    ("heads", "attention heads", "hidden / 128"), ("kvheads", "key and value heads", "heads"),
    ("seq", "tokens of a sequence", "4096"), ("vocab", "size of the vocabulary", "32000"),
    ("experts", "experts of each layer; 0: a dense model", "0"), ("topk", "experts that a token visits", "2"))
PARALLEL = (
    ("dp tp pp", "data-, tensor-, pipeline-parallel degree; their product are the ranks",
     "dp: all hosts; 1; 1"),
    ("ep", "expert-parallel degree, a divisor of dp", "1"),
    ("order", "dimensions from the innermost; tp-dp-pp is Megatron's", "tp-dp-pp"),
    ("ranks", "checked against the product", ""),
    ("interleave", "virtual stages a rank (Megatron's interleaved 1F1B)", "1"),
    ("nvlink", "yes: a host carries a tensor-parallel group, whose sums are time on scaleup", "no"),
    ("scaleup", "rate inside a host, each way", "3600gbit (NVLink 4)"),
    ("nics", "network cards of such a host; the fabric is one rail", "tp"))
TRAINING = (
    ("microbatches", "micro-batches of an iteration", "8"), ("microbatch", "sequences in one", "1"),
    ("dtype", "bf16 | fp16 | fp32 | fp8, of parameters, activations, gradients", "bf16"),
    ("zero", "0 to 3: what is sharded over dp (ZeRO, FSDP)", "0"),
    ("accumulation", "micro-batches between reductions of gradients", "microbatches; 1 for zero=2, 3"),
    ("overlap", "yes: buckets are reduced while backward goes on, parameters fetched ahead", "yes"),
    ("bucket", "bytes of a gradient bucket", "25MB"),
    ("allreduce", "ring | hierarchical (within racks first), of gradients", "ring"),
    ("compression", "none | topk:0.01 | int8 | 1bit, of gradients", "none"),
    ("recompute", "yes: activations are computed again backward", "no"))
SPEED = (
    ("flops", "peak operations a second of an accelerator", "989e12"),
    ("efficiency", "of the peak that kernels reach", "0.5"),
    ("forward, backward", "times of a micro-batch on a rank instead, real seconds", "from flops"),
    ("optimizer", "time of the update", "32 bytes a parameter at 3.35 TB/s"),
    ("blocks", "blocks into which the layers of a stage are merged", "up to 8, each sending 12 frames"))
PARAMETERS = MODEL + PARALLEL + TRAINING + SPEED
EXAMPLE = "llm:params=70e9,layers=80,hidden=8192,dp=4,tp=2,pp=2"
MEANING = "a transformer's training iteration, scaled from its real cluster (--target-rate)"
