"""The block program: how each rank of a real program ended, and what its sockets were."""
from __future__ import annotations

from dataclasses import asdict
from typing import Any

from emulator.outcome import Outcome
from emulator.plan import Plan


def program(plan: Plan, outcome: Outcome) -> dict[str, Any] | None:
    """None where a workload was replayed. output: the rank's files in the bundle."""
    p, ran = plan.program, outcome.program
    if p is None:
        return None
    named = {"kind": p.kind, "command": list(p.command), "connections_asked": p.connections}
    if ran is None:
        return {**named, "ranks": []}
    ranks = [{**asdict(end), "sent_bytes": _sent(outcome, end.rank),
              "output": [f"ranks/rank{end.rank}.out", f"ranks/rank{end.rank}.err"]} for end in ran.ranks]
    return {**named, "user": ran.user, "cpu_s": ran.cpu_s, "connections": ran.connections,
            "local_connections": ran.local_connections, "congestion_controls": ran.congestion_controls,
            "marks": ran.marks, "socket_poll_s": ran.poll_s, "sockets_missed": ran.missed, "ranks": ranks}


def _sent(outcome: Outcome, rank: int) -> int:
    """Payload that a rank's host sent over the fabric."""
    return sum(message.size_bytes for message in outcome.engine.messages if message.src == rank) \
        if outcome.engine else 0
