"""What a scaled job stands for: the real cluster beside the emulated one, what is kept and what is not."""
from __future__ import annotations

from typing import Any

from emulator.report.tables import percent, table
from traffic.target import Target


def scale(target: Target | None) -> list[Any]:
    """The block of the plan; nothing for workloads without a real job behind them."""
    if target is None:
        return []
    made = table(f"Scale: rates / {target.dilation:.6g}, bytes / {target.byte_scale:.6g}, "
                 f"times x {target.time_scale:.4g}", "", "real cluster", "emulated")
    for what, real, emulated in target.rows:
        made.add_row(what, real, emulated)
    if target.stages > 1:
        made.add_row("pipeline bubble", *2 * (percent(target.ideal_bubble),))
    return [made, *(f"Kept: {line}." for line in target.kept),
            *(f"Not kept: {line}." for line in target.lost)]
