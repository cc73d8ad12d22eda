"""What links and queues did: the blocks links, queues and loss of the summary."""
from __future__ import annotations

from typing import Any

from emulator.outcome import Outcome
from emulator.plan import Plan
from emulator.telemetry.summary import exact_queues, links_block, loss_block, queues_block


def measured(plan: Plan, outcome: Outcome) -> dict[str, Any]:
    """The blocks links, queues and loss."""
    if outcome.recording is None or outcome.between is None:
        return {"links": None, "queues": None, "loss": None}
    series = [part.between(outcome.started_s, outcome.ended_s) for part in outcome.recording.series]
    links = links_block(series, plan.graph, plan.wire.frame_bytes)
    queues = queues_block(series, plan.wire.frame_bytes)
    if outcome.packets:
        queues = exact_queues(queues, outcome.packets)
    counters = outcome.between.queues
    for row in queues["by_port"]:
        row["dropped_packets"] = counters[row["port"]].dropped_packets
    tiers = {link.index: link.tier for link in plan.graph.links}
    for name, tier in links["by_tier"].items():
        ports = [port for port in outcome.ports if tiers[port.link] == name]
        tier["links"] = len(ports) // 2
        tier["sent_bytes"] = sum(counters[port.name].sent_bytes for port in ports)
        tier["payload_bytes_expected"] = plan.tier_bytes.get(name, 0.0) * plan.iterations
    links["connections_by_top_switch"] = connections_by_top_switch(plan, outcome)
    return {"links": links, "queues": queues, "loss": loss_block(outcome.between, outcome.ports)}


def connections_by_top_switch(plan: Plan, outcome: Outcome) -> dict[str, int]:
    """How many connections cross each switch of the highest tier."""
    top = max((switch.tier for switch in plan.graph.switches), default=0)
    if not all(outcome.paths.values()):  # packets of a flow take several paths
        return {}
    names = [switch.name for switch in plan.graph.switches if switch.tier == top]
    return {name: sum(name in path for path in outcome.paths.values()) for name in names}
