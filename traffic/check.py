"""What must hold before a schedule may run: a fault here would be a hang or a wrong result later."""
from __future__ import annotations

import math

from emulator.errors import BadInput
from traffic.dag import Dag, Ends, dag, message_ends
from traffic.schedule import Kind, Op, Schedule


def check_schedule(schedule: Schedule, hosts: int) -> None:
    """Raise BadInput, naming rank and operation, unless `schedule` can run to its end on `hosts` hosts.

    Refused: more ranks than hosts, peers and dependencies outside, sends to oneself, zero bytes,
    negative durations, places outside the buffer, a reduce without its receive, sends and receives
    that do not match in number or size, cycles (over dependencies, triggers and messages).
    """
    checked_dag(schedule, hosts)


def checked_dag(schedule: Schedule, hosts: int) -> Dag:
    """The graph of a schedule that passes `check_schedule`, which raises BadInput for any other."""
    ranks = len(schedule.ranks)
    if ranks > hosts:
        raise BadInput(f"{schedule.name}: {ranks} ranks do not fit on {hosts} hosts; use fewer ranks or "
                       "a larger fabric.")
    for rank, ops in enumerate(schedule.ranks):
        for index, op in enumerate(ops):
            fault = _fault(schedule, rank, op)
            if fault:
                raise BadInput(f"{schedule.name}: {describe(schedule, rank, index)} {fault}.")
    ends = message_ends(schedule)
    _check_messages(schedule, *ends)
    graph = dag(schedule, ends)
    done = graph.order()
    if len(done) < len(graph.ops):
        raise BadInput(f"{schedule.name}: operations wait for one another in a circle and can never run: "
                       f"{_circle(schedule, graph, done)}.")
    return graph


def describe(schedule: Schedule, rank: int, index: int) -> str:
    """'rank 3, operation 5 (send to rank 4, step 2 of all-gather)', for sentences."""
    op = schedule.ranks[rank][index]
    what = op.kind.value
    if op.kind in (Kind.SEND, Kind.RECV):
        what += f" {'to' if op.kind is Kind.SEND else 'from'} rank {op.peer}"
    if op.phase:
        what += f", step {op.step} of {op.phase}"
    return f"rank {rank}, operation {index} ({what})"


def _fault(schedule: Schedule, rank: int, op: Op) -> str:
    """What is wrong with this operation by itself; empty when nothing is."""
    length = len(schedule.ranks[rank])
    for dep in op.deps:
        if not 0 <= dep < length:
            return f"depends on operation {dep}, but the rank has {length} operations"
    for other, index in op.triggers:
        if not 0 <= other < len(schedule.ranks) or not 0 <= index < len(schedule.ranks[other]):
            return f"is triggered by operation {index} of rank {other}, which does not exist"
    if op.kind is Kind.COMPUTE:
        if not (math.isfinite(op.duration_s) and op.duration_s >= 0):
            return f"takes {op.duration_s} s; a duration must be zero or more"
        return ""
    if op.size_bytes < 1:
        return f"has {op.size_bytes} bytes; at least 1 is needed"
    if op.offset < -1 or op.offset >= 0 and op.offset + op.size_bytes > schedule.buffer_bytes:
        return (f"covers bytes {op.offset} to {op.offset + op.size_bytes}, outside the buffer of "
                f"{schedule.buffer_bytes} bytes")
    if op.kind is Kind.REDUCE:
        return _reduce_fault(schedule.ranks[rank], op)
    if op.peer == rank:
        return "has its own rank as the peer"
    if not 0 <= op.peer < len(schedule.ranks):
        return f"has rank {op.peer} as the peer, but there are {len(schedule.ranks)} ranks"
    return ""


def _reduce_fault(ops: tuple[Op, ...], op: Op) -> str:
    source = ops[op.deps[0]] if op.deps else None
    if source is None or source.kind is not Kind.RECV or source.offset != -1:
        return "must have the receive that feeds it (with offset -1) as its first dependency"
    if source.size_bytes != op.size_bytes:
        return f"adds {op.size_bytes} bytes, but its receive brings {source.size_bytes}"
    return ""


def _check_messages(schedule: Schedule, sends: Ends, recvs: Ends) -> None:
    for key in (*sends, *recvs):
        source, destination, tag, channel = key
        here, there = sends.get(key, []), recvs.get(key, [])
        if len(here) > len(there):
            raise BadInput(f"{schedule.name}: {describe(schedule, source, here[len(there)])} with tag {tag} "
                           f"on channel {channel} has no matching receive at rank {destination}.")
        if len(there) > len(here):
            raise BadInput(f"{schedule.name}: {describe(schedule, destination, there[len(here)])} with tag "
                           f"{tag} on channel {channel} has no matching send at rank {source}.")
        for send, recv in zip(here, there):
            sent = schedule.ranks[source][send].size_bytes
            expected = schedule.ranks[destination][recv].size_bytes
            if sent != expected:
                raise BadInput(f"{schedule.name}: {describe(schedule, source, send)} carries {sent} bytes, "
                               f"but {describe(schedule, destination, recv)} expects {expected}.")


def _circle(schedule: Schedule, graph: Dag, done: list[int]) -> str:
    """One circle of waiting, shortened to its first few members."""
    stuck = set(range(len(graph.ops))).difference(done)
    waits_for: dict[int, int] = {}
    for node in stuck:
        for follower in graph.followers[node]:
            waits_for[follower] = node  # every stuck node waits for some stuck node
    node, trail = min(stuck), []
    seen: dict[int, int] = {}
    while node not in seen:
        seen[node] = len(trail)
        trail.append(node)
        node = waits_for[node]
    circle = trail[seen[node]:]
    names = [describe(schedule, graph.rank[n], n - graph.first[graph.rank[n]]) for n in circle[:6]]
    more = f" … ({len(circle)} in all)" if len(circle) > 6 else ""
    return " waits for ".join([*names, names[0] if not more else "the next"]) + more
