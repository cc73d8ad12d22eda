"""Classes of service: a small table that gives each kind of traffic a queue of its own on every port.

A class has a name (what the workload calls its messages: 'gradients', 'storage', …), the DSCP that its
packets carry, and how a port serves it: strictly before the others, or by weight among them. Pure.
DSCPs follow RFC 4594 and, for traffic that yields to all else, RFC 8622.
"""
from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from emulator.asic.layout import INGRESS_PORTS, MAX_CLASSES
from emulator.asic.pausing import Thresholds, thresholds
from emulator.asic.queueing import DSCPS, Queueing, TrafficClass
from emulator.errors import BadInput
from topologies.graph import Graph

MOST_WEIGHT = 100
BEST_EFFORT = "best-effort"


@dataclass(frozen=True)
class ServiceClass:
    """One row of the table.

    weight: its share among the weighted classes; None for a strict class, which is served before all
    classes below it in the table and before all weighted ones. buffer_share: its part of a port's buffer,
    0 to 1; None for an equal part of what the others leave. ecn_bytes: a packet that finds more than this
    in the class's queue is marked; None for what --ecn says. lossless: ports upstream are paused before
    its queue overflows (IEEE 802.1Qbb).
    """

    name: str
    dscp: int
    weight: int | None = 1
    buffer_share: float | None = None
    ecn_bytes: int | None = None
    lossless: bool = False

    @property
    def strict(self) -> bool:
        return self.weight is None

    @property
    def service(self) -> str:
        """'strict' or 'weight 4'."""
        return "strict" if self.strict else f"weight {self.weight}"


