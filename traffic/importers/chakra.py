"""MLCommons Chakra execution traces (`NAME.RANK.et`, one file a rank) as traces.

(mlcommons/chakra, schema/protobuf/et_def.proto, versions 0.0.4 and before.) A file is a metadata
message and then one message a node, each behind its length. Node ids may be anything and 0 is left
out; sizes are int64 or uint64. comm_size is what a rank puts in (astra-sim's system/collective: an
all-gather of n ranks ends with n times as much). Which ranks a group has is in a JSON file beside:
{"0": [0, 1, 2, 3]}.
"""
from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from emulator.errors import BadInput
from traffic.importers.protobuf import FIXED64, LENGTH, VARINT, fields, messages, signed, varint
from traffic.importers.rankfiles import read_groups, read_raw
from traffic.importers.text import shown
from traffic.trace import MOST_STEPS, Does, Step, Trace, check_rank_count

METADATA, MEM_LOAD, MEM_STORE, COMP, SEND, RECV, COLL = range(1, 8)
TYPES = {METADATA: "metadata", MEM_LOAD: "memory load", MEM_STORE: "memory store", COMP: "compute",
         SEND: "send", RECV: "receive", COLL: "collective"}
COLLECTIVES = {0: "allreduce", 1: "reduce", 2: "allgather", 5: "broadcast", 6: "alltoall", 7: "reducescatter",
               8: "reducescatter", 9: "barrier"}
NOT_IMPORTED = {3: "gather", 4: "scatter"}
ID, NAME, TYPE, CTRL_DEPS, DATA_DEPS, DURATION, ATTR = 1, 2, 3, 4, 5, 7, 10
# the fields of an attribute that hold one whole number: int32, int64, uint32, uint64, bool
NUMBERS = {7: True, 9: True, 11: False, 13: False, 27: False}
STRING = 29
INVOLVED = "involved_dim"
LARGEST = 10**18


@dataclass
class _Node:
    """One node as it stands in the file, `at` being its first byte."""

    at: int
    id: int = 0
    name: str = ""
    type: int = 0
    duration_us: int = 0
    deps: list[int] = field(default_factory=list)
    numbers: dict[str, int] = field(default_factory=dict)
    strings: dict[str, str] = field(default_factory=dict)


def read_chakra(path: str, groups_path: str | None = None) -> Trace:
    """The trace of a folder of .et files; every slip is a BadInput with file and byte or node.

    `groups_path` names the JSON file of the groups, in the folder or elsewhere; where it is left out,
    the one .json in the folder is taken, and without one every collective runs over all ranks.
    """
    files = _rank_files(path)
    groups = _groups(path, groups_path, len(files))
    made, left_out, total = [], {MEM_LOAD: 0, MEM_STORE: 0, COMP: 0}, 0
    dimensions = 0
    for rank, file in enumerate(files):
        nodes = _nodes(file)
        total += len(nodes)
        if total > MOST_STEPS:
            raise BadInput(f"{path}: more than {MOST_STEPS} nodes.")
        made.append(_steps(file, rank, len(files), nodes, groups, left_out))
        dimensions += sum(INVOLVED in node.strings and not node.strings.get("pg_name") for node in nodes)
    notes = _notes(path, len(files), groups, left_out)
    if dimensions:
        notes = (*notes, f"{path}: {dimensions} collectives name dimensions of a topology ({INVOLVED}); that "
                         "is left out, they run over all ranks.")
    return Trace(path, tuple(made), notes, tuple(files), "node")


def _rank_files(path: str) -> list[str]:
    folder = Path(path)
    if not folder.is_dir():
        raise BadInput(f"{path} is not a folder; Chakra traces are a folder of NAME.RANK.et files.")
    found: dict[int, str] = {}
    stem = None
    for file in sorted(folder.iterdir()):
        match = re.fullmatch(r"(.*)\.([0-9]{1,9})\.et", file.name)
        if not match:
            continue
        stem = stem or match[1]
        if match[1] != stem or int(match[2]) in found:
            raise BadInput(f"{path} holds traces of more than one run ({stem} and {shown(match[1])}); keep "
                           "one.")
        found[int(match[2])] = str(file)
    if not found:
        raise BadInput(f"{path} has no NAME.RANK.et files.")
    check_rank_count(path, None, max(found) + 1)
    missing = next((rank for rank in range(max(found) + 1) if rank not in found), None)
    if missing is not None:
        raise BadInput(f"{path} has traces up to rank {max(found)}, but none of rank {missing}.")
    return [found[rank] for rank in range(len(found))]


