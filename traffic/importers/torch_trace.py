"""PyTorch execution traces (ExecutionTraceObserver, JSON) as traces: what `record_param_comms` noted.

(pytorch, torch/csrc/profiler/standalone/execution_trace_observer.cpp and
torch/csrc/distributed/c10d/ParamCommsUtils.hpp.) Newer traces have attributes (collective_name,
in_msg_nelems, dtype, pg_name, pg_size, global_rank_start, global_rank_stride), older ones only the
inputs of the record. The groups are in the node "## process_group:init ##". A trace has no times. The
timeline of a profiler is read, too (see `kineto`); its times are those of the host and not taken.
"""
from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from emulator.errors import BadInput, nearest
from traffic.importers.kineto import timeline_records
from traffic.importers.rankfiles import check_group, read_json
from traffic.importers.text import shown
from traffic.trace import MOST_RANKS, MOST_STEPS, Does, Step, Trace, chain, check_rank_count

RECORD, INIT = "record_param_comms", "## process_group:init ##"
COLLECTIVES = {"allreduce": "allreduce", "all_reduce": "allreduce", "allreduce_coalesced": "allreduce",
               "allgather": "allgather", "all_gather": "allgather", "_allgather_base": "allgather",
               "allgather_into_tensor_coalesced": "allgather", "reduce_scatter": "reducescatter",
               "_reduce_scatter_base": "reducescatter", "reduce_scatter_tensor_coalesced": "reducescatter",
               "broadcast": "broadcast", "broadcast_oop": "broadcast", "reduce": "reduce",
               "all_to_all": "alltoall", "all_to_allv": "alltoall", "alltoall_base": "alltoall",
               "barrier": "barrier"}
MESSAGES = ("send", "recv")
LEFT_OUT = ("init", "wait", "end", "start_coalescing", "end_coalescing")
ELEMENT_BYTES = {"Byte": 1, "Char": 1, "Bool": 1, "Short": 2, "Half": 2, "BFloat16": 2, "Int": 4, "Float": 4,
                 "Long": 8, "Double": 8, "Float8_e4m3fn": 1, "Float8_e5m2": 1}
LARGEST = 10**18


@dataclass(frozen=True)
class _File:
    """One rank's trace: its records, and its groups by name."""

    path: str
    records: list[tuple[int, dict[str, Any]]]
    groups: Mapping[str, Mapping[str, Any]]
    alone: bool = False


def read_torch(path: str) -> Trace:
    """The trace of a folder (one JSON a rank, NAME_RANK.json or NAME.RANK.json) or of one file.

    With one file every rank does what it says; its groups must then be all ranks, or evenly spaced ones
    that repeat over the ranks. Raises BadInput with file and node for every slip.
    """
    names = _files(path)
    files = [replace(_parse(name), alone=len(names) == 1) for name in names]
    if not any(file.records for file in files):
        raise BadInput(f"{path} has no {RECORD} of a collective; nothing would be sent.")
    world = len(files) if len(files) > 1 else _world(files[0])
    check_rank_count(path, None, world)
    total = sum(len(file.records) for file in files) * (world if len(files) == 1 else 1)
    if total > MOST_STEPS:
        raise BadInput(f"{path}: more than {MOST_STEPS} collectives.")
    made = []
    for rank in range(world):
        file = files[rank] if len(files) > 1 else files[0]
        made.append(chain([_step(file, rank, world, id_, record) for id_, record in file.records]))
    notes = [f"{path}: the times of computing are not in it or not taken; ranks only communicate, one call "
             "after the other."]
    if len(files) == 1 and world > 1:
        notes.append(f"{path}: one file for {world} ranks; every rank does what it says.")
    return Trace(path, tuple(made), tuple(notes), tuple(names * world if len(names) == 1 else names), "node")


def _files(path: str) -> list[str]:
    folder = Path(path)
    if not folder.is_dir():
        return [path]
    found: dict[int, str] = {}
    for file in sorted(folder.glob("*.json")):
        match = re.fullmatch(r".*?([0-9]{1,9})\.json", file.name)
        if match is None or int(match[1]) in found:
            raise BadInput(f"{file} does not end in a rank of its own, as in trace_3.json.")
        found[int(match[1])] = str(file)
    missing = next((rank for rank in range(len(found)) if rank not in found), None)
    if not found or missing is not None:
        raise BadInput(f"{path} holds {len(found)} traces; one for each rank from 0 is needed"
                       f"{'' if missing is None else f', and that of rank {missing} is missing'}.")
    return [found[rank] for rank in range(len(found))]


