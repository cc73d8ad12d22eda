"""Did the links keep their delay? Pure."""
from __future__ import annotations

from emulator.fidelity.observations import Check, Observations
from emulator.fidelity.pace import MARGIN, as_option
from emulator.units import show_time

DELAY_SHARE = 0.05


def delay(run: Observations) -> Check:
    """Links with a delay (`--delay`) delivered on time.

    Value: how late the relay sent packets on, 99th percentile, in seconds. Limit: the time of one full frame
    on the fastest link, or 5 % of the delay, whichever is more. A relay that ended, or a clock that somebody
    set meanwhile, fails it too; packets that the relay lost are conservation's business.
    """
    frame_s = run.frame_bytes * 8 / max(port.rate_bps for port in run.ports)
    record = run.delay
    if record is None:
        return Check("delay", 0.0, frame_s, True, "not exercised: links have no delay")
    limit = max(frame_s, DELAY_SHARE * record.delay_s)
    if record.failure:
        return Check("delay", limit, limit, False, record.failure.rstrip("."))
    if record.late_p99_s is None:
        return Check("delay", 0.0, limit, False, "no packet crossed a link")
    why = (f"{record.relayed} times a packet crossed a link in {show_time(record.delay_s)} and "
           f"{show_time(record.late_p50_s)} (median), {show_time(record.late_p99_s)} (p99), "
           f"{show_time(record.late_max_s)} (most)")
    if record.clock_steps:
        return Check("delay", record.late_p99_s, limit, False,
                     f"{why}; somebody set the machine's clock {record.clock_steps} times meanwhile: run "
                     "again")
    ok = record.late_p99_s <= limit
    if not ok:
        lower = run.host_rate_bps * limit / record.late_p99_s * MARGIN
        why += f": lower --rate to about {as_option(lower)}, or stop what else runs on this machine"
    return Check("delay", record.late_p99_s, limit, ok, why)
