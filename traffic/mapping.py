"""More ranks than hosts: several ranks a host, or a sentence that offers the choice.

Ranks that share a host become one rank of the schedule; what they send one another is there at once
and crosses no link, as within a server. Each pair of original ranks keeps connections of its own.
"""
from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from emulator.errors import BadInput, nearest
from traffic.schedule import Kind, Op, Schedule

MAPS = ("pack", "first")


def check_map(what: str, how: str) -> str:
    """The name of a mapping, or BadInput."""
    if how not in MAPS:
        raise BadInput(f'{what}: map="{how}" is no mapping{nearest(how, MAPS)}.')
    return how


def too_many(path: str, ranks: int, hosts: int) -> BadInput:
    """The sentence for a trace that does not fit, with its ways out."""
    each = -(-ranks // hosts)
    return BadInput(f"{path} has {ranks} ranks, but the fabric has {hosts} hosts; use a larger fabric, or "
                    "add "
                    f",map=pack ({each} ranks a host, what these send one another costs nothing) or "
                    f",map=first (the first ranks that fit).")


def pack(schedule: Schedule, host_of: Sequence[int]) -> tuple[Schedule, tuple[int, ...]]:
    """(schedule with one rank for each host in use, placement); rank r runs on host host_of[r]."""
    placement = tuple(sorted(set(host_of)))
    merged = {host: number for number, host in enumerate(placement)}
    target = [merged[host] for host in host_of]
    base, length = [], [0] * len(placement)
    for rank, ops in enumerate(schedule.ranks):
        base.append(length[target[rank]])
        length[target[rank]] += len(ops)
    local = _local_sends(schedule, target)
    channels: dict[tuple[int, int], dict[tuple[int, int, int], int]] = defaultdict(dict)

    def channel(source: int, destination: int, number: int) -> int:
        taken = channels[target[source], target[destination]]
        return taken.setdefault((source, destination, number), len(taken))

    ranks: list[list[Op]] = [[] for _ in placement]
    for rank, ops in enumerate(schedule.ranks):
        for index, op in enumerate(ops):
            deps = [base[rank] + dep for dep in op.deps]
            deps += [base[r] + i for r, i in op.triggers if target[r] == target[rank]]
            triggers = tuple((target[r], base[r] + i) for r, i in op.triggers if target[r] != target[rank])
            if op.peer >= 0 and target[op.peer] == target[rank]:
                if op.kind is Kind.RECV:
                    deps.append(base[op.peer] + local[rank, index])
                op = Op(Kind.COMPUTE, phase=op.phase, step=op.step)
            elif op.kind is Kind.REDUCE and (rank, op.deps[0]) in local:
                op = Op(Kind.COMPUTE, phase=op.phase, step=op.step)
            elif op.peer >= 0:
                ends = (rank, op.peer) if op.kind is Kind.SEND else (op.peer, rank)
                op = replace(op, peer=target[op.peer], channel=channel(*ends, op.channel), offset=-1)
            elif op.kind is Kind.REDUCE:
                op = replace(op, offset=-1)
            ranks[target[rank]].append(replace(op, deps=tuple(deps), triggers=triggers))
    packed = Schedule(schedule.name, tuple(map(tuple, ranks)))
    if not packed.bytes_sent:
        raise BadInput(f"{schedule.name}: all ranks that talk to one another share a host; nothing would be "
                       "sent.")
    return packed, placement


def _local_sends(schedule: Schedule, target: Sequence[int]) -> dict[tuple[int, int], int]:
    """(rank, index of a receive) -> index of its send at the peer, where both are on one host."""
    sends: dict[tuple[int, int, int, int], list[int]] = defaultdict(list)
    for rank, ops in enumerate(schedule.ranks):
        for index, op in enumerate(ops):
            if op.kind is Kind.SEND and target[op.peer] == target[rank]:
                sends[rank, op.peer, op.tag, op.channel].append(index)
    taken: dict[tuple[int, int, int, int], int] = defaultdict(int)
    found: dict[tuple[int, int], int] = {}
    for rank, ops in enumerate(schedule.ranks):
        for index, op in enumerate(ops):
            if op.kind is Kind.RECV and target[op.peer] == target[rank]:
                key = (op.peer, rank, op.tag, op.channel)
                found[rank, index] = sends[key][taken[key]]
                taken[key] += 1
    return found


def hosts_of(nodes: Sequence[int], total: int, hosts: int) -> list[int]:
    """The host of each node where `total` nodes fill `hosts` hosts in order, equally many on each."""
    each = -(-total // hosts)
    return [node // each for node in nodes]


def without(schedule: Schedule, ranks: set[int]) -> Schedule:
    """The schedule whose messages from and to these ranks take no time and no bytes."""
    sends: dict[tuple[int, int, int, int], list[int]] = defaultdict(list)
    for rank, ops in enumerate(schedule.ranks):
        for index, op in enumerate(ops):
            if op.kind is Kind.SEND:
                sends[rank, op.peer, op.tag, op.channel].append(index)
    taken: dict[tuple[int, int, int, int], int] = defaultdict(int)
    made = []
    for rank, ops in enumerate(schedule.ranks):
        kept: list[Op] = []
        for op in ops:
            unfed = op.kind is Kind.REDUCE and {rank, ops[op.deps[0]].peer} & ranks
            if not unfed and (op.peer < 0 or not {rank, op.peer} & ranks):
                kept.append(op)
                continue
            triggers = op.triggers
            if op.kind is Kind.RECV:
                key = (op.peer, rank, op.tag, op.channel)
                triggers = (*triggers, (op.peer, sends[key][taken[key]]))
                taken[key] += 1
            kept.append(Op(Kind.COMPUTE, op.deps, phase=op.phase, step=op.step, triggers=triggers))
        made.append(tuple(kept))
    return Schedule(schedule.name, tuple(made))