def _parse(path: str) -> _File:
    value = read_json(path, "a PyTorch execution trace")
    if isinstance(value, dict) and "traceEvents" in value:
        nodes, known = timeline_records(path, value)
        return _File(path, [record for node in nodes for record in _record(path, node)], known)
    nodes = value.get("nodes") if isinstance(value, dict) else None
    if not isinstance(nodes, list):
        raise BadInput(f'{path}: a PyTorch execution trace is a JSON object with a list "nodes".')
    records, groups = [], {}
    for position, node in enumerate(nodes):
        if not isinstance(node, dict):
            raise BadInput(f"{path}: node number {position} is not an object.")
        if node.get("name") == INIT:
            groups.update(_read_groups(path, node))
        if node.get("name") != RECORD:
            continue
        if type(node.get("id")) is not int or not 0 <= node["id"] < 2**63:
            raise BadInput(f"{path}: node number {position} has no id.")
        records += _record(path, node)
    return _File(path, records, groups)


def _record(path: str, node: dict[str, Any]) -> list[tuple[int, dict[str, Any]]]:
    """(id, record) of a node; nothing for what only waits or groups others."""
    record = _attributes(path, node) or _inputs(path, node)
    name = record["collective"]
    if name in LEFT_OUT:
        return []
    if name not in COLLECTIVES and name not in MESSAGES:
        raise BadInput(f'{path}: node {node["id"]}: the collective "{shown(name)}" is not imported'
                       f'{nearest(name, COLLECTIVES)}.')
    return [(node["id"], {**record, "collective": COLLECTIVES.get(name, name)})]


def _attributes(path: str, node: dict[str, Any]) -> dict[str, Any] | None:
    """The record of a newer trace, from its attributes; None where it has none."""
    listed = node.get("attrs", [])
    if not isinstance(listed, list) or not all(isinstance(each, dict) for each in listed):
        raise BadInput(f'{path}: node {node["id"]}: "attrs" is not a list of objects.')
    attrs = {str(each.get("name")): each.get("value") for each in listed}
    if "collective_name" not in attrs:
        return None
    name = str(attrs["collective_name"]).lower()
    if name not in COLLECTIVES and name not in MESSAGES:
        return {"collective": name}
    element = ELEMENT_BYTES.get(str(attrs.get("dtype")))
    if element is None:
        raise BadInput(f'{path}: node {node["id"]}: the dtype {shown(repr(attrs.get("dtype")))} is unknown'
                       f'{nearest(str(attrs.get("dtype")), ELEMENT_BYTES)}.')
    peer = _inputs(path, node)["peer"] if name in MESSAGES else None  # the attributes leave it out
    return {"collective": name, "pg_name": attrs.get("pg_name"), "peer": peer, "size": attrs.get("pg_size"),
            "start": attrs.get("global_rank_start"), "stride": attrs.get("global_rank_stride"),
            "in": _bytes(path, node, attrs.get("in_msg_nelems"), element),
            "out": _bytes(path, node, attrs.get("out_msg_nelems"), element)}


def _bytes(path: str, node: dict[str, Any], elements: Any, element_bytes: int) -> int:
    text = str(elements)
    if not re.fullmatch(r"[0-9]{1,18}", text) or int(text) * element_bytes > LARGEST:
        raise BadInput(f'{path}: node {node["id"]}: {shown(repr(elements))} is not a number of elements.')
    return int(text) * element_bytes


def _inputs(path: str, node: dict[str, Any]) -> dict[str, Any]:
    """The record of an older trace: [tensors,] sequence, group, rank, collective, in splits, out splits,
    global rank start, stride, world size; tensors are [id, storage, offset, elements, bytes of one, device].
    """
    inputs = node.get("inputs")
    values = inputs.get("values") if isinstance(inputs, dict) else inputs
    if not isinstance(values, list) or len(values) < 8:
        raise BadInput(f'{path}: node {node["id"]}: {RECORD} has neither attributes nor the inputs of a '
                       'collective.')
    shift = next((at for at, value in enumerate(values) if isinstance(value, str) and value.lower() in
                  (*COLLECTIVES, *MESSAGES, *LEFT_OUT)), None)
    if shift is None or shift + 4 >= len(values) or shift < 2:
        raise BadInput(f'{path}: node {node["id"]}: the inputs of {RECORD} name no collective that is known.')
    collective = values[shift].lower()
    if collective in LEFT_OUT:
        return {"collective": collective, "peer": None}
    size_bytes = _tensor_bytes(path, node, values[0])
    outputs = node.get("outputs")
    out = outputs.get("values") if isinstance(outputs, dict) else outputs
    name = values[shift - 2]
    return {"collective": collective, "pg_name": name[0] if isinstance(name, list) and name else name,
            "start": values[shift + 3], "stride": values[shift + 4], "peer": values[shift - 1],
            "size": values[shift + 5] if shift + 5 < len(values) else None,
            "in": size_bytes, "out": _tensor_bytes(path, node, out) or size_bytes}


def _tensor_bytes(path: str, node: dict[str, Any], value: Any) -> int:
    """Bytes of a tensor, or of all tensors in a list."""
    if not isinstance(value, list):
        return 0
    if len(value) >= 6 and all(type(part) is int for part in value[:5]):
        if not 0 <= value[3] * value[4] <= LARGEST or value[3] < 0:
            raise BadInput(f'{path}: node {node["id"]}: a tensor of {value[3]} elements of {value[4]} bytes.')
        return value[3] * value[4]
    total = 0
    for part in value:
        if isinstance(part, list) and part is not value:
            total += sum(_flat(path, node, part))
    return total


