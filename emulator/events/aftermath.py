"""What followed each event: found out, repaired, lost, sent again, and when the rate was back. Pure.

Times in seconds after the event was applied. A loss belongs to the last event before it.
"""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy

from emulator.events.record import EventsRecord, Happening
from topologies.graph import interface

BACK = 0.95       # of the rate before
BEFORE_S, AFTER_S = 1.0, 0.5
CLOCK_S = 0.002   # news may carry a time this much before the call that caused it returned


@dataclass(frozen=True)
class Aftermath:
    """One event and what followed until the next one.

    at_s: since the start of the replay. lateness_s: by how much it was applied after it was due.
    detected_s: the controller learnt of it by a port event. local_s: the first packet meant for a dead
    port took another one. repaired_s: the last switch confirmed the controller's new tables, or a
    controller that returned had read all switches; changes: rules and groups that they were told for it.
    rate_before_bps, rate_back_s: payload received by all ranks, and when it was at BACK of that again,
    over AFTER_S; None where it never was, or where there was nothing to compare with.
    """

    event: str
    at_s: float
    lateness_s: float
    took_s: float
    detected_s: float | None
    local_s: float | None
    rerouted_packets: int | None
    repaired_s: float | None
    changes: int | None
    lost: Mapping[str, int]
    retransmitted: int
    rate_before_bps: float | None
    rate_back_s: float | None
    refused: str

    @property
    def lost_packets(self) -> int:
        return sum(self.lost.values())


def aftermath(record: EventsRecord, received: Sequence[tuple[float, int]], started_s: float, ended_s: float
              ) -> list[Aftermath]:
    """One for each event, in order. received: (time, bytes so far) as the engine has it."""
    after = [happening.applied_s for happening in record.happenings[1:]] + [float("inf")]
    tallies = [happening.tally for happening in record.happenings[1:]] + [record.end]
    found = []
    for each, next_s, tally in zip(record.happenings, after, tallies, strict=True):
        lost = {cause: packets - each.tally.lost.get(cause, 0) for cause, packets in tally.lost.items()}
        before_bps, back_s = _rate(each, received, started_s, ended_s)
        found.append(Aftermath(
            each.text, each.applied_s - started_s, each.applied_s - each.due_s, each.done_s - each.applied_s,
            _detected_s(record, each, next_s),
            None if each.avoided_s is None else each.avoided_s - each.applied_s,
            each.avoided_packets, _repaired_s(record, each, next_s), _changes(record, each, next_s),
            {cause: packets for cause, packets in lost.items() if packets},
            tally.retransmitted - each.tally.retransmitted, before_bps, back_s, each.refused))
    return found


def _detected_s(record: EventsRecord, each: Happening, next_s: float) -> float | None:
    """By the first news of one of its ports, or of a neighbour of a switch that went or came."""
    if each.kind not in ("link", "switch"):
        return None
    times = [float(news["time_s"]) for news in record.port_events if news["up"] == each.up
             and (each.kind == "switch" or interface(str(news["switch"]), int(news["port"])) in each.ports)]
    return _first(times, each, next_s)


def _repaired_s(record: EventsRecord, each: Happening, next_s: float) -> float | None:
    if each.kind == "controller" and each.up:
        adopted = [float(adoption["done_s"]) for adoption in record.adoptions]
        return _first(adopted, each, float("inf"))
    if each.kind not in ("link", "switch", "drain", "undrain"):
        return None
    begun = sorted((float(repair["began_s"]), float(repair["done_s"])) for repair in record.repairs)
    done = [done_s for began_s, done_s in begun if each.applied_s - CLOCK_S <= began_s < next_s]
    return done[0] - each.applied_s if done else None


def _changes(record: EventsRecord, each: Happening, next_s: float) -> int | None:
    """Of the repairs that `_repaired_s` speaks of."""
    if _repaired_s(record, each, next_s) is None:
        return None
    if each.kind == "controller":
        return next(int(adoption["changes"]) for adoption in record.adoptions
                    if float(adoption["done_s"]) >= each.applied_s)
    return sum(int(repair["changes"]) for repair in record.repairs
               if each.applied_s - CLOCK_S <= float(repair["began_s"]) < next_s)


def _first(times: Sequence[float], each: Happening, next_s: float) -> float | None:
    following = [time for time in times if each.applied_s - CLOCK_S <= time < next_s]
    return max(0.0, min(following) - each.applied_s) if following else None


def _rate(each: Happening, received: Sequence[tuple[float, int]], started_s: float, ended_s: float
          ) -> tuple[float | None, float | None]:
    """(bit/s before, seconds until it is back) of an event that takes something away."""
    takes = not each.up and each.kind != "undrain"
    since_s = max(started_s, each.applied_s - BEFORE_S)
    if not takes or len(received) < 3 or each.applied_s - since_s < BEFORE_S / 4:
        return None, None
    times, counts = (numpy.array(column, float) for column in zip(*received))

    def rate_bps(start_s: float, end_s: float) -> float:
        low, high = numpy.interp((start_s, end_s), times, counts)
        return float(8 * (high - low) / (end_s - start_s))

    before = rate_bps(since_s, each.applied_s)
    if before <= 0:
        return before, None
    starts = [each.applied_s, *(float(time) for time in times if time > each.applied_s)]
    for start_s in starts:
        if start_s + AFTER_S > ended_s:
            break
        if rate_bps(start_s, start_s + AFTER_S) >= BACK * before:
            return before, start_s - each.applied_s
    return before, None


def instants(found: Sequence[Aftermath], started_s: float) -> Iterator[tuple[float, str]]:
    """(time, sentence) of all that is worth a mark in the timeline."""
    for each in found:
        at = started_s + each.at_s
        yield at, f"event: {each.event}"
        marks = ((each.detected_s, "the controller learnt of"), (each.local_s, "local repair after"),
                 (each.repaired_s, "the controller repaired after"),
                 (each.rate_back_s, "the rate is back after"))
        for time, words in marks:
            if time is not None:
                yield at + time, f"{words} {each.event}"
