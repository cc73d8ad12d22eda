"""Doing it: ports down and up, rates changed, bit errors, on a fabric that stands."""
from __future__ import annotations

from contextlib import nullcontext

from controllers.network import links_of
from emulator import netns
from emulator.asic.shaper import class_messages
from emulator.asic.switches import BpfSwitches
from emulator.errors import EmulatorError
from emulator.events.spec import Event
from emulator.fabric import link as shaping
from emulator.fabric import rtnl
from emulator.fabric.build import Fabric
from emulator.fabric.spec import Port
from emulator.netlink import Message, Netlink, NetlinkError


class Acts:
    """The state of a fabric's links, and what changes it. `switches` is a BpfSwitches, or another kind.

    Make it and use it in the sandbox's own namespace. `interrupted` and `reshaped` are the interfaces
    that were ever touched.
    """

    def __init__(self, fabric: Fabric, switches: object) -> None:
        self.fabric = fabric
        self.chip = switches.chip if isinstance(switches, BpfSwitches) else None
        self._bit_error_rate = switches.bit_error_rate if isinstance(switches, BpfSwitches) else 0.0
        self._queueing = switches.queueing if isinstance(switches, BpfSwitches) else None
        self._links_down: set[int] = set()
        self._switches_down: set[str] = set()
        self._down: set[str] = set()
        self._slow: set[str] = set()
        self.interrupted: set[str] = set()
        self.reshaped: set[str] = set()
        self._netlink = Netlink()

    def close(self) -> None:
        """Let go of the socket."""
        self._netlink.__exit__()

    @property
    def dead(self) -> set[str]:
        """The interfaces whose link is down now."""
        return self._down | {self.fabric.port[name].peer for name in self._down}

    @property
    def altered(self) -> set[str]:
        """The interfaces whose link is down now, or whose rate is not the planned one."""
        return self.dead | self._slow

    def ports_of(self, event: Event) -> tuple[Port, ...]:
        """Both ends of every link that the event concerns."""
        links = {link.index for link in links_of(self.fabric.spec.graph, event.target)}
        return tuple(port for port in self.fabric.ports if port.link in links)

    def carriers(self, event: Event) -> tuple[Port, ...]:
        """Take links or a switch down, or bring them up; the switch ports that changed.

        A host's own end stays up, as with a pulled cable: going down, it would forget its route and its
        neighbour. A switch that is down takes both ends of all its links along.
        """
        ports = self.ports_of(event)
        if event.kind == "switch":
            _set(self._switches_down, {event.target}, not event.up)
        else:
            _set(self._links_down, {port.link for port in ports}, not event.up)
        changed = []
        for port in ports:
            ends = {port.node, self.fabric.port[port.peer].node}
            up = port.link not in self._links_down and not ends & self._switches_down
            if port.netns is None and up == (port.name in self._down):
                changed.append((port, up))
        self._send([rtnl.link_state(port.ifindex, up) for port, up in changed], event)
        _set(self._down, {port.name for port, up in changed if not up}, True)
        _set(self._down, {port.name for port, up in changed if up}, False)
        self.interrupted |= {name for port, _ in changed for name in (port.name, port.peer)}
        return tuple(port for port, _ in changed)

    def degrade(self, event: Event) -> None:
        """Give both ends of a link a share of its rate."""
        ports = self.ports_of(event)
        for port in ports:
            rate_bps = port.rate_bps * event.value
            with netns.entered(port.netns) if port.netns else nullcontext():
                with Netlink() as netlink:
                    self._send(self._rate(port, rate_bps), event, netlink)
            if self.chip and port.netns is None:
                self.chip.set_rate(port.ifindex, rate_bps)
        names = {port.name for port in ports}
        _set(self._slow, names, event.value < 1)
        self.reshaped |= names

    def _rate(self, port: Port, rate_bps: float) -> list[Message]:
        mtu = self.fabric.spec.mtu
        if self._queueing and (port.netns is None or not self.fabric.spec.plain_hosts):
            return class_messages(port.ifindex, rate_bps, port.limit_bytes, mtu, self._queueing)
        made = shaping.shape(rate_bps, mtu, port.limit_bytes)
        return [rtnl.changed_class(port.ifindex, shaping.CLASS, shaping.ROOT, shaping.htb_class(made))]

    def lose(self, event: Event) -> None:
        """Bit errors in both directions of a link, at the switches' ports; in the end those of --loss."""
        if self.chip is None:
            raise EmulatorError("Random loss needs a bpf switch.")
        rate = self._bit_error_rate if event.value is None else event.value
        for port in self.ports_of(event):
            if port.netns is None:
                to_host = self.fabric.port[port.peer].netns is not None
                self.chip.set_bit_error_rate(port.ifindex, rate, rate if to_host else 0.0)

    def _send(self, messages: list[Message], event: Event, netlink: Netlink | None = None) -> None:
        try:
            (netlink or self._netlink).batch(messages)
        except NetlinkError as error:
            raise EmulatorError(f'The kernel refused the event "{event.text}": {error.strerror}.') from error


def _set(members: set, names: set, inside: bool) -> None:
    if inside:
        members |= names
    else:
        members -= names
