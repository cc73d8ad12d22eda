"""A transformer by its figures: parameters, and floating-point operations of a token.

Counts follow Narayanan et al., 'Efficient Large-Scale Language Model Training on GPU Clusters Using
Megatron-LM', SC'21, section 5.1: a matrix of P parameters costs 2P operations a token forward and
twice that backward; attention scores cost 4sh more a layer, the output head 2hV. With 12h^2
parameters a layer this is their 96Bslh^2(1 + s/6h + V/16lh) where activations are recomputed.
"""
from __future__ import annotations

from dataclasses import dataclass

from emulator.errors import BadInput


@dataclass(frozen=True)
class Model:
    """`params` counts all parameters, every expert and both embeddings included; `seq` is the length
    of a sequence in tokens. kv_heads < heads is grouped-query attention. experts=0: a dense model;
    else each layer has `experts` of them, of which a token visits `topk` (GShard, ICLR'21; Switch
    Transformers, JMLR 2022).
    """

    params: float
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    seq: int
    vocab: int
    experts: int = 0
    topk: int = 0

    def __post_init__(self) -> None:
        if self.expert_params < 0 or self.dense_layer_params <= 0:
            raise BadInput(
                f"workload llm: params={self.params:.4g} are fewer than hidden={self.hidden}, "
                f"layers={self.layers} and vocab={self.vocab} need ({self.embedding_params:.4g} for the two "
                f"embeddings, {self.layers * self.attention_params:.4g} for attention); give more, or "
                "leave params out to have them counted.")

    @property
    def embedding_params(self) -> float:
        """Token embedding and output head, not tied."""
        return 2.0 * self.vocab * self.hidden

    @property
    def attention_params(self) -> float:
        """Query and output matrices of h x h, key and value ones narrower under grouped queries."""
        return (2 + 2 * self.kv_heads / self.heads) * self.hidden**2

    @property
    def layer_params(self) -> float:
        """One layer, all experts included."""
        return (self.params - self.embedding_params) / self.layers

    @property
    def expert_params(self) -> float:
        """One expert of one layer: what is left of a layer after attention, shared out; 0 if dense."""
        return (self.layer_params - self.attention_params) / self.experts if self.experts else 0.0

    @property
    def dense_layer_params(self) -> float:
        """One layer without its experts."""
        return self.attention_params if self.experts else self.layer_params

    @property
    def dense_flops(self) -> float:
        """Forward operations of a token in one layer outside the experts, with its share of the head."""
        return (2 * self.dense_layer_params + 4.0 * self.seq * self.hidden
                + 2.0 * self.hidden * self.vocab / self.layers)

    @property
    def expert_flops(self) -> float:
        """Forward operations of a token in the experts of one layer."""
        return 2 * self.topk * self.expert_params

    @property
    def training_flops(self) -> float:
        """Forward and backward operations of a token through the model, without recomputation."""
        return 3 * self.layers * (self.dense_flops + self.expert_flops)


def counted_params(layers: int, hidden: int, heads: int, kv_heads: int, vocab: int, experts: int) -> float:
    """Parameters of a model of which none are given: attention and a feed-forward of 4h (8h^2), or as
    many of those as there are experts, a layer; and two embeddings. 12h^2 a layer where it is dense.
    """
    attention = (2 + 2 * kv_heads / heads) * hidden**2
    return layers * (attention + max(1, experts) * 8.0 * hidden**2) + 2.0 * vocab * hidden
