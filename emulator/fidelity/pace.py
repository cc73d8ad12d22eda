"""Checks 1 to 3: did the emulation keep its own time? Rates of ports, idleness of cores, timers. Pure.

A check whose subject did not occur passes and says 'not exercised'.
"""
from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from emulator.fidelity.observations import Check, Observations
from emulator.telemetry.shaping import backlogged_rates, excess_bytes
from emulator.telemetry.statistics import all_ticks, utilisation
from emulator.units import show_rate, show_size, show_time

RATE_TOLERANCE = 0.01
GAP_P90_LIMIT = 0.10
IDLE_LIMIT = 0.35       # Handigol et al. (Mininet-HiFi), CoNEXT 2012
STEAL_LIMIT = 0.05
MARGIN = 0.9            # a proposed rate aims below the limit, not at it


def some(reasons: Iterable[str]) -> str:
    """The first three of several reasons, and how many more there are."""
    listed = list(reasons)
    rest = f", and {len(listed) - 3} more" if len(listed) > 3 else ""
    return "; ".join(listed[:3]) + rest


def as_option(rate_bps: float) -> str:
    """A rate as `--rate` takes it, to two digits: '12mbit'."""
    for scale, unit in ((1e9, "gbit"), (1e6, "mbit"), (1e3, "kbit")):
        if rate_bps >= scale:
            digits = ".2g" if rate_bps < 99.5 * scale else ".0f"
            return f"{rate_bps / scale:{digits}}{unit}"
    return f"{rate_bps:.0f}bit"


def shaping(run: Observations) -> Check:
    """1. Every port is shaped as configured, at the end and at every sample.

    Value: ports whose HTB was missing at any time, whose class was read back at another rate (by more
    than 0.1 %; HTB keeps whole bytes a second), that let packets pass without a class, or that were in
    any other way not as configured at the end.
    """
    wrong: dict[str, str] = {}
    for series in run.series:
        for port, when_s in zip(series.ports, series.unshaped_s):
            if not math.isnan(when_s):
                wrong[port.name] = f"{port.name} was without HTB {when_s - run.start_s:+.2f} s from the start"
    for port in run.ports:
        rate_bps = run.shaped_bps.get(port.name)
        direct = run.between.queues[port.name].direct_packets
        if rate_bps is None:
            wrong.setdefault(port.name, f"{port.name} has no HTB class at the end")
        elif abs(rate_bps - port.rate_bps) > 1e-3 * port.rate_bps + 8 and port.name not in run.planned.at_end:
            wrong.setdefault(port.name, f"{port.name} is shaped to {show_rate(rate_bps)}, not "
                                        f"{show_rate(port.rate_bps)}")
        elif direct:
            wrong.setdefault(port.name, f"{direct} packets left {port.name} unshaped, without a class")
    for sentence in run.link_faults:
        if not any(name in sentence for name in wrong) and not run.planned.excuses(sentence):
            wrong[sentence] = sentence.rstrip(".")
    if not wrong:
        return Check("shaping", 0, 0, True, f"all {len(run.ports)} ports were shaped as configured")
    return Check("shaping", len(wrong), 0, False, f"{some(wrong.values())}; something outside the "
                 f"emulator changed these queues: stop it and run again")


def rate(run: Observations) -> Check:
    """1. Ports that certainly had something to send sent at their rate, long-run within 1 %.

    Value: the worst |ratio - 1| over the ports, less what packets and burst account for (see
    shaping.backlogged_rates).
    """
    quantum = run.burst_bytes + run.frame_bytes
    seen = [found for series in run.steady for found in backlogged_rates(series, quantum)
            if found.port.name not in run.paused]
    if not seen:
        peaks = [float(utilisation(series, run.frame_bytes)[1].max()) for series in run.measured]
        return Check("rate", 0.0, RATE_TOLERANCE, True,
                     f"not exercised: no port was provably backlogged for the time of 100 packets; the "
                     f"busiest sent at {max(peaks, default=0.0):.3f} of its rate")
    worst = max(seen, key=lambda found: abs(found.ratio - 1) - found.uncertainty)
    value = max(0.0, abs(worst.ratio - 1) - worst.uncertainty)
    why = (f"{worst.port.name} sent at {worst.ratio:.4f} of its rate over {show_time(worst.seconds)} of "
           f"backlog (known to {worst.uncertainty:.4f}); {len(seen)} ports were backlogged")
    if value > RATE_TOLERANCE:
        lower = run.host_rate_bps * min(worst.ratio, 1.0) * MARGIN
        why += (f": the machine is too slow, lower --rate to about {as_option(lower)}"
                if worst.ratio < 1 else ": its shaper does not hold, see `tc -d class show`")
    return Check("rate", value, RATE_TOLERANCE, value <= RATE_TOLERANCE, why)


def ceiling(run: Observations) -> Check:
    """1. No port ever sent more than its rate (and 1 %) allows in any window.

    Value: the most bytes beyond rate times time (see shaping.excess_bytes). Limit: the shaper's burst
    and one frame.
    """
    limit = run.burst_bytes + run.frame_bytes
    worst, where = 0.0, ""
    for series in run.steady:
        excess = excess_bytes(series, RATE_TOLERANCE)
        if excess.max(initial=0.0) > worst:
            worst, where = float(excess.max()), series.ports[int(excess.argmax())].name
    why = "no port sent more than its rate"
    if worst:
        why = f"{where} sent at most {show_size(worst)} beyond its rate, {show_size(limit)} being allowed"
    if worst > limit:
        why += ": its shaper does not hold, see `tc -d class show`"
    return Check("ceiling", worst, limit, worst <= limit, why)


