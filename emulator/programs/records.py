"""What a program leaves behind besides its traffic. Plain data."""
from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class RankEnd:
    """How the process of one rank ended.

    exit_status: None while it had not ended by itself (it was ended by us, or its launcher did not tell).
    signal: the name of the signal that ended it, such as 'SIGSEGV', else ''. cpu_s: user and system time
    of the process and its children; None where another program started it. last_line: of its stderr.
    """

    rank: int
    host: str
    exit_status: int | None
    signal: str = ""
    cpu_s: float | None = None
    last_line: str = ""


@dataclass(frozen=True)
class ProgramResult:
    """All that is known of a program that ran.

    user: whose rights it had. cpu_s: of all its processes. connections: TCP connections between hosts of
    the fabric, whether or not they carried data. local_connections: within a host. congestion_controls:
    name -> sockets that used it, as seen by polling. missed: ends of sockets that the kernel could not tell. marks: moments
    that tell steps apart.
    """

    ranks: tuple[RankEnd, ...]
    user: str
    cpu_s: float
    connections: int
    local_connections: int
    congestion_controls: dict[str, int]
    poll_s: float
    missed: int
    marks: int
    notes: tuple[str, ...] = ()