@dataclass(frozen=True)
class ClassTable:
    """Up to eight classes, strict ones in order of their importance. One has DSCP 0: everything that names
    no class of the table goes there."""

    classes: tuple[ServiceClass, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(each.name for each in self.classes)

    @property
    def rest(self) -> int:
        """The number of the class with DSCP 0."""
        return next(number for number, each in enumerate(self.classes) if each.dscp == 0)

    def number(self, name: str) -> int:
        """The number of the class that traffic called `name` belongs to."""
        return self.names.index(name) if name in self.names else self.rest

    def dscp(self, name: str) -> int:
        """What packets of traffic called `name` carry."""
        return self.classes[self.number(name)].dscp

    def with_weight(self, name: str, weight: int) -> ClassTable:
        """The table after one class got another weight; BadInput where it has none or is not there."""
        found = [each for each in self.classes if each.name == name]
        if not found:
            raise BadInput(f'there is no class "{name}"; there are {", ".join(self.names)}.')
        if found[0].strict:
            raise BadInput(f'class "{name}" is strict and has no weight.')
        check_weight(name, weight)
        return ClassTable(tuple(replace(each, weight=weight) if each.name == name else each
                                for each in self.classes))

    def shares(self) -> tuple[float, ...]:
        """Each class's part of a port's buffer."""
        given = [each.buffer_share for each in self.classes]
        left = 1.0 - sum(share for share in given if share is not None)
        open_ones = given.count(None)
        return tuple(left / open_ones if share is None else share for share in given)

    def queueing(self, port_limit_bytes: int, ecn_bytes: int | None, frame_bytes: int) -> Queueing:
        """How ports with a buffer of `port_limit_bytes` queue; ecn_bytes: the threshold of --ecn, if any.

        Raises BadInput for a class whose part cannot hold a frame, or never reaches its threshold.
        """
        queues = []
        for each, share in zip(self.classes, self.shares()):
            limit = int(share * port_limit_bytes)
            mark = ecn_bytes if each.ecn_bytes is None else each.ecn_bytes
            if limit < frame_bytes:
                raise BadInput(f'class "{each.name}" gets {limit} bytes of the buffer of {port_limit_bytes}, '
                               f"which hold no frame of {frame_bytes}; give it a larger share, or ports a "
                               "larger --buffer.")
            if mark is not None and not frame_bytes <= mark < limit:
                raise BadInput(f'class "{each.name}" marks above {mark} bytes, which must lie between one '
                               f"frame of {frame_bytes} and the {limit} bytes that its queue holds.")
            queues.append(TrafficClass(each.weight or 1, each.strict, limit, mark))
        unused = TrafficClass(limit_bytes=frame_bytes)
        queues += [unused] * (MAX_CLASSES - len(queues))
        of_dscp = {each.dscp: number for number, each in enumerate(self.classes)}
        return Queueing(tuple(queues), tuple(of_dscp.get(dscp, self.rest) for dscp in range(DSCPS)),
                        pausable=any(each.lossless for each in self.classes))

    def pause_thresholds(self, graph: Graph, rate_bps: float, port_limit_bytes: int, frame_bytes: int,
                         delay_s: float) -> dict[int, list[Thresholds]]:
        """Lossless class -> its thresholds on each switch; BadInput where queues have no room for pauses."""
        ports = {switch.name: len(graph.neighbours[switch.name]) for switch in graph.switches}
        most = max(ports.values())
        if any(each.lossless for each in self.classes) and most >= INGRESS_PORTS:
            raise BadInput(f"a lossless class needs switches of fewer than {INGRESS_PORTS} ports; here they "
                           f"have up to {most}.")
        fastest_bps = rate_bps * max(link.speed for link in graph.links)
        return {number: [thresholds(each.name, name, int(share * port_limit_bytes), count, fastest_bps,
                                    frame_bytes, delay_s) for name, count in ports.items()]
                for number, (each, share) in enumerate(zip(self.classes, self.shares())) if each.lossless}

    def as_mapping(self) -> dict[str, dict[str, Any]]:
        """The table as an experiment file has it; reading it gives this table again."""
        rows = {}
        for each in self.classes:
            row: dict[str, Any] = {"dscp": each.dscp}
            row |= {"strict": True} if each.strict else {"weight": each.weight}
            if each.buffer_share is not None:
                row["buffer"] = each.buffer_share
            if each.ecn_bytes is not None:
                row["ecn"] = f"{each.ecn_bytes}B"
            rows[each.name] = row | ({"lossless": True} if each.lossless else {})
        return rows


def check_weight(name: str, weight: int) -> None:
    """BadInput for a weight that the scheduler does not serve."""
    if not 1 <= weight <= MOST_WEIGHT:
        raise BadInput(f'class "{name}": weight={weight} is outside 1 to {MOST_WEIGHT}.')


def checked(classes: tuple[ServiceClass, ...]) -> ClassTable:
    """A table of these rows, with a best-effort class where none has DSCP 0; BadInput for what cannot be."""
    count = len(classes) + all(each.dscp for each in classes)
    if count > MAX_CLASSES:
        extra = f', with "{BEST_EFFORT}" for what names none,' if count > len(classes) else ""
        raise BadInput(f"classes: {count} classes{extra} are more than the {MAX_CLASSES} that a port has.")
    weights = [each.weight for each in classes if each.weight is not None]
    if weights and not sum(weights):
        raise BadInput("classes: the weights sum to 0, so nobody would be served; give weights from 1 to "
                       f"{MOST_WEIGHT}.")
    for each in classes:
        if each.weight is not None:
            check_weight(each.name, each.weight)
    by_dscp: dict[int, str] = {}
    for each in classes:
        if each.dscp in by_dscp:
            raise BadInput(f'classes: "{by_dscp[each.dscp]}" and "{each.name}" both have DSCP {each.dscp}; '
                           "a packet could not tell which it is.")
        by_dscp[each.dscp] = each.name
    if 0 not in by_dscp:
        if BEST_EFFORT in by_dscp.values():
            raise BadInput(f'classes: "{BEST_EFFORT}" is what carries DSCP 0; leave its dscp out.')
        classes = (*classes, ServiceClass(BEST_EFFORT, 0))
    table = ClassTable(classes)
    given = [each.buffer_share for each in classes if each.buffer_share is not None]
    if sum(given) > 1 + 1e-9 or (len(given) < len(classes) and sum(given) >= 1):
        raise BadInput(f"classes: the buffer shares sum to {sum(given):.3g}, which leaves nothing for "
                       "some class; they are parts of 1.")
    return table


DEFAULTS = (
    ServiceClass("management", 16, None, 0.1),      # CS2: operations, administration, management
    ServiceClass("tensor", 34, 8, 0.15),            # AF41: every microsecond is exposed
    ServiceClass("expert", 26, 4, 0.15),            # AF31
    ServiceClass("pipeline", 18, 4, 0.15),          # AF21: low-latency data
    ServiceClass("gradients", 10, 4, 0.15),         # AF11: high-throughput data
    ServiceClass("parameters", 12, 2, 0.1),         # AF12: the same, fetched ahead of need
    ServiceClass(BEST_EFFORT, 0, 2, 0.1),           # DF
    ServiceClass("storage", 1, 1, 0.1),             # LE (RFC 8622): checkpoints and data sets give way
)
"""What `--classes default` means."""

DEFAULT_TABLE = checked(DEFAULTS)
