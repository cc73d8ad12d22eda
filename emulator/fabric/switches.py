"""What a run asks of its switches, whatever their kind (Open vSwitch or bpf)."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from emulator.fabric.spec import FabricSpec
from emulator.telemetry.packets import PacketRecord


FIRST_OPENFLOW_PORT = 6700  # of the bpf switches, in the order of the graph, on 127.0.0.1 of the sandbox


def openflow_target(spec: FabricSpec, switch: str) -> str:
    """What `ovs-ofctl` takes to reach a switch from within the sandbox: a bridge or an address."""
    if spec.switch == "ovs":
        return switch
    index = [each.name for each in spec.graph.switches].index(switch)
    return f"tcp:127.0.0.1:{FIRST_OPENFLOW_PORT + index}"


class Recording(Protocol):
    """A record in the making."""

    def stop(self) -> PacketRecord:
        """End it; what was seen."""


class Switches(Protocol):
    """All switches of a fabric, forwarding under their controller."""

    def path(self, source: str, destination: str, protocol: str, source_port: int,
             destination_port: int) -> tuple[str, ...]:
        """The interfaces that send a packet of this flow, in order; empty where a flow has many paths."""

    def group_packets(self) -> Mapping[str, int]:
        """Interface -> packets that select groups sent out of it since the start, where only they do; empty
        for a switch that does not count them at once."""

    def losses(self) -> dict[str, int]:
        """Packets lost where no queue is, by cause, since the start."""

    def set_bit_error_rate(self, rate: float) -> None:
        """Lose packets of every link, both ways, as if each bit flipped with this chance."""

    def bit_errors(self) -> dict[str, int]:
        """Switch port -> packets of its link lost to bit errors, since the start; empty where none can be."""

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
