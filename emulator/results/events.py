"""The block `events`: every event of the run and what followed it."""
from __future__ import annotations

from dataclasses import asdict
from typing import Any

from emulator.events.aftermath import Aftermath, aftermath
from emulator.outcome import Outcome


def followed(outcome: Outcome) -> list[Aftermath]:
    """What followed each event; empty where there were none."""
    if outcome.events is None or outcome.engine is None:
        return []
    return aftermath(outcome.events, outcome.engine.received, outcome.started_s, outcome.ended_s)


def events(outcome: Outcome) -> dict[str, Any] | None:
    """The block; None where nothing was to happen. lost_share: of the packets that hosts sent."""
    record = outcome.events
    if record is None:
        return None
    found = followed(outcome)
    lost = sum(each.lost_packets for each in found)
    sent = sum(outcome.between.links[port.name].tx_packets for port in outcome.ports if port.netns) \
        if outcome.between else 0
    return {"happened": [{**asdict(each), "lost_packets": each.lost_packets} for each in found],
            "missed": list(record.missed), "lost_packets": lost, "lost_share": lost / sent if sent else None,
            "counted": bool(record.end.lost)}
