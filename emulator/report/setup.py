"""The report's line on what it took to set the fabric up."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from emulator.units import show_size, show_time


def line(up_s: float, ready_s: float, processes: int, largest: int, kernel: int) -> str:
    """Times and memory of a fabric that stands; bytes as in emulator.memory."""
    held = (f"{show_size(processes)} in processes (largest {show_size(largest)}), "
            f"{show_size(max(kernel, 0))} in the kernel")
    return (f"Fabric: stood after {show_time(up_s)}, every path proven after {show_time(ready_s)}; "
            f"memory {held}")


def lines(summary: Mapping[str, Any]) -> list[str]:
    """None for a run whose fabric never stood."""
    s = summary["setup"]
    if s["memory_processes_bytes"] is None:
        return []
    return [line(s["up_s"], s["ready_s"], s["memory_processes_bytes"], s["memory_largest_process_bytes"],
                 s["memory_kernel_bytes"])]
