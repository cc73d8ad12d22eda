"""A group of the pipeline as the record that bpf/groups.h reads."""
from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from emulator.asic.hashing import group_seed, weighted_slots
from emulator.asic.layout import (BUCKET, FAILOVER, FLOWLET, GROUP, HASH, LEAST_QUEUE, LEAST_QUEUE_FLOWLET,
                                  MAX_BUCKETS, MAX_CLASSES, SPRAY_RANDOM, SPRAY_ROUND_ROBIN)
from emulator.asic.pipeline import MODES, PipelineGroup
from emulator.asic.tuplespace import known_port, known_queue
from emulator.errors import nearest

_MAX_GAP_S = 1e6
EQUAL = 0.02  # weights are whole numbers, so that rates agree with them to about a part in their sum


def mode_number(group: PipelineGroup) -> int:
    """The number of the group's way of choosing; ValueError for one that the switch does not have."""
    if group.fast_failover:
        return FAILOVER
    if group.mode in ("hash", "dp_hash"):  # both hash the 5-tuple, weights by a table of slots
        return HASH
    if group.mode == "flowlet":
        if not group.flowlet_gap_s > 0:
            raise ValueError(f"group {group.id}: flowlet needs a gap above 0 s; without one use spray.")
        return FLOWLET
    if group.mode == "spray":
        return SPRAY_RANDOM if group.random_spray else SPRAY_ROUND_ROBIN
    if group.mode == "least-queue":
        return LEAST_QUEUE_FLOWLET if group.flowlet_gap_s > 0 else LEAST_QUEUE
    raise ValueError(f'group {group.id}: a bpf switch has no mode "{group.mode}"'
                     f"{nearest(group.mode, MODES)}.")


def unit_s_per_bit(members: Sequence[tuple[float, int]]) -> float:
    """The time that a path of weight 1 needs for a bit; members: (rate of the port in b/s, weight > 0).

    Weights say in what proportion the paths can pass on; no path passes on more than its own port does. Taken
    as fast as that allows, one path at least is as fast as its port, so its real queue bounds the virtual ones
    of the others. 0 where each path is as fast as its port: real queues tell it all.
    """
    slowest = max((weight / rate_bps for rate_bps, weight in members), default=0.0)
    if all(weight / rate_bps > (1 - EQUAL) * slowest for rate_bps, weight in members):
        return 0.0
    return slowest


def record(group: PipelineGroup, switch_seed: int, counters: Sequence[int],
           ifindexes: Mapping[int, int], rates_bps: Mapping[int, float],
           classes: int = MAX_CLASSES) -> np.ndarray:
    """The GROUP record; counters: the place of each bucket's counts; ifindexes, rates_bps: by port number;
    classes: how many queues a port has.

    Raises ValueError for what the switch cannot do.
    """
    if len(group.buckets) > MAX_BUCKETS:
        raise ValueError(f"group {group.id} has {len(group.buckets)} buckets; a bpf switch has room for "
                         f"{MAX_BUCKETS}.")
    weights = tuple(bucket.weight for bucket in group.buckets)
    if any(weight < 0 or weight > 0xFFFF for weight in weights):
        raise ValueError(f"group {group.id}: a weight of {weights} is outside 0 to 65535.")
    if not 0 <= group.flowlet_gap_s <= _MAX_GAP_S:
        raise ValueError(f"group {group.id}: a gap of {group.flowlet_gap_s} s is outside "
                         f"0 to {_MAX_GAP_S:g}.")
    made = np.zeros((), GROUP)
    made["mode"] = mode_number(group)
    made["seed"] = group_seed(group.seed, switch_seed)
    made["gap_ns"] = round(group.flowlet_gap_s * 1e9)
    made["buckets"] = len(group.buckets)
    slots = weighted_slots(weights)
    made["slots"] = len(slots)
    made["slot"][:len(slots)] = slots
    for i, (bucket, counter) in enumerate(zip(group.buckets, counters, strict=True)):
        port = known_port(ifindexes, bucket.port)
        watch = port if bucket.watch_port is None else known_port(ifindexes, bucket.watch_port)
        queue = known_queue(bucket.queue, classes)
        made["bucket"][i] = np.array((port, watch, bucket.weight, counter, bucket.eth_dst is not None, queue,
                                      tuple(bucket.eth_dst or bytes(6)), 0), BUCKET)
    if made["mode"] in (LEAST_QUEUE, LEAST_QUEUE_FLOWLET):
        made["unit_ns_per_byte_q16"] = round(8e9 * 2**16 * unit_s_per_bit(
            [(rates_bps[bucket.port], bucket.weight) for bucket in group.buckets if bucket.weight]))
    return made
