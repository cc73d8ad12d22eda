"""Can these events be, one after the other, on this fabric? Pure, before anything starts."""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from controllers.external import external_address
from controllers.network import Network, links_of
from emulator.errors import BadInput, nearest
from emulator.events.spec import Event
from topologies.graph import Graph

MOST_LOSS = 0.2  # of full frames; above, the switch's formula is off by more than 1 % (asic/chip.py)


class _Fabric:
    """What is up, as far as the events so far go."""

    def __init__(self, graph: Graph, routing: str, seed: int) -> None:
        self.graph = graph
        self.links: set[int] = set()      # that were taken down
        self.switches: set[str] = set()
        self.controller = True
        self.network = Network(graph, routing, seed)

    @property
    def dead_ports(self) -> frozenset[tuple[int, int]]:
        """What switches will have told the controller: (datapath id, port) of the links that are down."""
        return frozenset((self.graph.switch[end].dpid, port) for link in self.graph.links
                         if link.index in self.links or {link.a, link.b} & self.switches
                         for end, port in ((link.a, link.a_port), (link.b, link.b_port))
                         if end in self.graph.switch)


def check_events(events: Sequence[Event], graph: Graph, routing: str, seed: int, switch: str,
                 deadline_s: float, iterations: int, phases: Iterable[str], frame_bytes: int) -> None:
    """Raise BadInput, with the event as it was written, for the first that cannot be.

    switch: 'bpf' or 'ovs'. iterations: of the replay, warm-up included. phases: the names that the
    workload gives its steps.
    """
    fabric, phases = _Fabric(graph, routing, seed), set(phases)
    for event in events:
        try:
            if event.kind in ("controller", "drain", "undrain") and external_address(routing):
                raise BadInput("an external controller is not ours to stop or to drain with.")
            _check_when(event, deadline_s, iterations, phases)
            if event.kind == "loss":
                _check_loss(event, switch, frame_bytes)
            _ACTS[event.kind](fabric, event)
        except BadInput as error:
            raise BadInput(f'event "{event.text}": {error}') from None


def _check_when(event: Event, deadline_s: float, iterations: int, phases: set[str]) -> None:
    when = event.when
    if when.time_s >= deadline_s:
        raise BadInput(f"{when.time_s:g} s is not before the deadline of {deadline_s:g} s (--deadline).")
    if when.iteration is not None and when.iteration > iterations:
        raise BadInput(f"the workload has {iterations} iterations, warm-up included.")
    if when.phase is not None and when.phase not in phases:
        raise BadInput(f'the workload has no phase "{when.phase}"{nearest(when.phase, phases - {""})}.')


def _check_loss(event: Event, switch: str, frame_bytes: int) -> None:
    if switch != "bpf":
        raise BadInput("random loss needs --switch bpf; Open vSwitch loses nothing on request.")
    rate = event.value or 0.0
    if rate * 8 * frame_bytes > MOST_LOSS:
        raise BadInput(f"a bit error rate of {rate:g} loses {rate * 8 * frame_bytes:.0%} of "
                       f"full packets; give at most {MOST_LOSS / 8 / frame_bytes:.2g}.")


def _link_named(fabric: _Fabric, name: str) -> set[int]:
    if name in fabric.graph.switch:
        raise BadInput(f"{name} is a switch; write a link as A-B.")
    return {link.index for link in links_of(fabric.graph, name)}


def _link(fabric: _Fabric, event: Event) -> None:
    links = _link_named(fabric, event.target)
    ends = {end for number in links for end in _ends(fabric.graph, number)} & fabric.switches
    if event.up and not links & fabric.links:
        raise BadInput(f"{event.target} is not down then.")
    if not event.up and (links <= fabric.links or ends):
        raise BadInput(f"{event.target} is already down then{f', with switch {min(ends)}' if ends else ''}.")
    if event.up and ends:
        raise BadInput(f"{event.target} cannot come up while switch {min(ends)} is down.")
    fabric.links = fabric.links - links if event.up else fabric.links | links


def _ends(graph: Graph, number: int) -> tuple[str, str]:
    link = next(link for link in graph.links if link.index == number)
    return link.a, link.b


def _switch(fabric: _Fabric, event: Event) -> None:
    if event.target not in fabric.graph.switch:
        raise BadInput(f'there is no switch "{event.target}"{nearest(event.target, fabric.graph.switch)}.')
    if (event.target not in fabric.switches) == event.up:
        raise BadInput(f"{event.target} is {'not' if event.up else 'already'} down then.")
    fabric.switches = fabric.switches - {event.target} if event.up else fabric.switches | {event.target}


def _target_exists(fabric: _Fabric, event: Event) -> None:
    _link_named(fabric, event.target)


def _controller(fabric: _Fabric, event: Event) -> None:
    if fabric.controller == event.up:
        raise BadInput(f"the controller is {'not' if event.up else 'already'} down then.")
    fabric.controller = event.up


def _drain(fabric: _Fabric, event: Event) -> None:
    if not fabric.controller:
        raise BadInput("the controller, which drains, is down then.")
    before = replace(fabric.network, down=fabric.dead_ports)
    fabric.network = before.with_drained(event.target, event.kind == "drain")
    if fabric.network.drained == before.drained:
        raise BadInput(f"{event.target} is {'already' if event.kind == 'drain' else 'not'} drained then.")


_ACTS = {"link": _link, "switch": _switch, "degrade": _target_exists, "loss": _target_exists,
         "controller": _controller, "drain": _drain, "undrain": _drain}


def down_after(events: Sequence[Event], graph: Graph) -> frozenset[int]:
    """The links that carry nothing when all `events` have happened, whatever for."""
    down: set[int] = set()
    switches: set[str] = set()
    for event in events:
        if event.kind == "link":
            links = {link.index for link in links_of(graph, event.target)}
            down = down - links if event.up else down | links
        elif event.kind == "switch":
            switches = switches - {event.target} if event.up else switches | {event.target}
    return frozenset(down | {link.index for name in switches for link in links_of(graph, name)})


