"""The collectives of a PyTorch profiler's timeline (torch.profiler, Chrome trace JSON).

(pytorch, torch/csrc/profiler/util.cpp, saveNcclMeta.) Events "record_param_comms" carry collective,
dtype, elements, and the ranks of the group; long lists of ranks are cut by the profiler.
"""
from __future__ import annotations

import json
import math
from typing import Any

from emulator.errors import BadInput
from traffic.importers.text import shown

RECORD = "record_param_comms"


def timeline_records(path: str, value: dict[str, Any]
                     ) -> tuple[list[dict[str, Any]], dict[str, dict[str, Any]]]:
    """(records in order of time, group name -> {'ranks', 'group_size'}), not yet checked further.

    A record has the keys of an execution trace's attributes. The place of an event in the list is its id.
    """
    events = value["traceEvents"]
    if not isinstance(events, list):
        raise BadInput(f'{path}: "traceEvents" is not a list.')
    found: list[tuple[float, int, dict[str, Any]]] = []
    groups: dict[str, dict[str, Any]] = {}
    for position, event in enumerate(events):
        if not isinstance(event, dict) or event.get("name") != RECORD:
            continue
        args, time_us = event.get("args"), event.get("ts")
        if not isinstance(args, dict) or type(time_us) not in (int, float) or not math.isfinite(time_us):
            raise BadInput(f"{path}: event {position}: {RECORD} has no args or no time.")
        name = str(args.get("Process Group Name"))
        ranks = _ranks(args.get("Process Group Ranks"))
        if groups.setdefault(name, {"ranks": ranks, "group_size": args.get("Group size")})["ranks"] != ranks:
            raise BadInput(f'{path}: event {position}: the group "{shown(name)}" has other ranks than '
                           'before.')
        found.append((time_us, position, {
            "id": position, "attrs": [{"name": key, "value": item} for key, item in (
                ("collective_name", args.get("Collective name")), ("dtype", args.get("dtype")),
                ("pg_name", name), ("in_msg_nelems", args.get("In msg nelems")),
                ("out_msg_nelems", args.get("Out msg nelems")),
                ("pg_size", args.get("Group size")))]}))
    return [record for _, _, record in sorted(found, key=lambda each: each[:2])], groups


def _ranks(text: Any) -> list[Any]:
    """The ranks of a group; empty where the profiler cut the list or left it out."""
    try:
        listed = json.loads(text) if isinstance(text, str) else text
    except (ValueError, RecursionError):
        return []
    return listed if isinstance(listed, list) else []
