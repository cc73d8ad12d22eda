"""timeline.json: what every rank did when, in the Chrome trace event format (opens in Perfetto).

Format: "Trace Event Format", Google 2016: complete events (ph X), times in microseconds. One
process per rank (of several jobs counted over all of them), one thread per kind: compute, send, recv;
collectives stand on a fourth. Iterations are a process of their own, with a thread per job.
"""
from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from traffic.records import Iteration, Span

_THREADS = {"compute": 0, "send": 1, "recv": 2, "phase": 3}


def trace(spans: Iterable[Span], iterations: Sequence[Iteration], hosts: Sequence[str], origin_s: float,
          events: Iterable[tuple[float, str]] = ()) -> str:
    """The JSON text. hosts[r] is the host of rank r; origin_s is time zero of the file.

    `events` are (time, sentence) pairs that concern the whole fabric (failures, moves).
    """
    lines: list[dict[str, object]] = []
    for rank, host in enumerate(hosts):
        name = f"rank {rank} ({host})"
        lines.append({"ph": "M", "pid": rank, "name": "process_name", "args": {"name": name}})
        lines.extend({"ph": "M", "pid": rank, "tid": tid, "name": "thread_name", "args": {"name": name}}
                     for name, tid in _THREADS.items())
    phases: dict[tuple[int, int, str], list[float]] = {}
    for span in spans:
        lines.append(_complete(span.rank, _THREADS[span.kind], f"{span.phase} {span.step}".strip(), span.kind,
                               span.start_s - origin_s, span.end_s - span.start_s,
                               {"iteration": span.iteration, "step": span.step}))
        if not span.phase:
            continue
        reach = phases.setdefault((span.rank, span.iteration, span.phase), [span.start_s, span.end_s])
        reach[0], reach[1] = min(reach[0], span.start_s), max(reach[1], span.end_s)
    for (rank, iteration, phase), (start, end) in phases.items():
        lines.append(_complete(rank, _THREADS["phase"], phase, "phase", start - origin_s, end - start,
                               {"iteration": iteration}))
    run = len(hosts)
    lines.append({"ph": "M", "pid": run, "name": "process_name", "args": {"name": "run"}})
    for iteration in iterations:
        name = f"iteration {iteration.index}" + ("" if iteration.measured else " (warm-up)")
        lines.append(_complete(run, iteration.job, name, "iteration", iteration.start_s - origin_s,
                               iteration.end_s - iteration.start_s, {}))
    lines.extend({"ph": "i", "s": "g", "pid": run, "tid": 0, "name": text, "ts": 1e6 * (time - origin_s)}
                 for time, text in events)
    return json.dumps({"displayTimeUnit": "ms", "traceEvents": lines})


def _complete(pid: int, tid: int, name: str, category: str, start_s: float, length_s: float,
              args: dict[str, object]) -> dict[str, object]:
    return {"ph": "X", "pid": pid, "tid": tid, "name": name, "cat": category,
            "ts": round(1e6 * start_s, 3), "dur": round(1e6 * length_s, 3), "args": args}
