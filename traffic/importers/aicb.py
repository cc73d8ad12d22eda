"""CSV workloads of AICB (aliyun/aicb, workload/physical) as traces: collectives, one after the other.

    [rank0 ~ rank127]
    comm_type,comm_group,comm_group_size,msg_size,stage,dst,src,additional,_elapsed_time,algbw,busbw,count
    CommType.all_reduce,CommGroup.tp_group,2,16777216,forward.MegatronEmbedding,None,None,,None,None,None,1

The first line may be missing, and so may group sizes. Every rank runs all rows. msg_size is the whole
buffer, for all-gather and reduce-scatter too.
"""
from __future__ import annotations

import csv
from dataclasses import dataclass

from emulator.errors import BadInput, nearest
from traffic.importers.groups import TRAFFIC_CLASS, Parallel, parallel
from traffic.importers.text import read_lines, shown, slip, whole_number
from traffic.trace import MOST_RANKS, MOST_STEPS, Does, Step, Trace, chain, check_rank_count

COLUMNS = ("comm_type", "comm_group", "comm_group_size", "msg_size", "stage")
COLLECTIVES = {"all_reduce": "allreduce", "all_gather": "allgather", "reduce_scatter": "reducescatter",
               "broadcast": "broadcast", "reduce": "reduce", "all_to_all": "alltoall", "barrier": "barrier",
               "all_gather_into_tensor": "allgather", "reduce_scatter_tensor": "reducescatter"}
LEFT_OUT = ("epoch_end", "computation")
GROUPS = {"tp_group": "tp", "dp_group": "dp", "ep_group": "ep", "ep_dp_group": "dp_ep", "pp_group": "pp",
          "all": "all", "None": "all"}


@dataclass(frozen=True)
class _Row:
    """One collective. `group_size` is None where the file leaves it out."""

    line: int
    collective: str
    kind: str
    group_size: int | None
    size_bytes: int
    stage: str
    times: int


def read_aicb(path: str, ranks: int | None) -> Trace:
    """The trace of an AICB file; the number of ranks is what its first line says, else `ranks`, else what
    its groups multiply to. Raises BadInput with file and line for every slip.
    """
    lines = read_lines(path, "an AICB workload")
    start, stated = _first_line(path, lines)
    names, rows, skipped = _rows(path, lines, start)
    if not rows:
        raise BadInput(f"{path} has no collective of more than 0 bytes; nothing would be sent.")
    if stated and ranks and stated != ranks:
        raise BadInput(f"{path}:1: the file is for {stated} ranks, which ranks={ranks} contradicts; leave "
                       "ranks out.")
    groups = _groups(path, rows, stated or ranks)
    made = tuple(_steps(rows, groups, rank) for rank in range(groups.ranks))
    notes = [f"{path}: {groups.ranks} ranks, tensor-parallel groups of {groups.tp}, data-parallel of "
             f"{groups.dp}, "
             f"expert-parallel of {groups.ep}; rows run one after the other.", *skipped]
    if groups.pp > 1:
        notes.append(f"{path}: every one of the {groups.pp} pipeline stages runs all rows.")
    return Trace(path, made, tuple(notes), block=groups.tp * groups.ep)


def _first_line(path: str, lines: list[str]) -> tuple[int, int | None]:
    """(index of the header, number of ranks); '[rank0 ~ rank127]' is optional."""
    first = lines[0].strip()
    if not first.startswith("["):
        return 0, None
    words = first.strip("[]").replace("rank", " ").split()
    if len(words) != 3 or words[0] != "0" or words[1] != "~" or not first.endswith("]"):
        raise slip(path, 1, f'"{shown(first)}" is not of the form [rank0 ~ rankN].')
    last = whole_number(path, 1, "the last rank", words[2], 0, MOST_RANKS)
    check_rank_count(path, 1, last + 1)
    return 1, last + 1


