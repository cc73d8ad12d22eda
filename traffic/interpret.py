"""Executing a schedule on arrays in memory: what the data must look like after a real run."""
from __future__ import annotations

import random

import numpy

from emulator.errors import BadInput
from traffic.check import checked_dag
from traffic.schedule import Kind, Schedule


def interpret(schedule: Schedule, buffers: numpy.ndarray, order: random.Random | None = None,
              late: bool = False) -> numpy.ndarray:
    """Each rank's buffer after the schedule; `buffers` is uint8 of shape (ranks, buffer_bytes).

    A reduce adds bytes modulo 256 (numpy's uint8 addition), so that chunks may start at any byte.
    Operations run in the order in which they become ready, or, with `order`, in a random one; with
    `late` a message carries what its source holds when the receive runs, not the send. A correct
    schedule gives the same result for all of them. The argument is left as it was.
    """
    shape = (len(schedule.ranks), schedule.buffer_bytes)
    if buffers.dtype != numpy.uint8 or buffers.shape != shape:
        raise BadInput(f"{schedule.name}: the data must be uint8 of shape {shape}, not {buffers.dtype} of "
                       f"shape {buffers.shape}.")
    graph = checked_dag(schedule, len(schedule.ranks))
    source_of = {recv: send for send, recv in graph.match.items()}
    data = buffers.copy()
    payload: dict[int, numpy.ndarray] = {}  # by send node on the wire, by receive node once landed
    waits = graph.waits.copy()
    ready = [node for node, count in enumerate(waits) if not count]
    position = 0
    while position < len(ready):
        if order:
            pick = order.randrange(position, len(ready))
            ready[position], ready[pick] = ready[pick], ready[position]
        node = ready[position]
        position += 1
        op, own = graph.ops[node], data[graph.rank[node]]
        place = slice(op.offset, op.offset + op.size_bytes)
        if op.kind is Kind.SEND and op.offset >= 0 and not late:
            payload[node] = own[place].copy()
        elif op.kind is Kind.RECV:
            send = source_of[node]
            sent = graph.ops[send]
            if late and sent.offset >= 0:
                start = sent.offset
                payload[send] = data[graph.rank[send]][start:start + sent.size_bytes].copy()
            if op.offset >= 0:
                own[place] = payload.pop(send)
            elif send in payload:
                payload[node] = payload.pop(send)
        elif op.kind is Kind.REDUCE and op.offset >= 0:
            own[place] += payload.pop(graph.first[graph.rank[node]] + op.deps[0])
        for follower in graph.followers[node]:
            waits[follower] -= 1
            if not waits[follower]:
                ready.append(follower)
    return data
