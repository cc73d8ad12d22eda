"""Text workloads of ASTRA-sim 1.0 and SimAI as traces.

    HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 1 pp: 1 all_gpus: 16 checkpoints: 0 …
    76
    name dep fwd_ns FWD_COLL fwd_bytes ig_ns IG_COLL ig_bytes wg_ns WG_COLL wg_bytes update_ns

One row a layer, the same for all ranks. The order in which rows run is that of the simulators
(astra-sim 1.0, workload/Workload.cc): forward passes with a blocking collective after each; then,
from the last layer to the first, the input gradient with a blocking collective and the weight gradient
with one that nobody waits for before the end of the iteration. One tick is one nanosecond.
"""
from __future__ import annotations

from dataclasses import dataclass

from emulator.errors import BadInput, nearest
from traffic.importers.groups import TRAFFIC_CLASS, Parallel, parallel
from traffic.importers.text import Word, read_lines, shown, slip, whole_number, words_of
from traffic.trace import MOST_RANKS, MOST_STEPS, Does, Step, Trace, check_rank_count

POLICIES = ("MICRO", "DATA", "HYBRID_TRANSFORMER", "HYBRID_TRANSFORMER_FWD_IN_BCKWD")
COLLECTIVES = {"ALLREDUCE": "allreduce", "ALLGATHER": "allgather", "REDUCESCATTER": "reducescatter",
               "ALLTOALL": "alltoall", "BROADCAST": "broadcast"}
SUFFIXES = {"": "", "_EP": "ep", "_DP_EP": "dp_ep"}
COLUMNS = ("name", "dep", "forward time", "forward collective", "forward bytes", "input-gradient time",
           "input-gradient collective", "input-gradient bytes", "weight-gradient time",
           "weight-gradient collective", "weight-gradient bytes", "update time")
HEADER = ("model_parallel_NPU_group", "ep", "pp", "vpp", "ga", "all_gpus", "pp_comm")
LISTS = ("checkpoints", "checkpoint_initiates")
LONGEST_NS = 10**15


@dataclass(frozen=True)
class _Pass:
    """One of a row's three parts: it computes, then communicates (collective empty: it does not)."""

    duration_ns: int
    collective: str
    kind: str
    size_bytes: int


@dataclass(frozen=True)
class _Row:
    line: int
    name: str
    forward: _Pass
    input_gradient: _Pass
    weight_gradient: _Pass
    update_ns: int


def read_simai(path: str, ranks: int | None, hosts: int) -> Trace:
    """The trace of one iteration. The number of ranks is the header's all_gpus, else `ranks`, else `hosts`.

    Raises BadInput with file, line and column for every slip.
    """
    lines = [(number, words_of(text)) for number, text in enumerate(read_lines(path, "a SimAI workload"), 1)]
    lines = [(number, words) for number, words in lines if words]
    policy, given, lists = _header(path, *lines[0])
    if len(lines) < 2 or len(lines[1][1]) != 1:
        raise slip(path, lines[min(1, len(lines) - 1)][0], "the second line must be the number of rows.")
    number, (count,) = lines[1]
    declared = whole_number(path, number, "number of rows", count, 1, MOST_STEPS)
    if declared != len(lines) - 2:
        raise slip(path, number, f"it says {declared} rows, but the file has {len(lines) - 2}.", count)
    rows = [_row(path, line, words) for line, words in lines[2:]]
    for name in LISTS:
        for layer in lists[name]:
            if layer >= len(rows):
                raise slip(path, lines[0][0], f"{name} names layer {layer}, but there are {len(rows)} rows.")
    stated = given.get("all_gpus", 0)
    if stated and ranks and stated != ranks:
        raise slip(path, lines[0][0], f"all_gpus is {stated}, which ranks={ranks} contradicts; leave ranks "
                                      "out.")
    world = stated or ranks or hosts
    check_rank_count(path, lines[0][0], world)
    tp = given.get("model_parallel_NPU_group", 1) or 1
    groups = parallel(f"{path}:{lines[0][0]}", world, tp, given.get("pp", 1) or 1, given.get("ep", 1) or 1)
    if policy == "MICRO":
        plan = [(row, "weight gradient", row.weight_gradient, False) for row in rows]
    else:
        plan = _iteration(path, policy, rows, lists)
    made = tuple(_steps(plan, groups, rank) for rank in range(world))
    return Trace(path, made, _notes(path, policy, given, rows, groups, bool(stated or ranks)),
                 block=groups.tp * groups.ep)


def _header(path: str, line: int, words: list[Word]) -> tuple[str, dict[str, int], dict[str, list[int]]]:
    """(policy, values, layer lists) of 'POLICY key: value key: value … checkpoints: N i1 … iN'."""
    if words[0] not in POLICIES:
        raise slip(path, line, f'the parallelism "{shown(words[0])}" is not '
                               f'imported{nearest(words[0], POLICIES)}.',
                   words[0])
    given: dict[str, int] = {}
    lists: dict[str, list[int]] = {name: [] for name in LISTS}
    rest = iter(words[1:])
    for word in rest:
        key = word.rstrip(":")
        if key in given or key not in (*HEADER, *LISTS):
            raise slip(path, line, f'the key "{shown(key)}" is unknown or comes twice'
                                   f'{nearest(key, (*HEADER, *LISTS))}.', word)
        most = MOST_RANKS if key not in ("pp_comm", "ga") else 10**18
        given[key] = whole_number(path, line, key, next(rest, ""), 0, most)
        if key in LISTS:
            if given[key] > len(words):
                raise slip(path, line, f"{key} lists fewer than {given[key]} layers.", word)
            lists[key] = [whole_number(path, line, key, next(rest, "")) for _ in range(given[key])]
    return words[0], given, lists