def _rows(path: str, lines: list[str], start: int) -> tuple[list[str], list[_Row], list[str]]:
    """(column names, collectives, notes on what was left out)."""
    if len(lines) <= start:
        raise BadInput(f"{path} ends before its header of columns.")
    names = lines[start].strip().split(",")
    for name in COLUMNS:
        if names.count(name) != 1:
            raise slip(path, start + 1, f"the header must name {name} once{nearest(name, names)}.")
    rows: list[_Row] = []
    empty = dict.fromkeys(("zero", *LEFT_OUT), 0)
    total = 0
    for number, line in enumerate(lines[start + 1:], start + 2):
        if not line.strip():
            continue
        row = _row(path, number, names, line)
        if isinstance(row, str):
            empty[row] += 1
            continue
        total += row.times
        if total > MOST_STEPS:
            raise slip(path, number, f"more than {MOST_STEPS} collectives.")
        rows += [row] * row.times
    notes = []
    if empty["zero"]:
        notes.append(f"{path}: {empty['zero']} collectives of 0 bytes are left out.")
    if empty["computation"]:
        notes.append(f"{path}: {empty['computation']} computation rows are left out; the file gives their "
                     "time no "
                     "unit.")
    return names, rows, notes


def _row(path: str, line: int, names: list[str], text: str) -> _Row | str:
    """A collective, or the name of what is left out."""
    try:
        cells = next(csv.reader([text], strict=True))
    except (csv.Error, StopIteration) as error:
        raise slip(path, line, f"not a row of comma-separated values ({error}).") from None
    if len(cells) != len(names):
        raise slip(path, line, f"{len(cells)} values where the header names {len(names)} columns.")
    cell = dict(zip(names, cells))
    kind = cell["comm_type"].removeprefix("CommType.")
    if kind in LEFT_OUT:
        return kind
    if kind not in COLLECTIVES:
        raise slip(path, line, f'comm_type "{shown(cell["comm_type"])}" is not imported'
                               f'{nearest(kind, (*COLLECTIVES, *LEFT_OUT))}.')
    group = cell["comm_group"].removeprefix("CommGroup.")
    if group not in GROUPS:
        raise slip(path, line, f'comm_group "{shown(cell["comm_group"])}" is not '
                               f'imported{nearest(group, GROUPS)}.')
    size_text = cell["comm_group_size"]
    members = (None if size_text in ("", "None") else
               whole_number(path, line, "comm_group_size", size_text, 1, MOST_RANKS))
    times = whole_number(path, line, "count", cell.get("count") or "1", 1, MOST_STEPS)
    size_bytes = whole_number(path, line, "msg_size", cell["msg_size"])
    if not size_bytes and kind != "barrier":
        return "zero"
    return _Row(line, COLLECTIVES[kind], GROUPS[group], members, size_bytes, cell["stage"], times)


def _groups(path: str, rows: list[_Row], world: int | None) -> Parallel:
    """The sizes of the groups: what the rows say, and where they do not, what the ranks leave."""
    said: dict[str, _Row] = {}
    for row in rows:
        if row.group_size is None:
            continue
        first = said.setdefault(row.kind, row)
        if first.group_size != row.group_size:
            raise slip(path, row.line, f"its group has {row.group_size} ranks, that of line {first.line} "
                                       f"{first.group_size}.")
    size = {kind: row.group_size or 1 for kind, row in said.items()}
    tp, ep = size.get("tp", 1), size.get("ep", 1)
    dp = size.get("dp", size.get("dp_ep", 1) * ep)
    world = world or size.get("all") or tp * dp * size.get("pp", 1)
    check_rank_count(path, None, world)
    pp = size.get("pp") or (world // (tp * dp) if "dp" in size and world % (tp * dp) == 0 else 1)
    made = parallel(path, world, tp, pp, ep)
    for kind, row in said.items():
        if len(made.group(kind, 0)) != row.group_size:
            raise slip(path, row.line, f"a {kind} group of {row.group_size} does not fit {world} ranks in "
                                       f"tensor-parallel groups of {tp}; the others leave "
                                       f"{len(made.group(kind, 0))}.")
    return made


def _steps(rows: list[_Row], groups: Parallel, rank: int) -> tuple[Step, ...]:
    known: dict[str, tuple[int, ...]] = {}
    steps = []
    for row in rows:
        group = known.setdefault(row.kind, groups.group(row.kind, rank))
        steps.append(Step(Does.COLLECTIVE, row.line, size_bytes=row.size_bytes, collective=row.collective,
                          group=group, phase=row.stage, traffic_class=TRAFFIC_CLASS[row.kind]))
    return chain(steps)
