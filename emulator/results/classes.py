"""What each class of service got: the block `classes` of summary.json.

Queues are those of the class at the busiest switch port, which is where classes compete. `share` is the
class's part of what that port sent while all of its classes had something to send (`contended_s`), and
`fair_share` what their weights give: strict classes, and those that ask for less than their part, have what
they have, and the others share the rest by weight. With a single queue all classes share its figures.
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from emulator.classes import ClassTable, ServiceClass
from emulator.outcome import Outcome
from emulator.plan import Plan
from emulator.results.flows import Flow, statistics
from emulator.telemetry.packets import PacketRecord, QueueRecord

LEAST_PART = 0.002
"""A class with less of a port's bytes only passes by: acknowledgements of another direction's data."""
BACKLOGGED = 0.9


def classes(plan: Plan, outcome: Outcome, listed: Sequence[Flow]) -> dict[str, Any] | None:
    """The block; None where there is neither a table nor a message of any class."""
    rows, record = _rows(plan.classes, listed), outcome.packets
    if not rows:
        return None
    port = _busiest(record) if record else None
    served = _served(record, port, plan.classes) if record and port and plan.classes else None
    return {"table": plan.classes is not None, "port": port,
            "contended_s": served.seconds if served else None,
            "by_class": [_row(number, row, plan.classes, port, record, served,
                              [flow for flow in listed if _number(plan.classes, rows, flow) == number])
                         for number, row in enumerate(rows)]}


def _rows(table: ClassTable | None, listed: Sequence[Flow]) -> tuple[ServiceClass, ...]:
    if table:
        return table.classes
    names = sorted({flow.traffic_class for flow in listed if flow.traffic_class})
    if names and any(not flow.traffic_class for flow in listed):
        names.append("")
    return tuple(ServiceClass(name, 0) for name in names)


def _number(table: ClassTable | None, rows: Sequence[ServiceClass], flow: Flow) -> int:
    return table.number(flow.traffic_class) if table else [row.name for row in rows].index(flow.traffic_class)


def _row(number: int, row: ServiceClass, table: ClassTable | None, port: str | None,
         record: PacketRecord | None, served: Served | None, flows: Sequence[Flow]) -> dict[str, Any]:
    measured = [flow for flow in flows if flow.measured]
    sent = sum(flow.bytes for flow in measured)
    first = min((flow.start_s for flow in measured), default=0.0)
    busy_s = max((flow.start_s + flow.fct_s for flow in measured), default=0.0) - first
    of_class = [q for q in record.queues if not table or q.traffic_class == number] if record else []
    figures = statistics(flows)
    return {
        "name": row.name or "(none)", "dscp": row.dscp, "service": row.service if table else "one queue",
        "weight": row.weight if table else None, "strict": row.strict and table is not None,
        "messages": len(measured), "payload_bytes": sent,
        "throughput_bps": 8 * sent / busy_s if busy_s else None,
        "share": served.share[number] if served else None,
        "fair_share": served.fair_share[number] if served else None,
        **_queue(next((q for q in of_class if q.port == port), None)),
        "dropped_packets": sum(q.dropped_packets for q in of_class) if table else None,
        "marked_packets": sum(q.marked_packets for q in of_class) if table else None,
        "lossless": row.lossless, **_pauses(record, number),
        **{key: figures[key] for key in ("fct_p50_s", "fct_p99_s", "fct_max_s", "slowdown_p50",
                                         "slowdown_p99")}}


def _queue(queue: QueueRecord | None) -> dict[str, Any]:
    """Depth and waiting time at the busiest port; null where nothing of the class passed there."""
    names = ("delay_p50_s", "delay_p99_s", "delay_max_s")
    if queue is None or not queue.sent_packets:
        return dict.fromkeys(("queue_p50_bytes", "queue_p99_bytes", "queue_max_bytes", "queue_limit_bytes",
                              *names))
    return {"queue_p50_bytes": queue.p50_bytes, "queue_p99_bytes": queue.p99_bytes,
            "queue_max_bytes": queue.max_bytes, "queue_limit_bytes": queue.limit_bytes,
            **{name: None if math.isnan(value := getattr(queue, name)) else value for name in names}}


def _pauses(record: PacketRecord | None, number: int) -> dict[str, Any]:
    """How often ports were held back for this class, and for how long in all; null where none can be."""
    if record is None or record.pauses is None:
        return {"pauses": None, "paused_s": None, "longest_pause_s": None, "pauses_by_port": None}
    mine = [each for each in record.pauses.ports if each.traffic_class == number]
    return {"pauses": sum(each.pauses for each in mine), "paused_s": sum(each.paused_s for each in mine),
            "longest_pause_s": max((each.longest_s for each in mine), default=0.0),
            "pauses_by_port": [{"port": each.port, "pauses": each.pauses, "paused_s": each.paused_s,
                                "longest_s": each.longest_s} for each in mine]}


def _busiest(record: PacketRecord) -> str | None:
    """The switch port that sent most."""
    sent: dict[str, int] = {}
    for queue in record.queues:
        sent[queue.port] = sent.get(queue.port, 0) + queue.sent_bytes
    return max(sent, key=lambda port: sent[port]) if any(sent.values()) else None


@dataclass(frozen=True)
class Served:
    """Of each class at a port over `seconds`: its part of the bytes, and the part that is fair; None for a
    class that is not there."""

    seconds: float
    share: tuple[float | None, ...]
    fair_share: tuple[float | None, ...]


def _served(record: PacketRecord, port: str, table: ClassTable) -> Served | None:
    """While all classes of the port sent; None where there was no such time."""
    if record.sent is None or len(record.sent.time_s) < 4:
        return None
    columns = [number for number, q in enumerate(record.queues) if q.port == port][:len(table.classes)]
    sent, times = record.sent.sent_bytes[:, columns], record.sent.time_s
    present = sent[-1] >= LEAST_PART * sent[-1].sum()
    steps = np.diff(sent, axis=0) > 0
    moving = steps[:, present]
    if not moving.any(axis=0).all():
        return None
    first = int(max(moving[:, each].argmax() for each in range(moving.shape[1]))) + 1
    last = int(min(len(moving) - moving[::-1, each].argmax() for each in range(moving.shape[1]))) - 1
    if last <= first:
        return None
    got = (sent[last] - sent[first]).astype(float)
    if not got.sum():
        return None
    share = got / got.sum()
    busy = [record.busy_share(column, times[first], times[last]) >= BACKLOGGED for column in columns]
    fair = fair_shares(table, share, [bool(p and b) for p, b in zip(present, busy)])
    return Served(float(times[last] - times[first]),
                  tuple(float(s) if p else None for s, p in zip(share, present)),
                  tuple(f if p else None for f, p in zip(fair, present)))


def fair_shares(table: ClassTable, share: Sequence[float], backlogged: Sequence[bool]) -> list[float]:
    """What each class should have of a port: those that were not backlogged and the strict ones have their
    share, the others divide what is left by weight."""
    weight = [each.weight if each.weight and busy else 0 for each, busy in zip(table.classes, backlogged)]
    left = 1.0 - sum(s for s, w in zip(share, weight) if not w)
    return [left * w / sum(weight) if w else float(s) for s, w in zip(share, weight)]

