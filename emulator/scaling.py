"""How far the target is scaled down: --target-rate, --dilation and --byte-scale, for one emulated rate."""
from __future__ import annotations

from typing import TypedDict

from emulator.errors import BadInput
from emulator.experiment import Experiment
from emulator.units import parse_rate, show_rate
from traffic.schedule import Workload

AUTO = "auto"
ROUNDING = 0.01


class Scaling(TypedDict):
    """The fields of a `Setting` that scale a workload."""

    dilation: float
    byte_scale: float
    auto_dilation: bool
    auto_byte_scale: bool
    target_rate_bps: float | None


def scaling(experiment: Experiment, rate_bps: float) -> Scaling:
    """What was asked for, at an emulated rate; K follows from the target's rate where that is given.

    Raises BadInput where --dilation and --target-rate contradict each other.
    """
    target_bps = None
    if experiment.target_rate != AUTO:
        target_bps = parse_rate(experiment.target_rate, "--target-rate")
    auto_k, auto_s = experiment.dilation == AUTO, experiment.byte_scale == AUTO
    if target_bps is not None and target_bps < rate_bps:
        raise BadInput(f"--target-rate {experiment.target_rate} is less than the emulated rate of "
                       f"{show_rate(rate_bps)}; lower --rate.")
    if target_bps and not auto_k and abs(experiment.dilation * rate_bps / target_bps - 1) > ROUNDING:
        raise BadInput(f"--target-rate {experiment.target_rate} and --dilation {experiment.dilation:g} "
                       f"contradict each other at a rate of {show_rate(rate_bps)}; leave --dilation out.")
    dilation = (target_bps / rate_bps if target_bps else 1.0) if auto_k else experiment.dilation
    return Scaling(dilation=dilation, byte_scale=1.0 if auto_s else experiment.byte_scale,
                   auto_dilation=auto_k, auto_byte_scale=auto_s, target_rate_bps=target_bps)


def scaled(experiment: Experiment, workload: Workload, rate_bps: float) -> Experiment:
    """The experiment with the K and S that the workload was resolved with."""
    chosen = scaling(experiment, rate_bps)
    k, s = (workload.target.dilation, workload.target.byte_scale) if workload.target else (
        chosen["dilation"], chosen["byte_scale"])
    return experiment.model_copy(update={"dilation": k, "byte_scale": s})
