"""Nothing of what the switches wrote down about their queues was lost before it was read. Pure."""
from __future__ import annotations

from emulator.fidelity.observations import Check, Observations
from emulator.fidelity.pace import as_option


def queue_samples(run: Observations) -> Check:
    """Every sample of a queue's depth was read before the next ones overwrote it.

    Value: samples that were overwritten. Limit: 0. The switches of a fabric share one ring of them
    (asic/telemetry.py); where some are missing, percentiles of depth and waits by class are wrong.
    """
    if run.lost_samples is None:
        return Check("queue-samples", 0, 0, True, "not exercised: queues were not recorded packet by packet")
    if not run.lost_samples:
        return Check("queue-samples", 0, 0, True, "every recorded change of a queue's depth was read")
    return Check("queue-samples", run.lost_samples, 0, False,
                 f"{run.lost_samples} samples of queue depths were overwritten before they were read, so the "
                 "percentiles of the queues are wrong: the machine is too slow for so many busy queues; lower "
                 f"--rate to about {as_option(run.host_rate_bps / 2)} or use fewer hosts")
