"""Counting what events cost: packets by cause, from bpf switches and the kernel's counters."""
from __future__ import annotations

from collections.abc import Callable, Iterable

from emulator.asic.chip import Chip
from emulator.asic.layout import CAUSES
from emulator.asic.links import link_state
from emulator.events.record import Tally
from emulator.fabric.spec import Port
from emulator.netlink import Netlink

IN_DEAD_QUEUE = "link down"  # waiting in the queue of a link that failed, or sent to it while it was dead
TURNED_BACK = "same port"  # was on its way over a switch that was told meanwhile to send it where it came from
COUNTED = ("no rule", "by rule", "no live bucket", "port down", TURNED_BACK, "wire loss")


class Counter:
    """Counts from the moment it is made, while nothing is sent. `chip` None: retransmissions only."""

    def __init__(self, chip: Chip | None, ports: Iterable[Port], retransmitted: Callable[[], int]) -> None:
        self._chip, self._retransmitted = chip, retransmitted
        self._ports = [port for port in ports if port.netns is None]
        self._netlink = Netlink()
        self._began = self._retransmitted()
        self._drops = self._by_cause()
        self._balance = {port.name: self._missing(port) for port in self._ports} if chip else {}
        self._settled: dict[str, int] = {}  # what a dead port had taken when it was last looked at

    def close(self) -> None:
        """Let go of the socket."""
        self._netlink.__exit__()

    def tally(self, dead: Iterable[str]) -> Tally:
        """All so far. `dead`: the interfaces without a link now, whose books stand still."""
        if self._chip is None:
            return Tally({}, self._retransmitted() - self._began)
        self.settle(dead)
        drops = self._by_cause()
        lost = {cause: drops[cause] - self._drops[cause] for cause in COUNTED}
        lost[IN_DEAD_QUEUE] = sum(self._settled.values())
        return Tally(lost, self._retransmitted() - self._began)

    def settle(self, names: Iterable[str]) -> None:
        """Look at ports whose books stand still, having no link or nothing to send."""
        wanted = set(names)
        for port in self._ports:
            if port.name in wanted and self._chip:
                self._settled[port.name] = self._missing(port) - self._balance[port.name]

    def lost_at(self, names: Iterable[str]) -> dict[str, int]:
        """Interface -> packets that came to its queue and neither left nor were dropped there nor wait."""
        self.settle(names)
        return {name: self._settled[name] for name in names if name in self._settled}

    def _by_cause(self) -> dict[str, int]:
        if self._chip is None:
            return {}
        totals = self._chip.drops["packets"][list(self._chip.site)].sum(axis=0)
        lost_out = sum(int(self._chip.queue(ifindex, number)["lost_packets"])
                       for ifindex in self._chip.site for number in range(self._chip.classes))
        counted = {cause: int(total) for cause, total in zip(CAUSES, totals, strict=True)}
        return {**counted, "wire loss": counted["wire loss"] + lost_out}

    def _missing(self, port: Port) -> int:
        """Packets that arrived at the queue, less those that left by the link, were dropped or wait."""
        self._chip.observe(port.ifindex)
        queues = [self._chip.queue(port.ifindex, number) for number in range(self._chip.classes)]
        accounted = sum(int(queue["dropped_packets"]) + int(queue["held_packets"]) for queue in queues)
        sent = link_state(self._netlink, port.ifindex).tx.packets
        return sum(int(queue["arrived_packets"]) for queue in queues) - accounted - sent
