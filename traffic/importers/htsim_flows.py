"""An htsim connection matrix as a schedule: node n is host n, each flow a connection of its own."""
from __future__ import annotations

from dataclasses import replace

from topologies.graph import Graph
from traffic.importers.flows import place_nodes
from traffic.importers.htsim import ConnectionMatrix, Failure, Flow
from traffic.program import Program
from traffic.schedule import PACE, Workload

PHASE = "flow"


def cm_workload(matrix: ConnectionMatrix, hosts: int, dilation: float = 1.0, byte_scale: float = 1.0,
                how: str | None = None, graph: Graph | None = None) -> Workload:
    """One message a flow; starts are multiplied by `dilation`, sizes divided by `byte_scale`.

    `how` is 'pack' or 'first' for more nodes than hosts; `graph` lets the notes name failed links. A
    priority names the traffic class `prioN`.

    A recv_done_trigger fires when the flow's last byte has arrived, a send_done_trigger when it was
    acknowledged, which is when a send of a schedule ends. The k-th flow that waits for a multishot starts
    when the k-th one (in file order) that fires it is done; htsim takes them in order of completion, which a
    schedule cannot know.
    """
    nodes = sorted({node for flow in matrix.flows for node in (flow.source, flow.destination)})
    rank = {node: r for r, node in enumerate(nodes)}
    program = Program(len(nodes))
    step = _steps(matrix)
    ends: dict[tuple[int, str], tuple[int, int]] = {}  # (line of the flow, its end) -> (rank, operation)
    connections: dict[tuple[int, int], int] = {}
    for flow in matrix.flows:
        a, b = rank[flow.source], rank[flow.destination]
        channel = connections.get((a, b), 0)
        connections[a, b] = channel + 1
        start_s = (flow.start_ps or 0.0) * 1e-12 * dilation
        deps = (program.compute(a, start_s, (), PACE, 0),) if start_s else ()
        size_bytes = max(1, round(flow.size_bytes / byte_scale))
        program.traffic_class = "" if flow.priority is None else f"prio{flow.priority}"
        send, recv = program.message(a, b, size_bytes, deps=deps, channel=channel, phase=PHASE,
                                     step=step[flow.line])
        ends[flow.line, "send"], ends[flow.line, "recv"] = (a, send), (b, recv)
    for flow in matrix.flows:
        if flow.trigger is not None:
            r, index = ends[flow.line, "send"]
            waits_for = tuple(dict.fromkeys(ends[other.line, end] for other, end in _fires(matrix, flow)))
            program.ops[r][index] = replace(program.ops[r][index], triggers=waits_for)
    lines = {node: flow.line for flow in reversed(matrix.flows) for node in (flow.source, flow.destination)}
    schedule, placement, more = place_nodes(matrix.path, program.schedule("htsim"), nodes, lines,
                                            matrix.nodes, hosts, how)
    return Workload(matrix.path, schedule, placement, notes=(*_notes(matrix, graph), *more))


def _fires(matrix: ConnectionMatrix, flow: Flow) -> list[tuple[Flow, str]]:
    """The (flow, end) pairs that must be done before `flow` starts."""
    fired = matrix.fired_by[flow.trigger]
    if matrix.triggers[flow.trigger].kind != "multishot":
        return fired
    return [fired[matrix.starts[flow.trigger].index(flow)]]


def _steps(matrix: ConnectionMatrix) -> dict[int, int]:
    """Line of each flow -> how many flows come one after the other before it.

    Flows in a circle of triggers, which the check of the schedule refuses, keep step 0.
    """
    step = {flow.line: 0 for flow in matrix.flows}
    waits = {flow.line: len(_fires(matrix, flow)) if flow.trigger is not None else 0 for flow in matrix.flows}
    followers: dict[int, list[Flow]] = {}
    for flow in matrix.flows:
        if flow.trigger is not None:
            for other, _ in _fires(matrix, flow):
                followers.setdefault(other.line, []).append(flow)
    ready = [line for line, count in waits.items() if not count]
    for line in ready:  # grows while it is walked
        for follower in followers.get(line, ()):
            step[follower.line] = max(step[follower.line], step[line] + 1)
            waits[follower.line] -= 1
            if not waits[follower.line]:
                ready.append(follower.line)
    return step


def failed_links(matrix: ConnectionMatrix, graph: Graph) -> list[tuple[Failure, str | None]]:
    """Each failure with the link 'SWITCH-SWITCH' of this fabric that it means; None where there is none.

    A TOR's or AGG's link is one of its uplinks, a CORE's one of its downlinks, counted by port.
    """
    tier = {"TOR": 0, "AGG": 1, "CORE": 2}
    found = []
    for failure in matrix.failures:
        level = tier[failure.switch_type]
        switches = [switch for switch in graph.switches if switch.tier == level]
        name = None
        if failure.switch_id < len(switches):
            here = switches[failure.switch_id].name
            other = level + 1 if level < 2 else 1
            ends = [node for _, (node, _) in sorted(graph.neighbours[here].items())
                    if node in graph.switch and graph.switch[node].tier == other]
            if failure.link_id < len(ends):
                name = f"{here}-{ends[failure.link_id]}"
        found.append((failure, name))
    return found


def _notes(matrix: ConnectionMatrix, graph: Graph | None) -> tuple[str, ...]:
    notes = []
    if any(flow.priority is not None for flow in matrix.flows):
        notes.append(f"{matrix.path}: prio names the traffic class of a flow (prio5, …), which has an effect "
                     "where "
                     "that class is given one; in htsim it orders the pulls of receivers, which TCP does not "
                     "have.")
    shared = [t.id for t in matrix.triggers.values()
              if t.kind == "multishot" and len(matrix.fired_by.get(t.id, ())) > 1]
    if shared:
        notes.append(f"{matrix.path}: {len(shared)} multishot triggers (the first is {shared[0]}) have more "
                     "than one flow that fires them; flows start in file order, not in order of completion.")
    if matrix.failures:
        named = [f"{failure.switch_type} {failure.switch_id} link {failure.link_id}"
                 + ("" if name is None else f" ({name})")
                 for failure, name in (failed_links(matrix, graph) if graph else
                                       [(failure, None) for failure in matrix.failures])]
        more = f" and {len(named) - 8} more" if len(named) > 8 else ""
        notes.append(f"{matrix.path}: a workload degrades no links; these that the file degrades stay whole: "
                     f"{', '.join(named[:8])}{more}.")
    return tuple(notes)
