"""What an emulated job stands for: the real cluster that its result is projected back to."""
from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Target:
    """The real job behind a workload whose bytes, rates and times were scaled together.

    rate_bps: a network card of the real cluster. dilation K and byte_scale S: rates were divided by K,
    bytes by S, times multiplied by K / S. model_flops: operations of one iteration on all
    accelerators, without recomputation; peak_flops: of one accelerator, a second. rows: (what, on the
    real cluster, emulated). kept and lost: sentences on what the scaling preserves and what not.
    """

    rate_bps: float
    dilation: float
    byte_scale: float
    stages: int
    microbatches: int
    interleave: int
    accelerators: int
    peak_flops: float
    model_flops: float
    tokens: int
    rows: tuple[tuple[str, str, str], ...] = ()
    kept: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()

    @property
    def time_scale(self) -> float:
        """Emulated seconds a second of the real cluster."""
        return self.dilation / self.byte_scale

    @property
    def ideal_bubble(self) -> float:
        """Share of the pipeline's time that a stage waits while it fills and drains: (p-1) / (v m + p-1)
        (Narayanan et al., SC'21, 2.2: (p-1) / (v m) of the computing)."""
        return (self.stages - 1) / (self.interleave * self.microbatches + self.stages - 1)

    def mfu(self, iteration_s: float) -> float:
        """Model FLOPs utilisation of an iteration of so many emulated seconds (PaLM, 2022, appendix B)."""
        return self.model_flops * self.time_scale / (iteration_s * self.accelerators * self.peak_flops)
