"""What global scheduling did during a run: the block `routing` of summary.json."""
from __future__ import annotations

from typing import Any

from emulator.outcome import Outcome


def scheduled(outcome: Outcome) -> dict[str, Any] | None:
    """The scheduler, its parameters and its moves; None where the controller moved nothing because it was
    not asked to.

    placed: pairs of hosts that were hashed and got a path. moved: those that got another one; moved_back of them
    to one that they had been on before. released: those that ended, or had to be hashed again. moves_per_s:
    moved, over the time in which there were elephants. `moves` lists what happened, time_s from the replay's start.
    """
    if outcome.scheduling is None:
        return None
    books = dict(outcome.scheduling)
    moves = [{**move, "time_s": move["time_s"] - outcome.started_s} for move in books.pop("moves")]
    return {**books, "moves": moves}
