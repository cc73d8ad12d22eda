"""htsim connection matrices (.cm): who sends how much to whom, when, and what starts when it is done.

The format is that of csg-htsim, sim/datacenter/connection_matrix.cpp and sim/trigger.cpp:

    Nodes 16
    Connections 3
    Triggers 1
    0->15 id 1 start 0 size 2000000 send_done_trigger 1
    2->15 id 2 trigger 1 size 2000000
    3->15 start 1000000 size 2000000          (picoseconds, bytes)
    trigger id 1 oneshot

Stricter than the original where that would abort, hang or guess: see `_check_triggers`.
"""
from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field
from functools import cached_property

from emulator.errors import BadInput, nearest
from traffic.importers.text import Word, read_lines, shown, slip, whole_number, words_of

HEADER = ("Nodes", "Connections", "Triggers", "Failures")
FLOW_KEYS = ("start", "size", "id", "trigger", "send_done_trigger", "recv_done_trigger", "prio")
TRIGGER_KINDS = ("oneshot", "multishot", "barrier")
SWITCH_TYPES = ("TOR", "AGG", "CORE")


@dataclass(frozen=True)
class Flow:
    """One connection. It starts at `start_ps`, or when `trigger` fires; ids are from 1, None if not given."""

    line: int
    source: int
    destination: int
    size_bytes: int
    start_ps: float | None
    id: int | None = None
    trigger: int | None = None
    send_done_trigger: int | None = None
    recv_done_trigger: int | None = None
    priority: int | None = None


@dataclass(frozen=True)
class Trigger:
    """'oneshot' starts all its flows when it is fired; 'multishot' one more each time; 'barrier'
    all of them when it has been fired `count` times."""

    line: int
    id: int
    kind: str
    count: int | None = None


@dataclass(frozen=True)
class Failure:
    """A link that the file wants degraded; `switch_type` TOR, AGG or CORE."""

    line: int
    switch_type: str
    switch_id: int
    link_id: int


@dataclass(frozen=True)
class ConnectionMatrix:
    """A whole file, as it stands there."""

    path: str
    nodes: int
    flows: tuple[Flow, ...]
    triggers: dict[int, Trigger] = field(default_factory=dict)
    failures: tuple[Failure, ...] = ()

    @cached_property
    def fired_by(self) -> dict[int, list[tuple[Flow, str]]]:
        """trigger id -> (flow, 'send' or 'recv') for each time that it is fired, in file order."""
        fired: dict[int, list[tuple[Flow, str]]] = defaultdict(list)
        for flow in self.flows:
            for trigger, end in ((flow.send_done_trigger, "send"), (flow.recv_done_trigger, "recv")):
                if trigger is not None:
                    fired[trigger].append((flow, end))
        return dict(fired)

    @cached_property
    def starts(self) -> dict[int, list[Flow]]:
        """trigger id -> the flows that it starts, in file order."""
        started: dict[int, list[Flow]] = defaultdict(list)
        for flow in self.flows:
            if flow.trigger is not None:
                started[flow.trigger].append(flow)
        return dict(started)


def read_cm(path: str) -> ConnectionMatrix:
    """Parse and check a .cm file; every slip is a BadInput with file and line."""
    header: dict[str, tuple[int, int]] = {}  # name -> (value, line)
    flows: list[Flow] = []
    triggers: dict[int, Trigger] = {}
    failures: list[Failure] = []
    for number, text in enumerate(read_lines(path, "an htsim connection matrix"), 1):
        words = words_of(text)
        if not words or words[0].startswith("#"):
            continue
        if words[0] in HEADER:
            if words[0] in header:
                raise slip(path, number, f"{words[0]} is given again (first on line {header[words[0]][1]}).",
                           words[0])
            if len(words) != 2:
                raise slip(path, number, f'"{shown(text.strip())}" should be {words[0]} and one '
                                         'number.', words[0])
            header[words[0]] = whole_number(path, number, words[0], words[1], 0), number
        elif "->" in words[0]:
            flows.append(_flow(path, number, words))
        elif words[0] == "trigger":
            trigger = _trigger(path, number, words)
            if trigger.id in triggers:
                raise slip(path, number, f"trigger {trigger.id} is defined again (first on line "
                                         f"{triggers[trigger.id].line}).")
            triggers[trigger.id] = trigger
        elif words[0] == "failure":
            failures.append(_failure(path, number, words))
        else:
            hint = nearest(words[0], (*HEADER, "trigger", "failure", "0->1"))
            sentence = f'"{shown(words[0])}" starts no line of a connection matrix{hint}.'
            raise slip(path, number, sentence, words[0])
    for name in ("Nodes", "Connections"):
        if name not in header:
            raise BadInput(f'{path} has no line "{name} N".')
    counts = {"Connections": len(flows), "Triggers": len(triggers), "Failures": len(failures)}
    for name, count in counts.items():
        declared, line = header.get(name, (0, 1))
        if declared != count:
            raise slip(path, line, f"the header declares {declared} {name.lower()}, but the file has "
                                   f"{count}.")
    if not flows:
        raise BadInput(f"{path} has no connections: nothing would be sent.")
    matrix = ConnectionMatrix(path, header["Nodes"][0], tuple(flows), triggers, tuple(failures))
    _check_flows(matrix)
    _check_triggers(matrix)
    return matrix


