"""Why a replay did not end: one sentence for each rank that is stuck."""
from __future__ import annotations

from typing import TYPE_CHECKING

from traffic.schedule import PACE, Kind

if TYPE_CHECKING:
    from traffic.engine import Engine
    from traffic.jobrun import JobRun


def explain_stuck(engine: Engine, elapsed_s: float) -> list[str]:
    """For each unfinished rank the operation that it stands at, its peer and the bytes still missing.

    Of several jobs each sentence names the job; its ranks are the job's own.
    """
    sentences = []
    for job in engine.jobs:
        of = f"job {job.job.name}: " if len(engine.jobs) > 1 else ""
        if job.running:
            stuck = _ranks(engine, job, elapsed_s)
            sentences += [of + sentence for sentence in stuck or [
                f"all operations are done after {elapsed_s:.1f} s, but not all bytes were acknowledged."]]
        elif not job.done:
            sentences.append(f"{of}not begun after {elapsed_s:.1f} s{_what_for(engine, job)}.")
    return sentences


def _what_for(engine: Engine, job: JobRun) -> str:
    after = job.job.after
    if after is not None and not engine.jobs[after].done:
        return f"; it waits for job {engine.jobs[after].job.name}"
    return f"; it starts at {job.job.start_s:.4g} s"


def _ranks(engine: Engine, job: JobRun, elapsed_s: float) -> list[str]:
    dag, state, sentences = job.dag, job.state, []
    for rank, base in enumerate(dag.first):
        count = len(job.schedule.ranks[rank])
        open_ops = [n for n in range(base, base + count) if not state.done[n]]
        if not open_ops:
            continue
        number = next((n for n in open_ops if not state.waits(n)), open_ops[0])
        sentences.append(f"rank {rank} is stuck in {_where(engine, job, number)} after {elapsed_s:.1f} s "
                         f"({count - len(open_ops)} of {count} operations done).")
    return sentences


def _where(engine: Engine, job: JobRun, number: int) -> str:
    op, rank = job.dag.ops[number], job.dag.rank[number]
    step = f"{op.phase or job.job.workload.name} step {op.step}"
    if op.kind is Kind.COMPUTE and op.phase == PACE:
        return f"{step}, waiting for its moment ({op.duration_s:.4g} s from when it could)"
    if op.kind is Kind.COMPUTE:
        return f"{step}, computing"
    if op.kind is Kind.REDUCE:
        return f"{step}, waiting for its block"
    if op.kind is Kind.SEND:
        return f"{step}, sending {op.size_bytes} bytes to rank {op.peer}"
    first = job.job.first_rank
    connections = [place for place, key in enumerate(engine.keys)
                   if (key.src, key.dst, key.channel) == (first + op.peer, first + rank, op.channel)]
    got = next((m.got for place in connections for m in engine.in_flight(place) if m.recv_op == number), None)
    if got is None:
        return f"{step}, waiting for {op.size_bytes} bytes that rank {op.peer} has not sent yet"
    return f"{step}, waiting for {op.size_bytes - got} of {op.size_bytes} bytes from rank {op.peer}"
