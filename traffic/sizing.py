"""The sizes of workloads whose user gave none: such that an iteration ideally takes about ten seconds.

Long enough that TCP has left its start behind and a series of samples shows something, short enough
to try several settings.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from traffic.ideal import bounds_s, closed_form_of, formula_at
from traffic.patterns import Pairs
from traffic.pipeline import pipeline
from traffic.schedule import Schedule, Workload
from traffic.setting import Setting
from traffic.simulate import simulate
from traffic.training import training

GOAL_S = 10.0
LEAST_SLICE_FRAMES = 8


def slices_for(message_bytes: int, most: int, setting: Setting,
               least_frames: int = LEAST_SLICE_FRAMES) -> int:
    """How often to slice a message: up to `most` times, no slice under `least_frames` full frames.

    Smaller slices cost a wake-up of the engine each and hide no more delay. Where it is `least_frames` that
    decides, a slice is a little less than so many, not a little more, which would take another frame each.
    """
    frames = message_bytes // setting.wire.payload_bytes
    if frames // least_frames >= most:
        return most
    return -(-message_bytes // (least_frames * setting.wire.payload_bytes)) if frames >= least_frames else 1


def collective_bytes(build: Callable[[int, int], Workload], ranks: int, slices: int,
                     setting: Setting) -> int:
    """The size at which `build(size_bytes, slices)` ideally takes GOAL_S, a multiple of `ranks`.

    Closed forms and simulations are affine in the size, the busiest link's time is proportional to
    it; two trials tell both. Where delays alone take that long, a chunk is still one full frame.
    """
    least = ranks * setting.wire.payload_bytes
    small, large = 20 * least, 40 * least
    trial = build(small, 1)
    if closed_form_of(trial.schedule.name, ranks):
        slices = 1  # makes no difference to a closed form
    elif slices > 1:
        trial = build(small, slices)
    small_s, busiest_s = bounds_s(trial, setting.paths, setting.wire)
    large_s = formula_at(trial, large, setting.paths, setting.wire)
    if large_s is None:
        large_s, _ = bounds_s(build(large, slices), setting.paths, setting.wire)
    size_bytes = min(small + (GOAL_S - small_s) * (large - small) / (large_s - small_s),
                     small * GOAL_S / busiest_s)
    return max(least, round(size_bytes / ranks) * ranks)


def pattern_bytes(pairs: Pairs, setting: Setting, goal_s: float = GOAL_S) -> int:
    """Bytes of each flow with which the busiest host link is busy for goal_s.

    Links inside the fabric are left out, so that a pattern has the same size on every fabric.
    """
    out: dict[int, int] = {}
    into: dict[int, int] = {}
    for source, destination in pairs:
        out[source] = out.get(source, 0) + 1
        into[destination] = into.get(destination, 0) + 1
    wire = setting.wire
    frames, acks = wire.frame_bytes / wire.payload_bytes, wire.ack_bytes_per_byte
    busiest = max(max(out.get(host, 0) * frames + into.get(host, 0) * acks,
                      into.get(host, 0) * frames + out.get(host, 0) * acks) for host in {**out, **into})
    return max(1, int(goal_s * setting.rate_bps / 8 / busiest))


@dataclass(frozen=True)
class Job:
    """The figures of a pipeline (replicas=1, gradient_bytes=0) or training iteration."""

    stages: int
    replicas: int
    microbatches: int
    activation_bytes: int
    gradient_bytes: int
    forward_s: float
    backward_s: float

    def schedule(self, slices: int = 1, channels: int = 1) -> Schedule:
        if not self.gradient_bytes:
            return pipeline(self.stages, self.microbatches, self.activation_bytes, self.forward_s,
                            self.backward_s)
        return training(self.stages, self.replicas, self.microbatches, self.activation_bytes,
                        self.gradient_bytes, self.forward_s, self.backward_s, slices, channels)


@dataclass(frozen=True)
class Figures:
    """What the user gave of a Job; None where it is left to us."""

    activation_bytes: int | None
    gradient_bytes: int | None
    forward_s: float | None
    backward_s: float | None


def job(stages: int, replicas: int, microbatches: int, given: Figures, with_gradient: bool,
        placement: tuple[int, ...], setting: Setting) -> Job:
    """A Job with what was left out filled in, in these proportions: a backward pass takes twice a
    forward one, an activation's transfer a quarter of a forward pass, the gradient exchange as long
    as half the computing. Where the computing is left out too, all of it is scaled to GOAL_S.
    """
    def with_forward(forward_s: float) -> Job:
        return _fill(stages, replicas, microbatches, given, with_gradient, forward_s, setting)

    def time_s(forward_s: float) -> float:
        schedule = with_forward(forward_s).schedule()
        return simulate(schedule, placement, setting.paths, setting.wire).completion_s

    if given.forward_s is not None:
        return with_forward(given.forward_s)
    if given.backward_s is not None:
        return with_forward(given.backward_s / 2)
    guess_s = GOAL_S / (5 * (microbatches + stages - 1))
    half_s, full_s = time_s(guess_s / 2), time_s(guess_s)
    forward_s = guess_s / 2 + (GOAL_S - half_s) / (full_s - half_s) * guess_s / 2
    return with_forward(max(forward_s, guess_s / 10))  # sizes that were given may take longer than the goal


def _fill(stages: int, replicas: int, microbatches: int, given: Figures, with_gradient: bool,
          forward_s: float, setting: Setting) -> Job:
    beta_s, least = setting.wire.beta_s(), setting.wire.payload_bytes
    backward_s = given.backward_s if given.backward_s is not None else 2 * forward_s
    activation_bytes = given.activation_bytes or max(least, round(forward_s / 4 / beta_s))
    gradient_bytes = 0
    if with_gradient:
        exchange_s = (microbatches + stages - 1) * (forward_s + backward_s) / 2
        per_byte_s = 2 * (replicas - 1) / replicas * setting.wire.beta_s(shared=True) or beta_s
        gradient_bytes = given.gradient_bytes or max(least * replicas, round(exchange_s / per_byte_s))
    return Job(stages, replicas, microbatches, activation_bytes, gradient_bytes, forward_s, backward_s)
