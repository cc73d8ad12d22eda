"""What the verdict is given (Observations) and what it is (Verdict), as plain data."""
from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from emulator.delay.record import DelayRecord
from emulator.fabric.spec import ETHERNET_BYTES, Port
from emulator.telemetry.counters import Snapshot
from emulator.telemetry.cpu import CoreSeries
from emulator.telemetry.pauses import PauseRecord
from emulator.telemetry.series import QueueSeries


@dataclass(frozen=True)
class PathDelay:
    """A flow's mean round trip, for Little's law.

    name: such as 'h1-h3'. ports: the names of all ports that its packets and their acknowledgements
    leave by. rtt_s: mean of its round-trip times; base_rtt_s: of the empty path. waits_s: port -> mean wait
    in its class's queue there, in the place of the whole port's, where ports have several classes.
    """

    name: str
    ports: tuple[str, ...]
    rtt_s: float
    base_rtt_s: float
    waits_s: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Planned:
    """What events did to the fabric on purpose, by interface; all empty where there were none.

    interrupted: had no link at some time; reshaped: had another rate; at_end: is not as it was built
    when the run ends. lost_at: packets that a dead link took, waiting in its queue or sent to it; only
    where the switches count what arrives at a queue (`counted`).
    """

    interrupted: frozenset[str] = frozenset()
    reshaped: frozenset[str] = frozenset()
    at_end: frozenset[str] = frozenset()
    lost_at: Mapping[str, int] = field(default_factory=dict)
    counted: bool = True

    def excuses(self, sentence: str) -> bool:
        """Does a sentence about a port that is not as it was built speak of one of ours?"""
        return not self.at_end.isdisjoint(re.findall(r"[\w.-]+", sentence))


@dataclass(frozen=True)
class Observations:
    """One run. Times are CLOCK_MONOTONIC.

    ports: every port, both ends of every link.
    mtu: IP packet size in bytes. burst_bytes: burst (and cburst) of the ports' HTB class.
    start_s, end_s: the measured window; warm-up lies before it.
    series: the sampler's, of the whole run; only samples in the window are judged.
    cores: idle and steal, of the whole run.
    between: the difference of the counters from before the first packet to after the last one.
    shaped_bps: interface -> rate of its HTB class as read back at the end; None where HTB is gone.
    link_faults: a sentence for each port that was not as configured at the end.
    offloads: interface -> names of the segmentation and coalescing offloads found on at the end.
    packet_ins: packets that switches sent to the controller in the window.
    unfinished: a sentence for each flow or message that did not end.
    bytes_expected, bytes_received: payload of all flows of the run, by schedule and as received.
    payload_errors: received blocks whose checksum or sum was wrong.
    group_packets: interface -> packets that select groups counted out of it over `between`, for those
        interfaces that only groups send to.
    datapath_losses: what (such as 'lookups lost of ovs-netdev') -> packets lost where no queue is.
    switch_drops: switch -> packets that it was told to drop (random loss, default drop) and counted.
    kept_frames: switch -> frames that only wake a queue (asic/gate.py) which it kept, less those that it
    sent. paths: round trips of long flows; empty where none was measured.
    program_cpu_s: what the processes of a real program took of this machine's cores, start-up included; None
        where a workload was replayed.
    impossible_windows: congestion windows of a BPF algorithm that no TCP could have reached.
    delay: what delayed links (--delay) did, None where links have no delay.
    pauses: of lossless classes; None without one. lossless_drops: packets that switches' queues of lossless
        classes refused.
    lost_samples: of queue depths that were overwritten before they were read; None where no switch sees its
        queues packet by packet.
    planned: what events did on purpose, which is no fault.
    dequeue_gap_deviation: (p90, p99) of |gap / frame time - 1| on backlogged ports, where departures
        are seen packet by packet; None elsewhere.
    """

    ports: tuple[Port, ...]
    mtu: int
    burst_bytes: int
    start_s: float
    end_s: float
    series: tuple[QueueSeries, ...]
    cores: CoreSeries
    between: Snapshot
    shaped_bps: Mapping[str, float | None]
    offloads: Mapping[str, tuple[str, ...]]
    packet_ins: int
    unfinished: tuple[str, ...]
    bytes_expected: int
    bytes_received: int
    payload_errors: int
    group_packets: Mapping[str, int] = field(default_factory=dict)
    datapath_losses: Mapping[str, int] = field(default_factory=dict)
    switch_drops: Mapping[str, int] = field(default_factory=dict)
    paths: tuple[PathDelay, ...] = ()
    link_faults: tuple[str, ...] = ()
    dequeue_gap_deviation: tuple[float, float] | None = None
    impossible_windows: int = 0
    program_cpu_s: float | None = None
    planned: Planned = Planned()
    delay: DelayRecord | None = None
    pauses: PauseRecord | None = None
    kept_frames: Mapping[str, int] = field(default_factory=dict)
    lossless_drops: int = 0
    lost_samples: int | None = None

    @property
    def paused(self) -> frozenset[str]:
        """The interfaces that were held back at some time: they may have had packets and not sent."""
        return frozenset(each.port for each in self.pauses.ports) if self.pauses else frozenset()

    @property
    def frame_bytes(self) -> int:
        """The largest frame as the kernel's queues count it."""
        return self.mtu + ETHERNET_BYTES

    @property
    def measured(self) -> list[QueueSeries]:
        """The series, cut to the window."""
        return [series.between(self.start_s, self.end_s) for series in self.series]

    @property
    def steady(self) -> list[QueueSeries]:
        """`measured` without the ports whose link or rate an event changed: they owe no rate."""
        changed = self.planned.interrupted | self.planned.reshaped
        return [series.without(changed) for series in self.measured] if changed else self.measured

    @property
    def host_rate_bps(self) -> float:
        """The rate of a host's link, which `--rate` sets; the slowest port's if there is no host."""
        hosts = [port.rate_bps for port in self.ports if port.netns is not None]
        return min(hosts or [port.rate_bps for port in self.ports])


@dataclass(frozen=True)
class Check:
    """One check: its value against its limit, and a sentence that says by how much and what to change."""

    name: str
    value: float
    limit: float
    ok: bool
    why: str


@dataclass(frozen=True)
class Verdict:
    """'pass' if every check holds, else 'fail'."""

    verdict: str
    checks: tuple[Check, ...]

    @property
    def reasons(self) -> tuple[str, ...]:
        """'name: why' of each check that failed."""
        return tuple(f"{check.name}: {check.why}" for check in self.checks if not check.ok)

    def as_json(self) -> dict[str, object]:
        """The block `fidelity` of summary.json."""
        return asdict(self)
