"""Bit errors on links (`--loss`): the option, the programs' settings, their counters.

A frame is lost when any of its bits flips: 1 - (1 - rate)^bits. Real links lose what fails the frame check
sequence; here a frame counts as the shaper counts it, without preamble and FCS.
"""
from __future__ import annotations

import math
from typing import TYPE_CHECKING

from emulator.asic.layout import CAUSES
from emulator.errors import BadInput
from emulator.fabric.build import Fabric

if TYPE_CHECKING:
    from emulator.asic.chip import Chip

BIT_ERROR = "wire loss"  # of layout.CAUSES
MOST_LOSS = 0.2  # of one full frame; above, the programs' second-order formula is off by more than 1 %


def parse_bit_errors(text: str, frame_bytes: int, switch: str) -> float:
    """The bit error rate of `--loss`; BadInput for what is no rate, too large, or needs another switch."""
    try:
        rate = float(text)
    except ValueError:
        raise BadInput(f'--loss "{text}" is not a bit error rate; write for example 1e-7.') from None
    if not 0 <= rate < math.inf:
        raise BadInput(f'--loss "{text}" is not a chance a bit; write for example 1e-7.')
    if rate and switch != "bpf":
        raise BadInput(f'--loss "{text}" needs --switch bpf; Open vSwitch loses nothing on purpose.')
    check_bit_errors(rate, frame_bytes)
    return rate


def check_bit_errors(rate: float, frame_bytes: int) -> None:
    """Raise BadInput for a rate that loses more of the full frames than the programs can tell apart."""
    bits = 8 * frame_bytes
    if not 0 <= rate * bits <= MOST_LOSS:
        raise BadInput(f"A bit error rate of {rate:g} loses {1 - math.exp(-rate * bits):.0%} of the frames "
                       f"of {frame_bytes} bytes; give at most {MOST_LOSS / bits:.2g} here.")


def set_everywhere(chip: Chip, fabric: Fabric, rate: float) -> None:
    """Every link both ways: what a switch receives is struck there, what goes to a host before its queue."""
    for port in fabric.switch_ports:
        to_host = fabric.port[port.peer].netns is not None
        chip.set_bit_error_rate(port.ifindex, received=rate, sent=rate if to_host else 0.0)


def lost_packets(chip: Chip) -> dict[str, int]:
    """Port -> packets lost to bit errors, received and to be sent, since the start."""
    cause, lost = CAUSES.index(BIT_ERROR), {}
    for ifindex, port in chip.site.items():
        queues = chip.queues[ifindex * chip.classes:(ifindex + 1) * chip.classes]
        lost[port.name] = int(chip.drops["packets"][ifindex][cause]) + int(queues["lost_packets"].sum())
    return lost
