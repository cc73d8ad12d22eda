"""The parameters of global scheduling, as they are written in --routing."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from controllers.scheduling.annealing import annealing
from controllers.scheduling.first_fit import first_fit
from controllers.scheduling.least_congested import least_congested
from controllers.scheduling.place import Scheduler
from emulator.errors import BadInput, nearest
from emulator.units import parse_time

SCHEDULERS: Mapping[str, Scheduler] = {"gff": first_fit, "sa": annealing, "least-congested": least_congested}
SCOPES = ("local", "global", "both")
SPEC = "adaptive:scope=local,scheduler=gff,period=500ms,threshold=0.1,hysteresis=0.1"
SHORT_SPEC = "{}:period=500ms,threshold=0.1,hysteresis=0.1"
LEAST_PERIOD_S, MOST_PERIOD_S = 0.05, 3600.0


@dataclass(frozen=True)
class Scheduling:
    """How the controller moves elephants. An elephant is a pair of hosts that sends more than `threshold` of
    a host link's rate; `period_s` between two looks at the counters; `hysteresis` in fractions of a host
    link.
    """

    scheduler: str
    period_s: float
    threshold: float
    hysteresis: float


def scope(text: str) -> str:
    return _one_of(text, SCOPES)


def scheduler(text: str) -> str:
    return _one_of(text, SCHEDULERS)


def period_s(text: str) -> float:
    value = parse_time(text, "the period")
    if not LEAST_PERIOD_S <= value <= MOST_PERIOD_S:
        raise BadInput(f"{text} is outside {LEAST_PERIOD_S:g}s to {MOST_PERIOD_S:g}s.")
    return value


def threshold(text: str) -> float:
    value = float(text)
    if not 0 < value <= 1:
        raise BadInput(f"{text} is outside 0 to 1 of a host link's rate (0 itself would take every pair).")
    return value


def hysteresis(text: str) -> float:
    value = float(text)
    if not 0 <= value <= 10:
        raise BadInput(f"{text} is outside 0 to 10 of a host link's rate.")
    return value


PARAMETERS: Mapping[str, Callable[[str], object]] = {
    "scope": scope, "scheduler": scheduler, "period": period_s, "threshold": threshold,
    "hysteresis": hysteresis}


def _one_of(text: str, known: Mapping[str, object] | tuple[str, ...]) -> str:
    if text not in known:
        raise BadInput(f'there is no "{text}"{nearest(text, known)}.')
    return text
