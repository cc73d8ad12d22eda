"""What a workload is resolved against, and how its values are read."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from emulator.errors import BadInput, nearest
from emulator.specs import Spec, take, whole
from emulator.units import parse_size, parse_time
from topologies.graph import Graph
from traffic.paths import Paths
from traffic.wire import Wire


@dataclass(frozen=True)
class Setting:
    """The fabric a workload runs on and the scale of its inputs.

    `dilation` multiplies the times a user gives (starts, computes), `byte_scale` divides the sizes;
    at least one byte remains. Sizes that the user leaves out are chosen in emulated units and
    scaled by neither. `auto_dilation`, `auto_byte_scale`: the user left them to a workload that knows
    its real cluster, whose network cards have `target_rate_bps` (None: not said). `classes` are the
    names of the classes of service, for workloads that take all; `kinds` are the kinds of traffic that jobs
    name by themselves, whether or not the table has a class for them.
    """

    graph: Graph
    rate_bps: float
    mtu: int
    seed: int
    dilation: float = 1.0
    byte_scale: float = 1.0
    delay_s: float = 0.0
    auto_dilation: bool = False
    auto_byte_scale: bool = False
    target_rate_bps: float | None = None
    classes: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()

    @cached_property
    def wire(self) -> Wire:
        return Wire.shaped(self.rate_bps, self.mtu, self.delay_s)

    @cached_property
    def paths(self) -> Paths:
        return Paths(self.graph)

    @property
    def hosts(self) -> int:
        return len(self.graph.hosts)


def check_class(what: str, name: str, setting: Setting) -> None:
    """Refuse a class that is neither in the table nor a known kind of traffic; '' is none in particular."""
    known = dict.fromkeys((*setting.classes, *setting.kinds))
    if name and name not in known:
        raise BadInput(f'{what}: there is no class "{name}"{nearest(name, known)}.')


def values(spec: Spec, known: dict[str, Callable[[str], object]],
           defaults: dict[str, object]) -> dict[str, object]:
    """All `known` parameters of a workload's spec, and iterations and warmup; those left out come from
    `defaults`, or are None."""
    what = f"workload {spec.name}"
    known = {**known, "iterations": count(f"{what}: iterations", 1, 100_000),
             "warmup": count(f"{what}: warmup", 0, 100_000)}
    return {**dict.fromkeys(known), "iterations": 1, **defaults, **take(spec, "workload", known)}


def count(what: str, least: int, most: int = 1_000_000) -> Callable[[str], int]:
    """A parser of whole numbers whose sentence starts with `what`."""
    parse = whole(least, most)

    def named(text: str) -> int:
        try:
            return parse(text)
        except BadInput as error:
            raise BadInput(f"{what}: {error}") from None

    return named


def size(what: str, setting: Setting) -> Callable[[str], int | None]:
    """A parser of sizes above zero, scaled; 'auto' gives None."""

    def parse(text: str) -> int | None:
        if text == "auto":
            return None
        size_bytes = parse_size(text, what)
        if size_bytes < 1:
            raise BadInput(f'{what} "{text}" must be more than zero.')
        return max(1, round(size_bytes / setting.byte_scale))

    return parse


def duration(what: str, setting: Setting) -> Callable[[str], float | None]:
    """A parser of times, dilated; 'auto' gives None."""

    def parse(text: str) -> float | None:
        return None if text == "auto" else parse_time(text, what) * setting.dilation

    return parse
