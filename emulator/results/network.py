"""What links, queues and transport did: these blocks of the summary, and loss and delay."""
from __future__ import annotations

from dataclasses import asdict
from typing import Any

from emulator.outcome import Outcome
from emulator.plan import Plan
from emulator.results.linkbytes import AGAINST, by_tier, link_bytes
from emulator.results.transport import transport
from emulator.telemetry.summary import exact_queues, links_block, loss_block, queues_block
from traffic.jobs_ideal import total_link_bytes
from traffic.load import tier_bytes
from traffic.paths import Paths


def measured(plan: Plan, outcome: Outcome) -> dict[str, Any]:
    """The blocks links, queues, loss, transport and delay."""
    if outcome.recording is None or outcome.between is None:
        return dict.fromkeys(("links", "queues", "loss", "transport", "delay"))
    series = [part.between(outcome.started_s, outcome.ended_s) for part in outcome.recording.series]
    links = links_block(series, plan.graph, plan.wire.frame_bytes)
    queues = queues_block(series, plan.wire.frame_bytes)
    if outcome.packets:
        queues = exact_queues(queues, outcome.packets)
    counters = outcome.between.queues
    for row in queues["by_port"]:
        row["dropped_packets"] = counters[row["port"]].dropped_packets
    carried = tier_bytes(total_link_bytes(plan.workload, Paths(plan.graph), plan.only), plan.graph)
    against = by_tier(link_bytes(plan, outcome))
    tiers = {link.index: link.tier for link in plan.graph.links}
    for name, tier in links["by_tier"].items():
        ports = [port for port in outcome.ports if tiers[port.link] == name]
        tier["links"] = len(ports) // 2
        tier["sent_bytes"] = sum(counters[port.name].sent_bytes for port in ports)
        tier["payload_bytes_expected"] = carried.get(name, 0.0)
        tier.update(against.get(name, dict.fromkeys(AGAINST)))
    links["connections_by_top_switch"] = connections_by_top_switch(plan, outcome)
    return {"links": links, "queues": queues,
            "loss": with_bit_errors(loss_block(outcome.between, outcome.ports), plan, outcome),
            "transport": transport(outcome), "delay": outcome.delay and asdict(outcome.delay)}


def with_bit_errors(loss: dict[str, Any], plan: Plan, outcome: Outcome) -> dict[str, Any]:
    """The loss block with what bit errors took (`--loss`), in all and by link; drops of queues stay apart."""
    by_link: dict[int, int] = {}
    for port in outcome.ports:
        if outcome.bit_errors.get(port.name):
            by_link[port.link] = by_link.get(port.link, 0) + outcome.bit_errors[port.name]
    return {**loss, **_two_counts(outcome), "bit_error_rate": plan.bit_error_rate,
            "bit_error_packets": sum(by_link.values()),
            "bit_errors_by_link": [{"link": link, "packets": by_link[link]} for link in sorted(by_link)]}


def _two_counts(outcome: Outcome) -> dict[str, Any]:
    """Drops at switch ports as the switch counts them itself and as the kernel's qdiscs do; null where the
    switch does not count. count_difference is over all ports, without signs that could cancel.
    """
    if outcome.packets is None:
        return dict.fromkeys(("dropped_by_switch_count", "dropped_by_kernel_count", "count_difference"))
    own: dict[str, int] = {}
    for queue in outcome.packets.queues:
        own[queue.port] = own.get(queue.port, 0) + queue.dropped_packets
    kernel = {port: outcome.between.queues[port].dropped_packets for port in own}
    return {"dropped_by_switch_count": sum(own.values()), "dropped_by_kernel_count": sum(kernel.values()),
            "count_difference": sum(abs(own[port] - kernel[port]) for port in own)}


def connections_by_top_switch(plan: Plan, outcome: Outcome) -> dict[str, int]:
    """How many connections cross each switch of the highest tier."""
    top = max((switch.tier for switch in plan.graph.switches), default=0)
    if not all(outcome.paths.values()):  # packets of a flow take several paths
        return {}
    names = [switch.name for switch in plan.graph.switches if switch.tier == top]
    crossed = [outcome.nodes(path) for path in outcome.paths.values()]
    return {name: sum(name in nodes for nodes in crossed) for name in names}
