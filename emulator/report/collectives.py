"""Collectives in the table of nccl-tests, for eyes and scripts that know it.

size: S in bytes. count: elements as nccl-tests counts them (of a rank's share in all-gather,
reduce-scatter and all-to-all). algbw = S / time; busbw = algbw times the factor of the operation
(nccl-tests, doc/PERFORMANCE.md). #wrong: values that were not the sum, with --verify; else N/A.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

ROOTED = ("broadcast", "reduce")
REDUCING = ("all-reduce", "reduce", "reduce-scatter")
SHARED_OUT = ("all-gather", "reduce-scatter", "all-to-all")
ELEMENT = "uint8"
"""What --verify adds up, modulo 256."""

_LINE = "{:>11} {:>11} {:>5} {:>5} {:>4} {:>11} {:>9} {:>9} {:>6}"
"""79 columns, so that no terminal folds it; the operation of rows stands in a line before them."""


def collectives(jobs: Sequence[Mapping[str, Any]], dilation: float = 1.0) -> str:
    """The table of all jobs that are collectives; empty where none is. One line a job, and so a size."""
    rows = [job for job in jobs if job["collective"] and job["runs"]]
    if not rows:
        return ""
    fastest = max((job["busbw_bps"] or 0.0 for job in rows), default=0.0)
    unit, scale = ("GB/s", 8e9) if fastest >= 8e9 else ("MB/s", 8e6)
    lines = [_LINE.format("size", "count", "type", "redop", "root", "time", "algbw", "busbw", "#wrong"),
             _LINE.format("(B)", "(elements)", "", "", "", "(us)", f"({unit})", f"({unit})", "")]
    above = ""
    for job in rows:
        operation = f"# {job['algorithm']} ({job['ranks']} ranks)"
        if operation != above:
            lines.append(operation)
            above = operation
        count = job["size_bytes"] // job["ranks"] if job["collective"] in SHARED_OUT else job["size_bytes"]
        digits = 1 if (job["completion_s"] or 0.0) < 100 else 0
        lines.append(_LINE.format(
            job["size_bytes"], count, ELEMENT, "sum" if job["collective"] in REDUCING else "none",
            0 if job["collective"] in ROOTED else -1, _number(job["completion_s"], 1e-6, digits),
            _number(job["algbw_bps"], scale, 4), _number(job["busbw_bps"], scale, 4),
            "N/A" if job["wrong_values"] is None else job["wrong_values"]))
    busbw = [job["busbw_bps"] for job in rows if job["busbw_bps"]]
    if busbw:
        lines.append(f"Avg bus bandwidth: {sum(busbw) / len(busbw) / scale:.4f} {unit}")
    if dilation != 1:
        lines.append(f"As emulated; the target is {dilation:g} times as fast.")
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _number(value: float | None, scale: float, digits: int) -> str:
    return "-" if value is None else f"{value / scale:.{digits}f}"