def _flat(path: str, node: dict[str, Any], value: list[Any]) -> list[int]:
    """Bytes of the tensors in one list; deeper nesting than lists of lists does not occur."""
    if len(value) >= 6 and all(type(part) is int for part in value[:5]):
        return [_tensor_bytes(path, node, value)]
    return [_tensor_bytes(path, node, part) for part in value
            if isinstance(part, list) and len(part) >= 6 and all(type(each) is int for each in part[:5])]


def _read_groups(path: str, node: dict[str, Any]) -> dict[str, Mapping[str, Any]]:
    inputs = node.get("inputs")
    values = inputs.get("values") if isinstance(inputs, dict) else inputs
    text = values[0] if isinstance(values, list) and values else None
    try:
        listed = json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        listed = None
    if not isinstance(listed, list) or not all(isinstance(each, dict) for each in listed):
        raise BadInput(f'{path}: node {shown(repr(node.get("id")))}: the process groups are not a JSON list '
                       'of '
                       "objects.")
    return {str(each.get("pg_name")): each for each in listed}


def _world(file: _File) -> int:
    """How many ranks one file speaks of: the largest group."""
    sizes = [group.get("group_size") for group in file.groups.values()]
    sizes += [record["size"] for _, record in file.records]
    found = []
    for size in sizes:
        if size is None:
            continue
        if not re.fullmatch(r"[0-9]{1,9}", str(size)) or not 1 <= int(str(size)) <= MOST_RANKS:
            raise BadInput(f"{file.path}: {shown(repr(size))} is not a size of a process group from 1 to "
                           f"{MOST_RANKS}.")
        found.append(int(str(size)))
    if not found:
        raise BadInput(f"{file.path} says nowhere how many ranks there are.")
    return max(found)


def _step(file: _File, rank: int, world: int, id_: int, record: dict[str, Any]) -> Step:
    group = _group(file, rank, world, id_, record)
    collective = record["collective"]
    size_bytes = record["out"] if collective == "allgather" else record["in"]
    if collective in MESSAGES:
        return _message(file, id_, collective, group, size_bytes, record["peer"])
    if collective == "barrier":
        size_bytes = 0
    elif size_bytes < 1:
        raise BadInput(f"{file.path}: node {id_}: a {collective} of 0 bytes sends nothing.")
    return Step(Does.COLLECTIVE, id_, size_bytes=size_bytes, collective=collective, group=group,
                phase=collective)


def _message(file: _File, id_: int, what: str, group: tuple[int, ...], size_bytes: int, peer: Any) -> Step:
    """A send or receive; `peer` is a rank of the group."""
    if file.alone:
        raise BadInput(f"{file.path}: node {id_}: a {what} differs from rank to rank; give a folder with the "
                       "trace "
                       "of every rank.")
    place = _small(file, id_, peer)
    if place >= len(group) or size_bytes < 1:
        raise BadInput(f"{file.path}: node {id_}: a {what} of {size_bytes} bytes with rank {place} of a "
                       "group of "
                       f"{len(group)} cannot be.")
    return Step(Does.SEND if what == "send" else Does.RECV, id_, peer=group[place], size_bytes=size_bytes,
                phase="message", traffic_class="pipeline")


def _group(file: _File, rank: int, world: int, id_: int, record: dict[str, Any]) -> tuple[int, ...]:
    known = file.groups.get(str(record["pg_name"]), {})
    listed = known.get("ranks")
    listed = list(listed) if isinstance(listed, (list, dict)) else []
    if listed:
        ranks = [int(each) if isinstance(each, str) and re.fullmatch(r"[0-9]{1,9}", each) else each
                 for each in listed]
        group = check_group(file.path, str(record["pg_name"]), ranks, world)
        if rank in group:
            return tuple(sorted(group))
        start, size = min(group), len(group)
        strides = {b - a for a, b in zip(sorted(group), sorted(group)[1:])} or {1}
        stride = strides.pop() if len(strides) == 1 else 0
    else:
        said = record["size"] if record["size"] is not None else known.get("group_size", world)
        size = _small(file, id_, said)
        start, stride = _small(file, id_, record["start"] or 0), _small(file, id_, record["stride"] or 1)
        if size == world or size == 0:
            return tuple(range(world))
    if not stride or size < 1 or world % (size * stride) or start % (size * stride) >= stride:
        raise BadInput(f"{file.path}: node {id_}: the group {shown(str(record['pg_name']))} of {size} ranks "
                       "cannot be "
                       f"continued over {world} ranks; give a folder with the trace of every rank.")
    span = size * stride
    first = rank // span * span + rank % stride
    return tuple(range(first, first + span, stride))


def _small(file: _File, id_: int, value: Any) -> int:
    if not re.fullmatch(r"[0-9]{1,6}", str(value)):
        raise BadInput(f"{file.path}: node {id_}: {shown(repr(value))} is not a rank or a number of ranks.")
    return int(str(value))
