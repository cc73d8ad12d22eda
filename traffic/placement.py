"""Which host carries which rank."""
from __future__ import annotations

import random

from emulator.errors import BadInput, nearest

PLACEMENTS = ("linear", "random")


def place(kind: str, ranks: int, hosts: int, seed: int) -> tuple[int, ...]:
    """The host index of each rank, one rank a host.

    'linear': rank r on host r, so neighbours in rank are neighbours in the rack. 'random': a
    random choice of hosts in random order, the same for the same seed.
    """
    if ranks > hosts:
        raise BadInput(f"{ranks} ranks do not fit on {hosts} hosts; use fewer ranks or a larger fabric.")
    if kind == "linear":
        return tuple(range(ranks))
    if kind == "random":
        return tuple(random.Random(f"placement {seed}").sample(range(hosts), ranks))
    raise BadInput(f'Unknown placement "{kind}"{nearest(kind, PLACEMENTS)}.')
