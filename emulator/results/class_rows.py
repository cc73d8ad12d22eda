"""classes.csv: which class of which port sent how much when, and how deep its queue was."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from emulator.outcome import Outcome
from emulator.plan import Plan

CLASS_COLUMNS = ("time_s", "interval_s", "port", "class", "sent_bytes", "deepest_bytes")


def class_rows(plan: Plan, outcome: Outcome) -> Iterator[tuple[Any, ...]]:
    """A row for each interval (about 0.2 s) in which a class of a port sent or held anything.

    time_s counts from the start of the measured window; deepest_bytes is the most that the queue held when
    its depth changed within the interval.
    """
    record = outcome.packets
    if plan.classes is None or record is None or record.sent is None:
        return
    moments, names = record.sent.time_s, plan.classes.names
    sent = np.diff(record.sent.sent_bytes, axis=0)
    for column, queue in enumerate(record.queues):
        mine = record.queue == column
        if queue.traffic_class >= len(names) or not (sent[:, column].any() or mine.any()):
            continue
        deepest = np.zeros(len(moments) + 1)
        np.maximum.at(deepest, np.searchsorted(moments, record.time_s[mine]), record.depth_bytes[mine])
        for row in np.flatnonzero((sent[:, column] > 0) | (deepest[1:-1] > 0)):
            yield (float(moments[row] - outcome.started_s), float(moments[row + 1] - moments[row]),
                   queue.port, names[queue.traffic_class], int(sent[row, column]), int(deepest[row + 1]))
