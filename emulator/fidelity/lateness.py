"""Did the links keep their delay? Pure."""
from __future__ import annotations

from emulator.delay.record import WAYS
from emulator.fidelity.observations import Check, Observations
from emulator.fidelity.pace import MARGIN, as_option
from emulator.units import show_time

DELAY_SHARE = 0.05
TIMED = 0.9
MEASURED = {"relay": "from the kernel's time of arrival to the call that sends it on",
            "netem": "from its arrival to its leaving the qdisc, each in the kernel"}


def delay(run: Observations) -> Check:
    """Links with a delay (`--delay`) delivered on time.

    Value: how late packets went on, 99th percentile, in seconds: from their arrival in the middle of a link,
    in the kernel, to the call that sends them on (relay) or to their leaving netem, over its delay. Limit: the
    time of one full frame on the fastest link, or 5 % of the delay, whichever is more. It fails too where the
    relay ended or a netem was changed, where somebody set the clock that the relay goes by, and where less
    than TIMED of the packets were seen leaving netem. Packets that were lost are conservation's business.
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
    seen = f", of which {record.timed} were timed" if record.timed != record.relayed else ""
    why = (f"by {WAYS[record.way]}, {record.relayed} times a packet crossed a link{seen}, in "
           f"{show_time(record.delay_s)} and {show_time(record.late_p50_s)} (median), "
           f"{show_time(record.late_p99_s)} (p99), {show_time(record.late_max_s)} (most), {MEASURED[record.way]}")
    if record.timed < TIMED * record.relayed:
        return Check("delay", record.late_p99_s, limit, False, f"{why}: the rest may have been late; run again")
    if record.clock_steps:
        return Check("delay", record.late_p99_s, limit, False,
                     f"{why}; somebody set the machine's clock {record.clock_steps} times meanwhile: run "
                     "again")
    ok = record.late_p99_s <= limit
    if not ok:
        lower = run.host_rate_bps * limit / record.late_p99_s * MARGIN
        why += f": lower --rate to about {as_option(lower)}, or stop what else runs on this machine"
    return Check("delay", record.late_p99_s, limit, ok, why)
