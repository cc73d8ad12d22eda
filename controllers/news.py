"""What the controller is told besides OpenFlow messages; it handles all of it in one thread, in order."""
from __future__ import annotations

from dataclasses import dataclass
from queue import SimpleQueue

from os_ken.controller import event as osken_event


class Replan(osken_event.EventBase):
    """Plan anew, after whatever else has come in by now."""


class Look(osken_event.EventBase):
    """A period of global scheduling is over: look at the counters of pairs."""


class CountTraffic(osken_event.EventBase):
    """Ask every switch what its ports have sent."""


@dataclass
class Drain(osken_event.EventBase):
    """Take a link's or a switch's traffic away, or give it back; the answer is '' or why not."""

    name: str
    drained: bool
    answer: SimpleQueue

    def __post_init__(self) -> None:
        super().__init__()


class Begin(osken_event.EventBase):
    """Not all switches have come: begin with those that have."""
