"""The report of a real program: how its ranks ended."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.text import Text

from emulator.report.tables import seconds, table
from emulator.units import show_size

MOST_RANKS = 32


def program(summary: Mapping[str, Any]) -> list[Any]:
    """A row a rank where they are few, and what its sockets were."""
    p = summary["program"]
    if not p["ranks"]:
        return []
    made = table(f"Ranks of the program (user {p['user']})", "rank", "host", "ended with", "CPU", "sent",
                 "last line of stderr")
    made.columns[-1].justify = "left"
    for end in p["ranks"][:MOST_RANKS]:
        how = end["signal"] or ("ended by the run" if end["exit_status"] is None else str(end["exit_status"]))
        made.add_row(str(end["rank"]), end["host"], how, seconds(end["cpu_s"]), show_size(end["sent_bytes"]),
                     end["last_line"])
    used = ", ".join(f"{count} with {name}" for name, count in p["congestion_controls"].items())
    line = (f"{p['connections']} connections between hosts (sockets: {used or 'none seen'}), "
            f"{p['local_connections']} within hosts. A program has no ideal time.")
    return [made, Text(line)]
