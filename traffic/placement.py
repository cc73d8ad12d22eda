"""Which host carries which rank.

The rack of a host is the switch it hangs on. Traffic between neighbouring ranks stays in the rack
under `rack` and leaves it at every step under `spread`; `random` is what a scheduler that does not
look at the topology gives.
"""
from __future__ import annotations

import itertools
import os
import random
from collections.abc import Callable, Sequence

from emulator.errors import BadInput, nearest
from topologies.graph import Host
from traffic.importers.text import read_lines, slip

PLACEMENTS = ("linear", "random", "rack", "rack:G", "spread", "file:PATH")
FILE = "file:"


def place(kind: str, ranks: int, hosts: Sequence[Host], seed: int) -> tuple[int, ...]:
    """The place in `hosts` of each rank's host, one rank a host; a BadInput sentence where that cannot be.

    'linear': rank r on host r of the fabric's order. 'random': a random choice of hosts in random
    order, the same for the same seed. 'rack': consecutive ranks fill a rack, racks in order of their
    first host; 'rack:G': as well, and each group of G consecutive ranks stays in one rack (a larger
    group begins with an empty rack), which may leave hosts out. 'spread': ranks deal themselves out
    over the racks in turn. 'file:PATH': line r of the file names the host of rank r.
    """
    if ranks > len(hosts):
        raise BadInput(f"{ranks} ranks do not fit on {len(hosts)} hosts; use fewer ranks or a larger fabric.")
    name, _, argument = kind.partition(":")
    if kind == "linear":
        return tuple(range(ranks))
    if kind == "random":
        return tuple(random.Random(f"placement {seed}").sample(range(len(hosts)), ranks))
    if kind == "spread":
        turns = itertools.zip_longest(*racks_of(hosts))
        return tuple(host for turn in turns for host in turn if host is not None)[:ranks]
    if name == "rack":
        return _by_rack(kind, _group(kind, argument), ranks, racks_of(hosts))
    if kind.startswith(FILE) and argument:
        return _listed(argument, ranks, hosts)
    raise BadInput(f'Unknown placement "{kind}"{nearest(kind, PLACEMENTS)}.')


def racks_of(hosts: Sequence[Host]) -> list[list[int]]:
    """Places in `hosts` by rack, racks in order of their first host."""
    racks: dict[str, list[int]] = {}
    for number, host in enumerate(hosts):
        racks.setdefault(host.rack, []).append(number)
    return list(racks.values())


def with_placement_file(spec: str, where: Callable[[str], str]) -> str:
    """A SPEC with where(PATH) for the PATH of placement=file:PATH, where that is there; else as it is."""
    head, found, tail = spec.partition(f"placement={FILE}")
    path, comma, rest = tail.partition(",")
    if not path or not os.path.exists(where(path)):
        return spec
    return f"{head}{found}{where(path)}{comma}{rest}"


def _group(kind: str, text: str) -> int:
    if kind == "rack":
        return 1
    if not text.isdecimal() or not int(text):
        raise BadInput(f'placement "{kind}": write rack, or rack:G with the number of ranks in a group, such '
                       "as rack:4.")
    return int(text)


def _by_rack(kind: str, group: int, ranks: int, racks: list[list[int]]) -> tuple[int, ...]:
    """Whole groups rack by rack; a group larger than every rack begins with an untouched one."""
    placed: list[int] = []
    largest, begun = max(map(len, racks)), False
    for number in range(0, ranks, group):
        wanted = min(group, ranks - number)
        while racks and len(racks[0]) < wanted and (wanted <= largest or begun):
            racks, begun = racks[1:], False
        if sum(map(len, racks)) < wanted:
            raise BadInput(f'placement "{kind}": only {len(placed)} of {ranks} ranks fit where no group of '
                           f"{group} is cut by a rack; use fewer ranks or a smaller group.")
        for _ in range(wanted):
            placed.append(racks[0][0])
            racks, begun = ([racks[0][1:], *racks[1:]], True) if racks[0][1:] else (racks[1:], False)
    return tuple(placed)


def _listed(path: str, ranks: int, hosts: Sequence[Host]) -> tuple[int, ...]:
    """The file's hosts in order; blank lines and what follows a # are skipped."""
    number = {host.name: place for place, host in enumerate(hosts)}
    placed: list[int] = []
    for line, text in enumerate(read_lines(path, "a placement file"), 1):
        name = text.partition("#")[0].strip()
        if not name:
            continue
        if name not in number:
            raise slip(path, line, f'there is no host "{name}" for a rank{nearest(name, number)}.')
        if number[name] in placed:
            raise slip(path, line, f"host {name} already carries rank {placed.index(number[name])}.")
        placed.append(number[name])
    if len(placed) < ranks:
        raise BadInput(f"{path}: {len(placed)} hosts for {ranks} ranks; name a host for each, one a line.")
    return tuple(placed[:ranks])
