"""How a select group chooses: the method's name and its 64-bit parameter to a mode of the pipeline.

The method travels in the group property of Open vSwitch (OpenFlow 1.5, experimenter 0x154d,
`selection_method`, `selection_method_param`, `fields`; ovs-ofctl(8)). The parameter:

  hash, dp_hash   all 64 bits are the seed, as in Open vSwitch
  flowlet         high 32 bits: gap in microseconds, not 0; low 32 bits: seed
  least-queue     high 32 bits: gap in microseconds (0: every packet chooses); low 32 bits: seed
  spray           high 32 bits: 0 round robin, 1 at random; low 32 bits: seed

`encode_param` is for who writes the controller, `decode_selection` for the switch.
"""
from __future__ import annotations

from dataclasses import dataclass

from emulator.asic.pipeline import MODES
from emulator.errors import BadInput, nearest

_LOW = 0xFFFFFFFF


@dataclass(frozen=True)
class Choice:
    """Mode of a PipelineGroup with its seed, gap and manner of spraying."""

    mode: str = "hash"
    seed: int = 0
    flowlet_gap_s: float = 0.0
    random_spray: bool = False


def decode_selection(method: str, param: int) -> Choice:
    """The mode that `method` and `param` (0 <= param < 2**64) ask for; BadInput if there is none."""
    if method not in MODES:
        raise BadInput(f'this switch has no selection method "{method}"{nearest(method, MODES)}.')
    high, low = param >> 32, param & _LOW
    if method == "flowlet" and high == 0:
        raise BadInput("selection method flowlet needs its gap in microseconds in the high 32 bits of "
                       "the parameter; without a gap every packet would move: that is spray.")
    if method == "spray" and high > 1:
        raise BadInput(f"selection method spray knows 0 (round robin) and 1 (random) in the high 32 "
                       f"bits of its parameter, not {high}.")
    if method == "spray":
        return Choice(method, low, random_spray=bool(high))
    if method in ("flowlet", "least-queue"):
        return Choice(method, low, flowlet_gap_s=high / 1e6)
    return Choice(method, param)


def encode_param(choice: Choice) -> int:
    """The parameter that asks for `choice`; BadInput if it cannot be said in 64 bits."""
    if choice.mode in ("hash", "dp_hash"):
        high, low = choice.seed >> 32, choice.seed & _LOW
    elif choice.mode == "spray":
        high, low = int(choice.random_spray), choice.seed
    else:
        high, low = round(choice.flowlet_gap_s * 1e6), choice.seed
    if not (0 <= high <= _LOW and 0 <= low <= _LOW):
        raise BadInput(f"{choice.mode}: a seed of 32 bits (64 for hash) and a gap below 4294 s are "
                       f"what the parameter can hold, not seed {choice.seed}, "
                       f"gap {choice.flowlet_gap_s} s.")
    param = high << 32 | low
    if decode_selection(choice.mode, param) != choice:
        raise BadInput(f"{choice} cannot be said in a selection_method_param: the gap counts whole "
                       "microseconds and belongs to flowlet and least-queue, random to spray.")
    return param
