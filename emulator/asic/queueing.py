"""How a port of a bpf switch queues, as plain data: one class, or eight chosen by DSCP."""
from __future__ import annotations

from dataclasses import dataclass

from emulator.asic.layout import MAX_CLASSES
from emulator.errors import BadInput

DSCPS = 64


@dataclass(frozen=True)
class TrafficClass:
    """One egress queue of a port.

    strict: served before all classes after it and before all weighted ones, while it has packets.
    weight: its share among the weighted classes. limit_bytes: its tail-drop limit, None for the
    port's. mark_bytes: a packet that finds more than this in the queue is marked CE (DCTCP's K); None
    never.
    """

    weight: int = 1
    strict: bool = False
    limit_bytes: int | None = None
    mark_bytes: int | None = None


@dataclass(frozen=True)
class Queueing:
    """The classes of every port. class_of_dscp[d] is the class of DSCP d; pausable: each class has a gate."""

    classes: tuple[TrafficClass, ...] = (TrafficClass(),)
    class_of_dscp: tuple[int, ...] = (0,) * DSCPS
    pausable: bool = False

    def __post_init__(self) -> None:
        if len(self.classes) not in (1, MAX_CLASSES):
            raise BadInput(f"A port has 1 or {MAX_CLASSES} classes, not {len(self.classes)}.")
        known = range(len(self.classes))
        if len(self.class_of_dscp) != DSCPS or not all(each in known for each in self.class_of_dscp):
            raise BadInput(f"class_of_dscp must give each of the {DSCPS} DSCPs a class below {len(known)}.")
        for number, traffic_class in enumerate(self.classes):
            if not 1 <= traffic_class.weight <= 100:
                raise BadInput(f"The weight {traffic_class.weight} of class {number} is outside 1 to 100.")
            if traffic_class.mark_bytes is not None and not 0 < traffic_class.mark_bytes < 2**32:
                raise BadInput(f"Class {number} marks above {traffic_class.mark_bytes} bytes; "
                               "give more than 0.")


def one_queue(mark_bytes: int | None = None, pausable: bool = False) -> Queueing:
    """A port with a single queue."""
    return Queueing((TrafficClass(mark_bytes=mark_bytes),), pausable=pausable)


def eight_queues(classes: tuple[TrafficClass, ...], pausable: bool = False) -> Queueing:
    """Eight classes, class n for the eight DSCPs of class selector n (RFC 2474): 8n to 8n+7."""
    return Queueing(classes, tuple(dscp // 8 for dscp in range(DSCPS)), pausable)


def limits(queueing: Queueing, port_limit_bytes: int, frame_bytes: int) -> list[int]:
    """Tail-drop limit of each class in bytes; BadInput for one that cannot hold a frame."""
    found = [port_limit_bytes if each.limit_bytes is None else each.limit_bytes for each in queueing.classes]
    for number, limit in enumerate(found):
        if not frame_bytes <= limit < 2**32:
            raise BadInput(f"A limit of {limit} bytes for class {number} cannot hold one packet of "
                           f"{frame_bytes} bytes.")
    return found
