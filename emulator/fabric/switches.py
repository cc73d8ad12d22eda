"""What a run asks of its switches, whatever their kind (Open vSwitch or bpf)."""
from __future__ import annotations

from typing import Protocol

from emulator.telemetry.packets import PacketRecord


class Recording(Protocol):
    """A record in the making."""

    def stop(self) -> PacketRecord:
        """End it; what was seen."""


class Switches(Protocol):
    """All switches of a fabric, forwarding under their controller."""

    def path(self, source: str, destination: str, protocol: str, source_port: int,
             destination_port: int) -> tuple[str, ...]:
        """The interfaces that send a packet of this flow, in order; empty where a flow has many paths."""

    def losses(self) -> dict[str, int]:
        """Packets lost where no queue is, by cause, since the start."""

    def link_faults(self) -> list[str]:
        """A sentence for each port that is not as it was built."""

    def record(self) -> Recording | None:
        """Start recording every queue, packet by packet; None for a switch that cannot."""

    def failure(self) -> str | None:
        """None while its processes live, else a sentence."""

    def log_tail(self) -> str:
        """The end of its logs."""

    def stop(self) -> None:
        """End its processes."""
