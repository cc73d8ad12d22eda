"""The hash by which a bpf switch chooses a member of a group: the same function as in bpf/groups.h.

It lets a plan say which path a flow will take. murmur3's 64-bit finaliser (Appleby, public domain) mixes
the addresses, then ports and protocol, each together with the group's seed: switches with different
seeds choose independently of each other (no polarisation).
"""
from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from emulator.asic.layout import GROUP_SLOTS

_MASK64 = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15


@dataclass(frozen=True)
class Flow:
    """A 5-tuple; addresses as integers in host byte order, ports 0 for fragments and other protocols."""

    ipv4_src: int
    ipv4_dst: int
    ip_proto: int
    l4_src: int = 0
    l4_dst: int = 0


def mix(x: int) -> int:
    """murmur3's finaliser: a bijection of 64 bits in which each input bit flips half of the output."""
    x ^= x >> 33
    x = x * 0xFF51AFD7ED558CCD & _MASK64
    x ^= x >> 33
    x = x * 0xC4CEB9FE1A85EC53 & _MASK64
    return x ^ x >> 33


def group_seed(param: int, switch_seed: int) -> int:
    """The 64-bit seed of a group: from its own parameter, or the switch's where that is 0 (not set).

    Mixed, so that small numbers that differ in one bit make unrelated seeds.
    """
    return mix(((param or switch_seed) + _GOLDEN) & _MASK64)


def flow_hash(flow: Flow, seed: int) -> int:
    """64 bits of `flow` under a group's mixed seed."""
    addresses = mix(seed ^ (flow.ipv4_src << 32 | flow.ipv4_dst))
    return mix((addresses + seed & _MASK64) ^ (flow.ip_proto << 32 | flow.l4_src << 16 | flow.l4_dst))


@functools.cache
def weighted_slots(weights: tuple[int, ...]) -> tuple[int, ...]:
    """Which member each slot of a group's table names, at most GROUP_SLOTS of them.

    Shares are exact where the reduced weights sum to at most GROUP_SLOTS, else to the nearest slot
    (largest remainder), no member with a weight getting none. Neighbouring slots are as different as
    can be (smooth weighted round robin), so a round-robin spray is even over short times too.
    """
    divisor = math.gcd(*weights) or 1
    reduced = [weight // divisor for weight in weights]
    total = sum(reduced)
    if not total:
        return ()
    if total <= GROUP_SLOTS:
        shares = [weight * (GROUP_SLOTS // total) for weight in reduced]
    else:
        shares = _apportion(reduced, GROUP_SLOTS)
    slots, credit, count = [], [0] * len(shares), sum(shares)
    for _ in range(count):
        credit = [held + share for held, share in zip(credit, shares, strict=True)]
        richest = max(range(len(credit)), key=credit.__getitem__)
        credit[richest] -= count
        slots.append(richest)
    return tuple(slots)


def _apportion(weights: Sequence[int], seats: int) -> list[int]:
    """Whole shares of `seats` in proportion to `weights`, by largest remainder, at least 1 for a weight."""
    total = sum(weights)
    shares = [max(weight * seats // total, 1 if weight else 0) for weight in weights]
    remainders = sorted(range(len(weights)), key=lambda i: -(weights[i] * seats % total))
    for i in remainders[:max(0, seats - sum(shares))]:
        shares[i] += 1
    while sum(shares) > seats:  # the minimum of 1 gave away more than there was
        shares[max(range(len(shares)), key=shares.__getitem__)] -= 1
    return shares


def hashed_member(flow: Flow, seed: int, weights: tuple[int, ...]) -> int | None:
    """The member that `flow` takes in a hash group whose members are all alive; None if it has none."""
    slots = weighted_slots(weights)
    if not slots:
        return None
    return slots[(flow_hash(flow, seed) >> 32) * len(slots) >> 32]
