"""What every collective asks of its arguments."""
from __future__ import annotations

from emulator.errors import BadInput


def check_arguments(what: str, ranks: int, size_bytes: int, slices: int = 1, channels: int = 1) -> None:
    """Refuse counts below one; `what` names the collective in the sentence."""
    for name, value in (("ranks", ranks), ("bytes", size_bytes), ("slices", slices),
                        ("channels", channels)):
        if value < 1:
            raise BadInput(f"{what}: {name}={value} must be at least 1.")
