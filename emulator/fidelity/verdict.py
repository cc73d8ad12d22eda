"""All checks together."""
from __future__ import annotations

from collections.abc import Callable

from emulator.fidelity import accounts, lateness, lossless, pace, samples
from emulator.fidelity.observations import Check, Observations, Verdict

CHECKS: tuple[Callable[[Observations], Check], ...] = (
    pace.shaping, pace.rate, pace.ceiling, pace.gaps, pace.idle, pace.steal, pace.timers,
    lateness.delay,
    accounts.conservation, accounts.packet_size, accounts.queue_limit, accounts.littles_law,
    accounts.packet_in, accounts.groups, accounts.finished, accounts.delivered, accounts.checksums,
    accounts.congestion_control, lossless.lossless, samples.queue_samples)


def judge(run: Observations) -> Verdict:
    """'pass' if every check holds, else 'fail'."""
    checks = tuple(check(run) for check in CHECKS)
    return Verdict("pass" if all(check.ok for check in checks) else "fail", checks)
