"""A lossless class loses nothing: the pauses came in time. Pure."""
from __future__ import annotations

from emulator.fidelity.observations import Check, Observations
from emulator.units import show_time


def lossless(run: Observations) -> Check:
    """No switch dropped a packet of a lossless class.

    Value: packets of lossless classes that switches' queues refused. Limit: 0. A real chip pauses within the
    time of a frame or two; here a process looks at the queues, and what it is late by must fit the headroom.
    """
    if run.pauses is None:
        return Check("lossless", 0, 0, True, "not exercised: no class is lossless")
    pauses = sum(each.pauses for each in run.pauses.ports)
    longest_s = max((each.longest_s for each in run.pauses.ports), default=0.0)
    why = (f"{pauses} pauses of {len(run.paused)} ports, the longest {show_time(longest_s)}; queues were "
           f"looked at every {show_time(run.pauses.period_s)}, {show_time(run.pauses.late_p99_s)} late at "
           f"p99 and {show_time(run.pauses.late_max_s)} at worst")
    if run.lossless_drops:
        why = (f"{run.lossless_drops} packets of lossless classes were dropped; {why}: lower --rate, or "
               "raise --buffer")
    return Check("lossless", run.lossless_drops, 0, not run.lossless_drops, why)
