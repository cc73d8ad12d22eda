"""What an act does to a chip, without a fabric."""
from __future__ import annotations

from types import SimpleNamespace

from emulator.asic.switches import BpfSwitches
from emulator.events import parse_events
from emulator.events.acts import Acts
from emulator.fabric.spec import Port
from topologies.catalog import resolve_topology

GRAPH = resolve_topology("star:hosts=2")
HOST_END = Port("h1-eth0", "h1", 0, 2, "h1", 1e6, 10_000, 0, "s1-eth1")
SWITCH_END = Port("s1-eth1", "s1", 1, 3, None, 1e6, 10_000, 0, "h1-eth0")


def test_the_end_of_an_events_bit_errors_gives_back_those_of_the_option() -> None:
    done: list[tuple[int, float, float]] = []
    chip = SimpleNamespace(set_bit_error_rate=lambda *rates: done.append(rates))
    switches = BpfSwitches.__new__(BpfSwitches)
    switches.chip, switches.queueing, switches.bit_error_rate = chip, None, 1e-7
    ports = (HOST_END, SWITCH_END)
    fabric = SimpleNamespace(spec=SimpleNamespace(graph=GRAPH), ports=ports, port={port.name: port for port in ports})
    acts = Acts(fabric, switches)
    try:
        for event in parse_events([f"{second}s loss h1-{GRAPH.switches[0].name} {what}"
                                   for second, what in enumerate(("1e-6", "end", "0"), 1)]):
            acts.lose(event)
    finally:
        acts.close()
    assert done == [(3, rate, rate) for rate in (1e-6, 1e-7, 0.0)]