def gaps(run: Observations) -> Check:
    """1. Where departures are seen packet by packet: p90 deviation of the gaps of backlogged ports."""
    if run.dequeue_gap_deviation is None:
        return Check("gaps", 0.0, GAP_P90_LIMIT, True,
                     "not exercised: departures were not seen packet by packet")
    p90, p99 = run.dequeue_gap_deviation
    why = f"gaps between packets deviate by {p90:.1%} at p90 and {p99:.1%} at p99"
    if p90 > GAP_P90_LIMIT:
        why += f": lower --rate to about {as_option(run.host_rate_bps * GAP_P90_LIMIT / p90 * MARGIN)}"
    return Check("gaps", p90, GAP_P90_LIMIT, p90 <= GAP_P90_LIMIT, why)


def _seconds(run: Observations) -> tuple[np.ndarray, str]:
    """Rows of the core series to judge: full seconds of the window, else those that touch it."""
    starts, ends = run.cores.time_s[:-1], run.cores.time_s[1:]
    whole = (starts >= run.start_s) & (ends <= run.end_s)
    if whole.any():
        return whole, ""
    return (ends > run.start_s) & (starts < run.end_s), " (no full second in the window: those around it)"


def idle(run: Observations) -> Check:
    """2. Every core idle for at least 35 % of every full second of the window."""
    rows, note = _seconds(run)
    shares = run.cores.idle[rows]
    if not shares.size:
        return Check("idle", 0.0, IDLE_LIMIT, False, "the cores were not watched in the measured window")
    second, core = np.unravel_index(shares.argmin(), shares.shape)
    least = float(shares.min())
    when_s = run.cores.time_s[:-1][rows][second] - run.start_s
    why = f"core {core} was {least:.0%} idle in the second from {when_s:+.1f} s{note}"
    if run.program_cpu_s is not None:
        why += f" (the program runs on these cores too: it took {run.program_cpu_s:.1f} s of them in all)"
    if least < IDLE_LIMIT and run.program_cpu_s is not None:
        why += (": let it compute less, sleep where it polls, or mark its steps (FABRIC_MARKS) so that its "
                "start does not count")
    elif least < IDLE_LIMIT:
        lower = run.host_rate_bps * (1 - IDLE_LIMIT) / (1 - least) * MARGIN
        why += (f", {IDLE_LIMIT - least:.0%} too little: lower --rate to about {as_option(lower)}, use fewer "
                f"hosts, or stop what else runs on this machine")
    return Check("idle", least, IDLE_LIMIT, least >= IDLE_LIMIT, why)


def steal(run: Observations) -> Check:
    """2. The hypervisor took no core away for long: at most 5 % of the window, on any core.

    Stolen time is not idle time, so `idle` already fails a second in which it cost anything, and `timers`
    and `rate` where it made something late. Virtual machines on shared hosts show 1 to 3 % all along
    (measured, with all ports within 1 % of their rate).
    """
    rows, note = _seconds(run)
    shares = run.cores.steal[rows]
    if not shares.size:
        return Check("steal", 0.0, STEAL_LIMIT, False, "the cores were not watched in the measured window")
    most = float(shares.mean(axis=0).max())
    why = f"{most:.1%} of a core's time was stolen, {float(shares.max()):.0%} in the worst second{note}"
    if most > STEAL_LIMIT:
        why += ": this virtual machine's host is busy; run again, or elsewhere"
    return Check("steal", most, STEAL_LIMIT, most <= STEAL_LIMIT, why)


def timers(run: Observations) -> Check:
    """3. Timer lateness p99, of all ticks of the sampler due in the window, at most one full frame's time.

    The frame's time is that on the fastest link. Ticks that were missed altogether count (see
    statistics.all_ticks); so does a sampler that started after the window or stopped within it.
    """
    limit = run.frame_bytes * 8 / max(port.rate_bps for port in run.ports)
    series = min(run.series, key=lambda part: part.period_s, default=None)
    if series is None or len(series.time_s) < 2:
        return Check("timers", 0.0, limit, False, "the queues were not sampled")
    bare_s = float(max(series.time_s[0] - run.start_s, run.end_s - series.time_s[-1]))
    # the window is cut by when ticks were due: one that came late, after its end, is of it all the same
    due_s, late_s = all_ticks(series)
    late_s = late_s[(due_s >= run.start_s) & (due_s <= run.end_s)]
    if bare_s <= 0 and not len(late_s):
        return Check("timers", 0.0, limit, True, "not exercised: the traffic ended before a timer was due")
    if bare_s > 2 * series.period_s or not len(late_s):
        return Check("timers", bare_s, limit, False,
                     f"the queues were not sampled for {show_time(bare_s)} of the measured window; start the "
                     f"sampler before it and give it a longer deadline")
    value = float(np.percentile(late_s, 99))
    why = f"timers were {show_time(value)} late at p99, a frame takes {show_time(limit)} on the fastest link"
    if value > limit:
        lower = run.host_rate_bps * limit / value * MARGIN
        why += f": lower --rate to about {as_option(lower)}, or stop what else runs on this machine"
    return Check("timers", value, limit, value <= limit, why)
