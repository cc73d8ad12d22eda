"""Several sizes of one collective in a run, one after the other, as nccl-tests steps through them."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from emulator.errors import BadInput
from emulator.specs import Spec
from emulator.units import parse_size
from traffic.jobs import together
from traffic.schedule import Job, Workload

MOST_SIZES = 32
RANGE, LIST = "..", "+"


def is_sweep(spec: Spec) -> bool:
    """Whether bytes= lists sizes ('64kB+1MB') or gives a range that doubles ('64kB..4MB')."""
    return any(mark in spec.params.get("bytes", "") for mark in (RANGE, LIST))


def sweep(spec: Spec, resolve: Callable[[Spec], Workload]) -> Workload:
    """A job for each size, on the same hosts, with iterations of its own; BadInput for a bad size."""
    jobs: list[Job] = []
    for number, size in enumerate(sizes(spec.params["bytes"], f"workload {spec.name}: bytes")):
        workload = resolve(replace(spec, params={**spec.params, "bytes": size}))
        first = sum(job.ranks for job in jobs)
        if number:  # they say the same of every size
            workload = replace(workload, notes=())
        jobs.append(Job(size, workload, first, 0.0, number - 1 if number else None))
    return together(jobs)


def sizes(text: str, what: str) -> list[str]:
    """['64kB', '1MB'] of '64kB+1MB'; ['64kB', '128kB', …] of '64kB..4MB', while they are no larger."""
    listed = [part.strip() for part in text.split(LIST)]
    found: list[str] = []
    for part in listed:
        low, dots, high = part.partition(RANGE)
        found.append(low)
        if dots:
            size, most = parse_size(low, what), parse_size(high, what)
            if not 0 < size <= most:
                raise BadInput(f'{what} "{part}" must go from a size above zero to one that is no smaller.')
            while (size := 2 * size) <= most and len(found) <= MOST_SIZES:
                found.append(_text(size))
    if len(found) > MOST_SIZES:
        raise BadInput(f'{what} "{text}" is more than {MOST_SIZES} sizes.')
    twice = next((size for number, size in enumerate(found) if size in found[:number]), None)
    if twice is not None:
        raise BadInput(f'{what} "{text}" has {twice} twice.')
    return found


def _text(size_bytes: int) -> str:
    """A size as it may be typed again."""
    for unit, scale in (("MB", 10**6), ("MiB", 2**20), ("kB", 10**3), ("KiB", 2**10)):
        if size_bytes % scale == 0:
            return f"{size_bytes // scale}{unit}"
    return f"{size_bytes}B"