def _groups(path: str, given: str | None, ranks: int) -> Mapping[str, tuple[int, ...]]:
    beside = sorted(str(file) for file in Path(path).glob("*.json"))
    if given is None and len(beside) > 1:
        raise BadInput(f"{path} holds {len(beside)} JSON files; say which names the groups with groups=FILE.")
    if given is None and not beside:
        return {}
    if given is not None and (Path(path) / given).is_file():
        given = str(Path(path) / given)
    return read_groups(given or beside[0], ranks)


def _nodes(file: str) -> list[_Node]:
    raw = memoryview(read_raw(file, "a Chakra trace"))
    nodes = []
    try:
        for number, (start, end) in enumerate(messages(raw)):
            if not number:  # the metadata, of which nothing is needed
                for _ in fields(raw, start, end):
                    pass
                continue
            nodes.append(_node(raw, start, end))
            if len(nodes) > MOST_STEPS:
                raise BadInput(f"{file}: more than {MOST_STEPS} nodes.")
    except ValueError as error:
        raise BadInput(f"{file}: {error}, so that it is no Chakra trace.") from None
    return nodes


def _node(raw: memoryview, start: int, end: int) -> _Node:
    node = _Node(start)
    for number, wire, value, stop in fields(raw, start, end):
        if number in (ID, TYPE, DURATION) and wire != VARINT or number in (NAME, ATTR) and wire != LENGTH:
            raise ValueError(f"byte {start}: field {number} of the node has wire type {wire}")
        if number == ID:
            node.id = value
        elif number == NAME:
            node.name = _text(raw, value, stop)
        elif number == TYPE:
            node.type = value
        elif number == DURATION:
            node.duration_us = value
        elif number in (CTRL_DEPS, DATA_DEPS):
            node.deps += [value] if wire == VARINT else _packed(raw, value, stop)
        elif number == ATTR:
            _attribute(raw, value, stop, node)
    return node


def _text(raw: memoryview, start: int, end: int) -> str:
    try:
        return bytes(raw[start:end]).decode()
    except UnicodeDecodeError:
        raise ValueError(f"byte {start}: a text is not UTF-8") from None


def _packed(raw: memoryview, at: int, end: int) -> list[int]:
    found = []
    while at < end:
        value, at = varint(raw, at, end)
        found.append(value)
    return found


def _attribute(raw: memoryview, start: int, end: int, node: _Node) -> None:
    name, number, text = "", None, None
    for key, wire, value, stop in fields(raw, start, end):
        if key == 1 and wire == LENGTH:
            name = _text(raw, value, stop)
        elif key in NUMBERS and wire == VARINT:
            number = signed(value) if NUMBERS[key] else value
        elif key == 21 and wire == FIXED64:  # fixed64
            number = int.from_bytes(raw[value:stop], "little")
        elif key == STRING and wire == LENGTH:
            text = _text(raw, value, stop)
    if name in node.numbers or name in node.strings:
        raise ValueError(f"byte {start}: the attribute {shown(name)} comes twice")
    if number is not None:
        node.numbers[name] = number
    else:
        node.strings[name] = text or ""


