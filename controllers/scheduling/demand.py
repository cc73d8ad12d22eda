"""What flows would take if only the hosts' links held them back: Hedera's demand estimator.

Al-Fares et al., "Hedera: Dynamic Flow Scheduling for Data Center Networks", NSDI'10, figure 4. The rate
a flow has now says what the network left it; its natural demand is its max-min fair share of the links of
its two hosts, found by letting senders raise and receivers cap in turn until nothing changes.
"""
from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

ROUNDS_LAST = 10_000  # each round but the last fixes a flow, so this is never met below as many flows
SETTLED = 1e-9

Ends = tuple[str, str]
"""(source host, destination host) of a flow"""


@dataclass
class _Flow:
    source: str
    destination: str
    demand: float = 0.0
    converged: bool = False
    limited: bool = False  # `rl` of the paper: its receiver holds it back


def estimate(flows: Sequence[Ends]) -> list[float]:
    """The natural demand of each of `flows` as a fraction of a host link, in their order.

    Several flows of the same two hosts are entries of their own.
    """
    found = [_Flow(source, destination) for source, destination in flows]
    from_host: dict[str, list[_Flow]] = defaultdict(list)
    to_host: dict[str, list[_Flow]] = defaultdict(list)
    for flow in found:
        from_host[flow.source].append(flow)
        to_host[flow.destination].append(flow)
    for _ in range(ROUNDS_LAST):
        before = [flow.demand for flow in found]
        for sent in from_host.values():
            _raise_senders(sent)
        for received in to_host.values():
            _cap_receivers(received)
        if all(abs(old - flow.demand) <= SETTLED for old, flow in zip(before, found, strict=True)):
            break
    return [flow.demand for flow in found]


def _raise_senders(flows: Sequence[_Flow]) -> None:
    """EST-SRC: what the converged flows of a host leave is shared alike by its others."""
    free = [flow for flow in flows if not flow.converged]
    if not free:
        return
    share = (1.0 - sum(flow.demand for flow in flows if flow.converged)) / len(free)
    for flow in free:
        flow.demand = share


def _cap_receivers(flows: Sequence[_Flow]) -> None:
    """EST-DST: where more comes than a host's link takes, those that ask for more than their share are
    given that share, and have converged.
    """
    if sum(flow.demand for flow in flows) <= 1.0 + SETTLED:
        return
    for flow in flows:
        flow.limited = True
    share, small = 1.0 / len(flows), 0.0
    for _ in range(len(flows)):
        below = [flow for flow in flows if flow.limited and flow.demand < share - SETTLED]
        for flow in below:
            small += flow.demand
            flow.limited = False
        held = [flow for flow in flows if flow.limited]
        if held:
            share = (1.0 - small) / len(held)
        if not below:
            break
    for flow in flows:
        if flow.limited:
            flow.demand, flow.converged = share, True
