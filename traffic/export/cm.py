"""A schedule as an htsim connection matrix (csg-htsim, sim/datacenter/connection_matrix.cpp).

Every message becomes a flow, every 'must finish first' a trigger: a oneshot for one message, a barrier
for several. A flow fires one trigger at each of its two ends and waits for one, so not every schedule
can be said; see `cm_text`.
"""
from __future__ import annotations

import re
from collections import defaultdict

from emulator.errors import BadInput
from traffic.dag import dag
from traffic.export.flow_deps import End, Waits, waits_of_sends
from traffic.schedule import Schedule

PICOSECONDS = 1e12
LARGEST_BYTES = 2**31 - 1
"""htsim reads sizes with stoi()."""


def cm_text(schedule: Schedule, placement: tuple[int, ...], hosts: int,
            end_s: tuple[tuple[float, ...], ...]) -> tuple[str, tuple[str, ...]]:
    """(file, notes) of a checked schedule; rank r is node placement[r] of `hosts` nodes.

    Where a message would have to fire more than two triggers, those that wait for it wait for one
    message only: the one that ends last when nothing is in the way (`end_s`, as `traffic.simulate`
    gives it). The notes count these, and the computing between messages (and the
    start of a job after another), which the format cannot say.
    """
    graph = dag(schedule)
    waits = waits_of_sends(graph)
    if not waits:
        raise BadInput(f"{schedule.name} sends nothing; a connection matrix would be empty.")
    crowded = _crowded(waits)
    ended = [time_s for rank in end_s for time_s in rank]
    cut, sets = 0, {}
    for node, wait in waits.items():
        ends = wait.ends
        if any(send in crowded for send, _ in ends):
            cut += len(ends) > 1
            # of two equal times the later node, so that the choice is the same on every run
            ends = frozenset({max(ends, key=lambda end: (ended[_node(end, graph.match)], end))})
        sets[node] = ends
    number = {node: place for place, node in enumerate(sorted(waits), 1)}
    waited = dict.fromkeys(sets[node] for node in number if sets[node])
    triggers = {ends: place for place, ends in enumerate(waited, 1)}
    fires, moved = _slots(triggers)
    lines = [f"Nodes {hosts}", f"Connections {len(number)}"]
    lines += [f"Triggers {len(triggers)}"] if triggers else []
    delayed_s, late = 0.0, 0
    for node, flow in number.items():
        op, wait = graph.ops[node], waits[node]
        if op.size_bytes > LARGEST_BYTES:
            raise BadInput(f"{schedule.name}: a message of {op.size_bytes} bytes is more than the "
                           f"{LARGEST_BYTES} "
                           "that htsim reads; use smaller sizes or more slices.")
        words = [f"{placement[graph.rank[node]]}->{placement[op.peer]} id {flow}"]
        if sets[node]:
            words.append(f"trigger {triggers[sets[node]]}")
            delayed_s, late = delayed_s + wait.after_s, late + (wait.after_s > 0)
        else:
            words.append(f"start {round(wait.after_s * PICOSECONDS)}")
        words.append(f"size {op.size_bytes}")
        words += [f"{end}_done_trigger {trigger}" for end, trigger in sorted(fires.get(node, {}).items())]
        priority = re.fullmatch(r"prio([0-9]+)", op.traffic_class)
        words += [f"prio {priority[1]}"] if priority else []
        lines.append(" ".join(words))
    lines += [f"trigger id {place} oneshot" if len(ends) == 1 else f"trigger id {place} barrier count "
                                                                   f"{len(ends)}"
              for ends, place in triggers.items()]
    notes = []
    if cut:
        notes.append(f"{cut} of {len(number)} flows wait for one message where the schedule has several, the "
                     "one that "
                     "ends last on an empty fabric: a flow of a connection matrix fires one trigger at each "
                     "end.")
    if moved:
        notes.append(f"{moved} triggers are fired by the other end of their flow, earlier or later by the way "
                     "of an acknowledgement: a flow of a connection matrix fires one at each end.")
    if late:
        notes.append(f"the computing and waiting before {late} flows ({delayed_s:.6g} s in all) is left out: "
                     "a flow that a trigger starts has no delay.")
    return "\n".join(lines) + "\n", tuple(notes)


def _crowded(waits: dict[int, Waits]) -> set[int]:
    """Messages that more than two different sets wait for: a flow has two ends to fire a trigger at."""
    sets: dict[int, set[frozenset[End]]] = defaultdict(set)
    for ends in {wait.ends for wait in waits.values()}:
        for send, _ in ends:
            sets[send].add(ends)
    return {send for send, its in sets.items() if len(its) > 2}


def _slots(triggers: dict[frozenset[End], int]) -> tuple[dict[int, dict[str, int]], int]:
    """(message -> 'send' and 'recv' -> the trigger that this end fires, how many are not at their own end).

    An end that is taken gives way to the other one: the two differ by the way of an acknowledgement.
    """
    fires: dict[int, dict[str, int]] = defaultdict(dict)
    moved = 0
    for ends, place in triggers.items():
        for send, end in sorted(ends):
            if end in fires[send]:
                end, moved = "send" if end == "recv" else "recv", moved + 1
            fires[send][end] = place
    return fires, moved


def _node(end: End, match: dict[int, int]) -> int:
    send, which = end
    return send if which == "send" else match[send]