def _pairs(path: str, line: int, words: list[Word], known: tuple[str, ...],
           flags: tuple[str, ...] = ()) -> dict[str, str]:
    """'key value key value flag' as a dictionary."""
    found: dict[str, str] = {}
    rest = iter(words)
    for key in rest:
        if key not in known and key not in flags:
            raise slip(path, line, f'unknown word "{shown(key)}"{nearest(key, (*known, *flags))}.', key)
        if key in found:
            raise slip(path, line, f"{key} is given twice.", key)
        value = key if key in flags else next(rest, None)
        if value is None:
            raise slip(path, line, f"{key} has no value.", key)
        found[key] = value
    return found


def _flow(path: str, line: int, words: list[Word]) -> Flow:
    ends = re.fullmatch(r"([0-9]{1,9})->([0-9]{1,9})", words[0])
    if not ends:
        raise slip(path, line, f'"{shown(words[0])}" is not of the form SOURCE->DESTINATION, such as '
                               '0->15.', words[0])
    given = _pairs(path, line, words[1:], FLOW_KEYS)
    number = {key: whole_number(path, line, key, text, 0 if key in ("size", "prio") else 1)
              for key, text in given.items() if key != "start"}
    start_ps = None
    if "start" in given:
        if not re.fullmatch(r"[0-9]{1,18}(\.[0-9]*)?", given["start"]):
            raise slip(path, line, f'start "{shown(given["start"])}" is not a time in picoseconds.',
                       given["start"])
        start_ps = float(given["start"])
    if "size" not in given:
        raise slip(path, line, "the connection has no size.")
    if number["size"] == 0:
        raise slip(path, line, "size 0 means an endless flow to htsim; give it a number of bytes.")
    if start_ps is None and "trigger" not in given:
        raise slip(path, line, "the connection has neither a start nor a trigger.")
    if start_ps is not None and "trigger" in given:
        raise slip(path, line, "the connection has both a start and a trigger.")
    if "trigger" in given and "id" not in given:
        raise slip(path, line, "a connection that a trigger starts needs an id.")
    return Flow(line, int(ends[1]), int(ends[2]), number["size"], start_ps, number.get("id"),
                number.get("trigger"), number.get("send_done_trigger"), number.get("recv_done_trigger"),
                number.get("prio"))


def _trigger(path: str, line: int, words: list[Word]) -> Trigger:
    given = _pairs(path, line, words[1:], ("id", "count"), TRIGGER_KINDS)
    kinds = [kind for kind in TRIGGER_KINDS if kind in given]
    if "id" not in given:
        raise slip(path, line, "the trigger has no id.")
    if len(kinds) != 1:
        raise slip(path, line, f"a trigger is one of {', '.join(TRIGGER_KINDS)}; here are {len(kinds)} of "
                               "them.")
    if ("count" in given) != (kinds[0] == "barrier"):
        raise slip(path, line, "a barrier, and nothing else, needs a count.")
    count = whole_number(path, line, "count", given["count"], 1) if "count" in given else None
    return Trigger(line, whole_number(path, line, "id", given["id"], 1), kinds[0], count)


def _failure(path: str, line: int, words: list[Word]) -> Failure:
    known = ("switch_type", "switch_id", "link_id")
    given = _pairs(path, line, words[1:], known)
    for key in known:
        if key not in given:
            raise slip(path, line, f"the failure has no {key}.")
    if given["switch_type"] not in SWITCH_TYPES:
        raise slip(path, line, f'switch_type "{shown(given["switch_type"])}" is none of '
                               f'{", ".join(SWITCH_TYPES)}.',
                   given["switch_type"])
    return Failure(line, given["switch_type"], whole_number(path, line, "switch_id", given["switch_id"], 0),
                   whole_number(path, line, "link_id", given["link_id"], 0))


def _check_flows(matrix: ConnectionMatrix) -> None:
    line_of: dict[int, int] = {}
    for flow in matrix.flows:
        for node in (flow.source, flow.destination):
            if node >= matrix.nodes:
                raise slip(matrix.path, flow.line, f"node {node} is not among the {matrix.nodes} nodes "
                                                   f"(0 to {matrix.nodes - 1}).")
        if flow.source == flow.destination:
            raise slip(matrix.path, flow.line, f"node {flow.source} sends to itself.")
        if flow.id in line_of:
            raise slip(matrix.path, flow.line, f"flow id {flow.id} was used on line {line_of[flow.id]}.")
        if flow.id is not None:
            line_of[flow.id] = flow.line
        for trigger in (flow.trigger, flow.send_done_trigger, flow.recv_done_trigger):
            if trigger is not None and trigger not in matrix.triggers:
                raise slip(matrix.path, flow.line, f"trigger {trigger} is not defined in the file.")


def _check_triggers(matrix: ConnectionMatrix) -> None:
    """Every flow that waits will be started, and no trigger fires more often than htsim allows."""
    for trigger in matrix.triggers.values():
        fired, waiting = len(matrix.fired_by.get(trigger.id, [])), len(matrix.starts.get(trigger.id, []))
        fault = ""
        if trigger.kind == "oneshot" and fired > 1:
            fault = f"is fired {fired} times, but a oneshot can fire once; use a barrier or multishot"
        elif trigger.kind == "barrier" and fired != trigger.count:
            fault = f"waits for {trigger.count} flows, but {fired} fire it"
        elif waiting > (fired if trigger.kind == "multishot" else waiting if fired else 0):
            fault = f"starts {waiting} flows, but is fired {fired} times, so that some would never start"
        if fault:
            raise slip(matrix.path, trigger.line, f"trigger {trigger.id} {fault}.")
