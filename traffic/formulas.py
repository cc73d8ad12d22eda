"""Closed forms for the ideal time of each collective, and the factors of nccl-tests.

alpha_s is the base one-way delay, beta_s the seconds per byte of goodput, `size_bytes` is S as
nccl-tests counts it (for all-gather, reduce-scatter and all-to-all the total, not a rank's share).
Sources: Thakur et al., IJHPCA 2005; Patarasuk and Yuan, JPDC 2009; Sanders, Speck and Träff,
ParCo 2009 (double binary tree); nccl-tests, doc/PERFORMANCE.md.
"""
from __future__ import annotations

import math

from emulator.errors import BadInput, nearest

BUSBW = {"all-reduce": lambda n: 2 * (n - 1) / n,
         "all-gather": lambda n: (n - 1) / n,
         "reduce-scatter": lambda n: (n - 1) / n,
         "all-to-all": lambda n: (n - 1) / n,
         "broadcast": lambda n: 1.0,
         "reduce": lambda n: 1.0,
         "send-recv": lambda n: 1.0}


def algbw_bps(size_bytes: float, time_s: float) -> float:
    """S / t, in bits per second."""
    return 8 * size_bytes / time_s


def busbw_bps(collective: str, ranks: int, size_bytes: float, time_s: float) -> float:
    """algbw times what the busiest rank must move per byte of S: comparable with a link's rate."""
    if collective not in BUSBW:
        raise BadInput(f'There is no bus bandwidth of "{collective}"{nearest(collective, BUSBW)}.')
    return algbw_bps(size_bytes, time_s) * BUSBW[collective](ranks)


def ring_all_reduce_s(ranks: int, size_bytes: float, alpha_s: float, beta_s: float) -> float:
    return 2 * ring_half_s(ranks, size_bytes, alpha_s, beta_s)


def ring_half_s(ranks: int, size_bytes: float, alpha_s: float, beta_s: float) -> float:
    """Ring reduce-scatter or all-gather; `size_bytes` is the total."""
    return (ranks - 1) * alpha_s + (ranks - 1) / ranks * size_bytes * beta_s


def halving_doubling_s(ranks: int, size_bytes: float, alpha_s: float, beta_s: float) -> float:
    """All-reduce over a power of two of ranks."""
    return 2 * math.log2(ranks) * alpha_s + 2 * (ranks - 1) / ranks * size_bytes * beta_s


def double_binary_tree_s(ranks: int, size_bytes: float, alpha_s: float, beta_s: float) -> float:
    """The limit of many slices: trees of height h = ceil(log2(ranks))."""
    return 2 * math.ceil(math.log2(ranks)) * alpha_s + 2 * size_bytes * beta_s


def hierarchical_s(rack_ranks: int, racks: int, size_bytes: float, alpha_s: float, beta_s: float,
                   shared_uplink: bool = False) -> float:
    """All-reduce in three parts: within racks of G ranks, between R racks (each of the G ranks with
    its like), within racks. `shared_uplink`: the G rings of a rack share one uplink.
    """
    within = (rack_ranks - 1) * alpha_s + (rack_ranks - 1) / rack_ranks * size_bytes * beta_s
    between = (racks - 1) / racks * size_bytes / rack_ranks * beta_s * (rack_ranks if shared_uplink else 1)
    return 2 * within + 2 * (racks - 1) * alpha_s + 2 * between


def all_to_all_s(ranks: int, size_bytes: float, alpha_s: float, beta_s: float) -> float:
    """Pairwise exchange; `size_bytes` is what each rank holds, its own part included."""
    return ring_half_s(ranks, size_bytes, alpha_s, beta_s)


def parameter_server_s(workers: int, servers: int, size_bytes: float, alpha_s: float, beta_s: float) -> float:
    """Push and pull of `size_bytes` between each worker and `servers` that hold equal shares of it."""
    return 2 * (alpha_s + size_bytes * max(1.0, workers / servers) * beta_s)


def pipeline_1f1b_s(stages: int, microbatches: int, forward_s: float, backward_s: float,
                    exposed_transfers_s: float = 0.0) -> float:
    return (microbatches + stages - 1) * (forward_s + backward_s) + exposed_transfers_s


def pipeline_bubble(stages: int, microbatches: int) -> float:
    """The share of a 1F1B iteration in which a stage waits because the pipeline fills or drains."""
    return (stages - 1) / (microbatches + stages - 1)
