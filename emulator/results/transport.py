"""What TCP saw: reordering, and segments that were sent again though they had arrived."""
from __future__ import annotations

from typing import Any

from emulator.outcome import Outcome


def transport(outcome: Outcome) -> dict[str, Any] | None:
    """The block `transport`, from each sender's TCP_INFO at the end; None without connections.

    reordering_events: times that a sender found an acknowledgement overtaken (tcpi_reord_seen);
    reordered_connections: connections with any. spurious_retransmissions: segments that the receiver had
    got before (tcpi_dsack_dups, RFC 2883); their share is of all segments sent again. rtt_min_s: the least
    round trip of any connection; of a real program under a routing that reorders, the last
    (`FOR_REORDERING`).
    """
    if outcome.engine is None or not outcome.engine.connections:
        return None
    infos = [connection.info for connection in outcome.engine.connections]
    again = sum(info.total_retrans for info in infos)
    spurious = sum(info.dsack_dups for info in infos)
    return {"connections": len(infos), "segments_sent": sum(info.data_segs_out for info in infos),
            "reordering_events": sum(info.reord_seen for info in infos),
            "reordered_connections": sum(info.reord_seen > 0 for info in infos),
            "rtt_min_s": min(info.min_rtt_s for info in infos),
            "retransmitted_segments": again, "spurious_retransmissions": spurious,
            "spurious_share": spurious / again if again else 0.0}
