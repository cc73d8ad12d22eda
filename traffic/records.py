"""What the engine hands back: one record a message, a span, a connection, an iteration. Plain data.

All times are seconds of one clock (CLOCK_MONOTONIC); sizes are payload bytes.
"""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple


class ConnectionKey(NamedTuple):
    """A one-way connection between two ranks; `channel` tells parallel ones apart.

    Messages of different traffic classes never share a connection: a class is a mark on its packets.
    """

    src: int
    dst: int
    channel: int
    traffic_class: str = ""


class Message(NamedTuple):
    """One message that was delivered and acknowledged.

    start_s: the send was issued. received_s: the last byte was read at the destination.
    acked_s: the last byte was acknowledged at the source (kernel time stamp); FCT = acked_s - start_s.
    retransmits: segments that the connection sent again in between.
    """

    iteration: int
    src: int
    dst: int
    channel: int
    tag: int
    size_bytes: int
    start_s: float
    received_s: float
    acked_s: float
    retransmits: int
    phase: str
    step: int
    traffic_class: str = ""


class Span(NamedTuple):
    """What a rank did from start_s to end_s: 'compute', 'send' or 'recv'.

    A recv begins when it was posted or when its message was sent, whichever is later: waiting for
    a peer that still computes is no communication. traffic_class: what its bytes are for.
    """

    iteration: int
    rank: int
    kind: str
    phase: str
    step: int
    start_s: float
    end_s: float
    traffic_class: str = ""


@dataclass(frozen=True)
class TcpInfo:
    """Part of struct tcp_info (include/uapi/linux/tcp.h). Times in seconds."""

    rtt_s: float
    min_rtt_s: float
    cwnd: int
    snd_mss: int
    total_retrans: int
    bytes_acked: int
    delivery_rate_bps: float
    data_segs_out: int
    delivered: int
    delivered_ce: int
    reord_seen: int
    dsack_dups: int


@dataclass(frozen=True)
class Connection:
    """A connection as it stood at the end, with the congestion control read back from its socket."""

    key: ConnectionKey
    src_port: int
    dst_port: int
    congestion_control: str
    info: TcpInfo
    rtt_samples_s: tuple[float, ...] = ()


@dataclass(frozen=True)
class Iteration:
    """Barrier to barrier. `index` counts from 0 in each job; the first `warmup` ones are not measured."""

    index: int
    measured: bool
    start_s: float
    end_s: float
    job: int = 0


@dataclass(frozen=True)
class EngineResult:
    """All that a replay produced. `stuck` holds a sentence for each rank that did not finish.

    Ranks are counted over all jobs, and `iteration` within each; the background's messages stand apart,
    with their number among its flows as tag. background_open: its flows that were begun and did not end.
    """

    messages: list[Message] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    connections: list[Connection] = field(default_factory=list)
    iterations: list[Iteration] = field(default_factory=list)
    stuck: list[str] = field(default_factory=list)
    bytes_expected: int = 0
    bytes_received: int = 0
    checksum_errors: int = 0
    wrong_values: int = 0
    verified: bool = False
    timer_lateness_s: tuple[float, ...] = ()
    received: list[tuple[float, int]] = field(default_factory=list)
    """(time, payload bytes received so far by all ranks), ten times a second"""
    wrong_by_job: tuple[int, ...] = ()
    """values and checksums that were wrong, of each job"""
    background: list[Message] = field(default_factory=list)
    background_open: tuple[int, ...] = ()
