"""What global scheduling did during a run: the block `routing` of summary.json."""
from __future__ import annotations

from typing import Any

from emulator.outcome import Outcome

COUNTS = ("periods", "placed", "moved", "moved_back", "released")


def scheduled(outcome: Outcome) -> dict[str, Any] | None:
    """The scheduler, its parameters and what it did during the replay (not before it, when probes look like
    elephants where links are slow); None where the controller moves nothing.

    Of controllers that were killed and came back it is the sum. placed: pairs of hosts that were hashed and
    got a path. moved: those that got another one; moved_back of
    them to one that they had been on before. released: those that ended, or had to be hashed again.
    moves_per_s: moved, over the replay. `moves` lists what happened, as far as it was kept; time_s from the
    replay's start.
    """
    if outcome.scheduling is None:
        return None
    before, books = outcome.scheduling  # a controller that was started anew has books of its own
    counts = {name: sum(each[name] for each in books) - before[name] for name in COUNTS}
    new = [move for each in books for move in each["moves"]][len(before["moves"]):]
    moves = [{**move, "time_s": move["time_s"] - outcome.started_s} for move in new]
    lasted_s = outcome.ended_s - outcome.started_s
    parameters = {name: before[name] for name in ("scheduler", "period_s", "threshold", "hysteresis")}
    return {**parameters, "elephants_most": max(each["elephants_most"] for each in books), **counts,
            "moves_per_s": counts["moved"] / lasted_s if lasted_s > 0 else 0.0, "moves": moves}