def _steps(file: str, rank: int, ranks: int, nodes: list[_Node], groups: Mapping[str, tuple[int, ...]],
           left_out: dict[int, int]) -> tuple[Step, ...]:
    index: dict[int, int] = {}
    for position, node in enumerate(nodes):
        if node.id in index:
            raise BadInput(f"{file}: node {node.id} comes twice.")
        index[node.id] = position
    steps = []
    for node in nodes:
        missing = next((dep for dep in node.deps if dep not in index), None)
        if missing is not None:
            raise BadInput(f"{file}: node {node.id} waits for node {missing}, which is not in the file.")
        deps = tuple(dict.fromkeys(index[dep] for dep in node.deps))
        if node.type in (SEND, RECV):
            steps.append(_message(file, ranks, node, deps))
        elif node.type == COLL:
            steps.append(_collective(file, rank, ranks, node, deps, groups))
        elif node.type in TYPES:
            if node.duration_us > 10**15:
                raise BadInput(f"{file}: node {node.id} takes {node.duration_us} us, which is years.")
            if node.type in left_out:
                left_out[node.type] += not node.duration_us
            steps.append(Step(Does.COMPUTE, node.id, deps, duration_s=node.duration_us * 1e-6,
                              phase=TYPES[node.type]))
        else:
            raise BadInput(f"{file}: node {node.id} has the type {node.type}, which is none of "
                           f"{', '.join(f'{key} ({name})' for key, name in TYPES.items())}.")
    return tuple(steps)


def _number(file: str, node: _Node, name: str, least: int, most: int = LARGEST) -> int:
    if name not in node.numbers:
        raise BadInput(f"{file}: node {node.id} ({TYPES[node.type]}) has no {name}.")
    if not least <= node.numbers[name] <= most:
        raise BadInput(f"{file}: node {node.id}: {name} {node.numbers[name]} is not between {least} and "
                       f"{most}.")
    return node.numbers[name]


def _message(file: str, ranks: int, node: _Node, deps: tuple[int, ...]) -> Step:
    does = Does.SEND if node.type == SEND else Does.RECV
    peer = _number(file, node, "comm_dst" if does is Does.SEND else "comm_src", 0, ranks - 1)
    tag = _number(file, node, "comm_tag", 0) if "comm_tag" in node.numbers else 0
    return Step(does, node.id, deps, peer, _number(file, node, "comm_size", 1), tag, phase="message")


def _collective(file: str, rank: int, ranks: int, node: _Node, deps: tuple[int, ...],
                groups: Mapping[str, tuple[int, ...]]) -> Step:
    kind = _number(file, node, "comm_type", 0, 9)
    if kind in NOT_IMPORTED:
        raise BadInput(f"{file}: node {node.id}: a {NOT_IMPORTED[kind]} is not imported.")
    name = node.strings.get("pg_name", "")
    if name and name not in groups:
        raise BadInput(f'{file}: node {node.id}: the group "{shown(name)}" is not in the JSON file of the '
                       'groups; '
                       "say which file names it with groups=FILE.")
    group = groups[name] if name else tuple(range(ranks))
    if rank not in group:
        raise BadInput(f'{file}: node {node.id}: rank {rank} is not in the group "{shown(name)}".')
    size_bytes = 0 if COLLECTIVES[kind] == "barrier" else _number(file, node, "comm_size", 1)
    if COLLECTIVES[kind] == "allgather":  # its comm_size is what each rank brings
        size_bytes *= len(group)
    root = -1
    if COLLECTIVES[kind] in ("broadcast", "reduce") and "root" in node.numbers:
        root = _number(file, node, "root", 0, ranks - 1)
        if root not in group:
            raise BadInput(f'{file}: node {node.id}: the root {root} is not in its group.')
    return Step(Does.COLLECTIVE, node.id, deps, size_bytes=size_bytes, collective=COLLECTIVES[kind],
                group=group, root=root, phase=COLLECTIVES[kind])


def _notes(path: str, ranks: int, groups: Mapping[str, tuple[int, ...]],
           left_out: dict[int, int]) -> tuple[str, ...]:
    notes = []
    if not groups:
        notes.append(f"{path}: no JSON file of groups; collectives run over all {ranks} ranks.")
    if left_out[COMP]:
        notes.append(f"{path}: {left_out[COMP]} compute nodes have no duration and take no time; operations "
                     "and "
                     "tensor sizes are not turned into time.")
    memory = left_out[MEM_LOAD] + left_out[MEM_STORE]
    if memory:
        notes.append(f"{path}: {memory} memory nodes have no duration and take no time.")
    return tuple(notes)
