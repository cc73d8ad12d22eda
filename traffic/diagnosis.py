"""Why a replay did not end: one sentence for each rank that is stuck."""
from __future__ import annotations

from typing import TYPE_CHECKING

from traffic.schedule import Kind

if TYPE_CHECKING:
    from traffic.engine import Engine


def explain_stuck(engine: Engine, elapsed_s: float) -> list[str]:
    """For each unfinished rank the operation that it stands at, its peer and the bytes still missing."""
    dag, state = engine.dag, engine.state
    sentences = []
    for rank, base in enumerate(dag.first):
        count = len(engine.workload.schedule.ranks[rank])
        open_ops = [n for n in range(base, base + count) if not state.done[n]]
        if not open_ops:
            continue
        number = next((n for n in open_ops if not state.waits(n)), open_ops[0])
        sentences.append(f"rank {rank} is stuck in {_where(engine, number)} after {elapsed_s:.1f} s "
                         f"({count - len(open_ops)} of {count} operations done).")
    return sentences


def _where(engine: Engine, number: int) -> str:
    op, rank = engine.dag.ops[number], engine.dag.rank[number]
    step = f"{op.phase or engine.workload.name} step {op.step}"
    if op.kind is Kind.COMPUTE:
        return f"{step}, computing"
    if op.kind is Kind.REDUCE:
        return f"{step}, waiting for its block"
    if op.kind is Kind.SEND:
        return f"{step}, sending {op.size_bytes} bytes to rank {op.peer}"
    connections = [place for place, key in enumerate(engine.keys)
                   if (key.src, key.dst, key.channel) == (op.peer, rank, op.channel)]
    got = next((m.got for place in connections for m in engine.in_flight(place) if m.recv_op == number), None)
    if got is None:
        return f"{step}, waiting for {op.size_bytes} bytes that rank {op.peer} has not sent yet"
    return f"{step}, waiting for {op.size_bytes - got} of {op.size_bytes} bytes from rank {op.peer}"
