"""Parameters, operations, bytes and seconds of real models, against figures worked out by hand."""
from __future__ import annotations

from dataclasses import replace

import pytest

from traffic.compression import parse_scheme
from traffic.llm import timing, volumes
from traffic.llm.job import LlmJob, check_job
from traffic.llm.model import Model, counted_params

GPT3 = Model(counted_params(96, 12288, 96, 96, 51200, 0), 96, 12288, 96, 96, 2048, 51200)
LLAMA = Model(70e9, 80, 8192, 64, 8, 4096, 32000)
MIXTRAL = Model(46.7e9, 32, 4096, 32, 8, 4096, 32000, experts=8, topk=2)


def job(model: Model = LLAMA, **changed: object) -> LlmJob:
    base = LlmJob(model, tp=8, dp=8, pp=8, ep=1, microbatches=8, microbatch=1, dtype="bf16", zero=0,
                  interleave=1, overlap=True, bucket_bytes=25_000_000, accumulation=8, compression=None,
                  recompute=False,
                  nvlink=False, nics=1, scaleup_bps=3.6e12, flops=989e12, efficiency=0.5)
    made = replace(base, **changed)
    check_job(made)
    return made


def test_gpt3_has_its_parameters():
    assert GPT3.params == 96 * 12 * 12288**2 + 2 * 51200 * 12288 == 175_204_466_688


def test_operations_are_those_of_megatrons_formula():
    b, s, layers, h, v = 1536, 2048, 96, 12288, 51200
    assert b * s * GPT3.training_flops == pytest.approx(
        72 * b * s * layers * h**2 * (1 + s / (6 * h) + v / (12 * layers * h)))


def test_gpt3_trains_in_34_days_on_1024_accelerators():
    """SC'21, section 5.1: 300 billion tokens at 140 Tflop/s each, activations recomputed."""
    seconds = 300e9 * GPT3.training_flops * 4 / 3 / (1024 * 140e12)
    assert seconds / 86400 == pytest.approx(34, rel=0.04)


def test_llama_70b_attention_uses_grouped_queries():
    assert LLAMA.attention_params == 2 * 8192**2 + 2 * 8192 * 1024  # q and o; k and v of 8 heads of 128


def test_mixtral_has_its_experts():
    assert MIXTRAL.expert_params == pytest.approx(3 * 4096 * 14336, rel=0.01)
    active = 32 * (MIXTRAL.dense_layer_params + 2 * MIXTRAL.expert_params) + MIXTRAL.embedding_params
    assert active == pytest.approx(12.9e9, rel=0.01)


def test_bytes_of_llama_70b_on_512_accelerators():
    it = job()
    assert volumes.activation_bytes(it) == 4096 * 8192 * 2 == 67_108_864
    assert volumes.tensor_bytes(it, False) == volumes.tensor_bytes(it, True) == 2 * 67_108_864
    assert volumes.tensor_bytes(replace(it, recompute=True), True) == 4 * 67_108_864
    assert volumes.pipeline_bytes(it) == 67_108_864 // 8
    assert it.dense_params == 70e9 / 64
    assert volumes.gradient_bytes_sent(it) == pytest.approx(2 * 7 / 8 * 70e9 / 64 * 2)
    assert volumes.gradient_buckets(it) == 88  # 2.1875 GB in buckets of 25 MB


def test_memory_of_zero():
    """ZeRO, figure 1: 7.5 billion parameters on 64 devices: 120, 31.4, 16.6 and 1.9 GB."""
    model = Model(7.5e9, 32, 4096, 32, 32, 2048, 50257)
    on_64 = job(model, tp=1, pp=1, dp=64)
    for zero, gigabytes in enumerate((120, 31.4, 16.6, 1.9)):
        assert replace(on_64, zero=zero).state_bytes / 1e9 == pytest.approx(gigabytes, rel=0.02)


def test_accumulation_saves_seven_eighths_of_the_gradient_bytes():
    once, each_time = (volumes.gradient_bytes_sent(job(accumulation=n)) for n in (8, 1))
    assert 1 - once / each_time == pytest.approx(0.875)


@pytest.mark.parametrize("scheme, of_plain",
                         [("int8", 260 / 512), ("1bit", 1 / 16), ("topk:0.01", 0.03 * 8 / 2)])
def test_compressed_gradients_have_their_encoded_size(scheme, of_plain):
    """top-k is gathered: seven encodings of 6 bytes a value kept, for 2 * 7/8 of 2 bytes a value."""
    plain, encoded = (volumes.gradient_bytes_sent(job(compression=parse_scheme(s))) for s in ("none", scheme))
    assert encoded / plain == pytest.approx(of_plain, rel=1e-3)


def test_experts_send_each_token_topk_times():
    it = job(MIXTRAL, tp=1, pp=1, dp=8, ep=8)
    assert volumes.expert_bytes(it, False) == 2 * 4096 * 4096 * 2
    assert it.expert_params == pytest.approx(32 * MIXTRAL.expert_params)
    whole = it.dense_params + 8 * it.expert_params
    assert whole == pytest.approx(46.7e9)


def test_times():
    it = job()
    forward, backward = (timing.layer_time(it, way) for way in (False, True))
    assert forward.dense_s == pytest.approx(4096 * LLAMA.dense_flops / (8 * 989e12 * 0.5))
    assert backward.dense_s == 2 * forward.dense_s and forward.scaleup_s == 0
    assert timing.layer_time(replace(it, recompute=True), True).dense_s == 3 * forward.dense_s
    inside = timing.layer_time(job(nvlink=True, nics=8), False)
    assert inside.scaleup_s == pytest.approx(2 * 7 / 8 * 2 * 67_108_864 * 8 / 3.6e12)
    given = replace(it, forward_s=0.08, backward_s=0.2)
    assert timing.rank_pass_s(given) == pytest.approx(0.28)
    assert timing.optimizer_s(it) == 8 * timing.optimizer_s(replace(it, zero=1))