def _row(path: str, line: int, words: list[Word]) -> _Row:
    if len(words) != len(COLUMNS):
        raise slip(path, line, f"{len(words)} columns where {len(COLUMNS)} are expected: "
                               f"{', '.join(COLUMNS)}.")
    passes = [_pass(path, line, words[start:start + 3], COLUMNS[start:start + 3], kind)
              for start, kind in ((2, "tp"), (5, "tp"), (8, "dp"))]
    dependency = words[1][1:] if words[1].startswith("-") else words[1]
    whole_number(path, line, "dep", Word(dependency, words[1].column))
    return _Row(line, str(words[0]), *passes, whole_number(path, line, COLUMNS[11], words[11], 0, LONGEST_NS))


def _pass(path: str, line: int, words: list[Word], names: tuple[str, ...], kind: str) -> _Pass:
    duration_ns = whole_number(path, line, names[0], words[0], 0, LONGEST_NS)
    size_bytes = whole_number(path, line, names[2], words[2])
    if words[1] == "NONE":
        if size_bytes:
            raise slip(path, line, f"the {names[1]} is NONE, but has {size_bytes} bytes.", words[2])
        return _Pass(duration_ns, "", kind, 0)
    base, _, suffix = words[1].partition("_")
    suffix = f"_{suffix}" if suffix else ""
    if base not in COLLECTIVES or suffix not in SUFFIXES:
        raise slip(path, line, f'the {names[1]} "{shown(words[1])}" is not '
                               f'imported{nearest(base, COLLECTIVES)}; it '
                               "may end in _EP or _DP_EP.", words[1])
    if not size_bytes:
        return _Pass(duration_ns, "", kind, 0)
    return _Pass(duration_ns, COLLECTIVES[base], SUFFIXES[suffix] or kind, size_bytes)


_Piece = tuple[_Row, str, _Pass, bool]
"""(row, phase, pass, does the main line of execution wait for its collective)"""


def _iteration(path: str, policy: str, rows: list[_Row], lists: dict[str, list[int]]) -> list[_Piece]:
    """The passes of one iteration in the order in which they run."""
    plan: list[_Piece] = [(row, "forward", row.forward, True) for row in rows]
    checkpoints, initiates = set(lists["checkpoints"]), set(lists["checkpoint_initiates"])
    for index in range(len(rows) - 1, -1, -1):
        row = rows[index]
        if index in initiates:  # activations are computed again from the last checkpoint on
            start = max((layer for layer in checkpoints if layer <= index), default=None)
            if start is None:
                raise BadInput(f"{path}:{row.line}: the layer starts a recomputation, but no checkpoint "
                               "comes "
                               "before it.")
            plan += [(again, "forward", again.forward, True) for again in rows[start:index]]
            if len(plan) > MOST_STEPS:
                raise BadInput(f"{path}: its recomputations need more than {MOST_STEPS} passes.")
        gradients: list[_Piece] = [(row, "input gradient", row.input_gradient, True),
                                   (row, "weight gradient", row.weight_gradient, False)]
        plan += gradients[::-1] if policy == "DATA" else gradients
    return plan


def _steps(plan: list[_Piece], groups: Parallel, rank: int) -> tuple[Step, ...]:
    steps: list[Step] = []
    main: tuple[int, ...] = ()
    known: dict[str, tuple[int, ...]] = {}
    for row, phase, part, blocking in plan:
        if part.duration_ns:
            steps.append(Step(Does.COMPUTE, row.line, main, duration_s=part.duration_ns * 1e-9, phase=phase))
            main = (len(steps) - 1,)
        if not part.collective:
            continue
        group = known.setdefault(part.kind, groups.group(part.kind, rank))
        steps.append(Step(Does.COLLECTIVE, row.line, main, size_bytes=part.size_bytes,
                          collective=part.collective, group=group, phase=f"{phase} {row.name}",
                          traffic_class=TRAFFIC_CLASS[part.kind]))
        if blocking:
            main = (len(steps) - 1,)
        elif row.update_ns:
            steps.append(Step(Does.COMPUTE, row.line, (len(steps) - 1,), duration_s=row.update_ns * 1e-9,
                              phase="update"))
    return tuple(steps)


def _notes(path: str, policy: str, given: dict[str, int], rows: list[_Row], groups: Parallel,
           stated: bool) -> tuple[str, ...]:
    notes = []
    if not stated:
        notes.append(f"{path}: the file does not say how many ranks there are; {groups.ranks} are taken, one "
                     "for "
                     "each host (ranks=N chooses).")
    notes.append(f"{path}: {groups.ranks} ranks, tensor-parallel groups of {groups.tp}, data-parallel of "
                 f"{groups.dp}, expert-parallel of {groups.ep}; one tick is 1 ns.")
    if policy == "MICRO":
        notes.append(f"{path}: the collectives of a MICRO workload all start at once, as the simulator "
                     "issues them.")
    if groups.pp > 1:
        notes.append(f"{path}: the rows are those of one of the {groups.pp} pipeline stages; every stage "
                     "runs them, "
                     "and what stages send one another is not in the rows and left out.")
    elif given.get("pp_comm"):
        notes.append(f"{path}: pp_comm is left out; there is one pipeline stage.")
    if given.get("ga", 1) > 1:
        notes.append(f"{path}: ga: {given['ga']} is left out; the rows are taken as they stand.")
    return tuple(notes)
