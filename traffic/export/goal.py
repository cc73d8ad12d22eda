"""A schedule as GOAL text for LogGOPSim (Hoefler, Siebert, Lumsdaine, ICPP 2009).

Every operation is a line, every dependency a `requires`; computes are calcs in nanoseconds, reduces
and joins calcs of 0.
"""
from __future__ import annotations

from collections import defaultdict

from emulator.errors import BadInput
from traffic.check import describe
from traffic.schedule import Kind, Schedule


def goal_text(schedule: Schedule) -> tuple[str, tuple[str, ...]]:
    """(file, notes). A send and its receive get a tag that only messages of one tag and channel share.

    Raises BadInput for what waits for another rank without a message (htsim's triggers).
    """
    tags: dict[tuple[int, int], dict[tuple[int, int], int]] = defaultdict(dict)
    lines = [f"num_ranks {len(schedule.ranks)}"]
    rounded = 0
    for rank, ops in enumerate(schedule.ranks):
        lines += ["", f"rank {rank} {{"]
        for index, op in enumerate(ops):
            if op.triggers:
                raise BadInput(f"{schedule.name}: {describe(schedule, rank, index)} waits for another rank "
                               "without a "
                               "message, which GOAL cannot say; write a .cm instead.")
            if op.kind in (Kind.SEND, Kind.RECV):
                sends = op.kind is Kind.SEND
                pair = tags[(rank, op.peer) if sends else (op.peer, rank)]
                tag = pair.setdefault((op.tag, op.channel), len(pair))
                what = f"{op.kind.value} {op.size_bytes}b {'to' if sends else 'from'} {op.peer} tag {tag}"
            else:
                duration_ns = round(op.duration_s * 1e9)
                rounded += abs(op.duration_s * 1e9 - duration_ns) > 1e-3
                what = f"calc {duration_ns}"
            lines.append(f"l{index + 1}: {what}")
            lines += [f"l{index + 1} requires l{dep + 1}" for dep in op.deps]
        lines.append("}")
    notes = (f"{rounded} computes are rounded to whole nanoseconds.",) if rounded else ()
    return "\n".join(lines) + "\n", notes
