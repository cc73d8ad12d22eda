"""What is known of each switch while tables are installed: the controller's books, and their summary.

Written by the controller's one event thread, read by the thread that answers the status socket.
"""
from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from controllers.tables import SwitchTables
from topologies.graph import Graph

ERRORS_KEPT = 100


@dataclass
class _Entry:
    """One switch. `rules` and `groups` are None until they have been read back since the last install."""

    tables: SwitchTables
    ports_expected: frozenset[int]
    version: str = ""
    connections: int = 0
    connected: bool = False
    installed: bool = False
    rules: int | None = None
    groups: int | None = None
    ports: dict[int, bool] = field(default_factory=dict)

    @property
    def ready(self) -> bool:
        return (self.connected and self.installed and self.rules == len(self.tables.flows)
                and self.groups == len(self.tables.groups) and self.ports_expected <= self.ports.keys())


class Ledger:
    """The books of one fabric. Switches are named by datapath id on the way in, by name on the way out."""

    def __init__(self, graph: Graph, tables: Mapping[int, SwitchTables]):
        self.names = {switch.dpid: switch.name for switch in graph.switches}
        self._entries = {switch.dpid: _Entry(tables[switch.dpid], frozenset(graph.neighbours[switch.name]))
                         for switch in graph.switches}
        self._errors: list[dict[str, object]] = []
        self._error_count = 0
        self._packet_ins = 0
        self._port_events: list[dict[str, object]] = []
        self._repairs: list[dict[str, object]] = []
        self._drained: tuple[str, ...] = ()
        self._settled = True
        self._adopted: dict[str, object] | None = None
        self._scheduling: dict[str, object] | None = None
        self._traffic: dict[int, tuple[float, dict[int, tuple[int, int]]]] = {}
        self._lock = threading.Lock()

    def tables(self, dpid: int) -> SwitchTables:
        """What the switch is to be told; KeyError for one that is not of this fabric."""
        return self._entries[dpid].tables

    def planned(self, dpid: int, tables: SwitchTables) -> None:
        """The switch is being told to hold `tables` from now on; what was read of the old ones is history."""
        with self._lock:
            entry = self._entries[dpid]
            entry.tables, entry.installed, entry.rules, entry.groups = tables, False, None, None

    def settling(self) -> None:
        """A change has begun that the switches do not hold yet."""
        with self._lock:
            self._settled = False

    def repaired(self, repair: dict[str, object]) -> None:
        """The switches have confirmed the last tables of a change: {began_s, done_s, switches, changes,
        avoided}, times as time.monotonic() gives them."""
        with self._lock:
            self._settled = True
            self._repairs.append(repair)

    def adopted(self, adoption: dict[str, object]) -> None:
        """All switches were read after the start and hold their tables: {done_s, switches, changes}, the last
        two of those that had to be told something."""
        with self._lock:
            self._adopted = adoption

    def drained(self, links: Iterable[str]) -> None:
        """These links carry no traffic because somebody asked for it."""
        with self._lock:
            self._drained = tuple(links)

    def scheduled(self, summary: dict[str, object]) -> None:
        """What global scheduling has done so far (`SchedulingLoop.summary`)."""
        with self._lock:
            self._scheduling = summary

    @property
    def settled(self) -> bool:
        """Does every switch hold, or has it been told since it connected, the tables that shall stay?"""
        with self._lock:
            return self._settled

    def traffic(self, dpid: int, time_s: float, ports: dict[int, tuple[int, int]]) -> None:
        """port -> (packets, bytes) sent, as the switch counted them at time_s."""
        with self._lock:
            self._traffic[dpid] = (time_s, ports)

    def counted(self) -> dict[int, tuple[float, dict[int, tuple[int, int]]]]:
        """datapath id -> (time_s, port -> (packets, bytes) sent), as last counted."""
        with self._lock:
            return dict(self._traffic)

    def connected(self, dpid: int, version: str) -> None:
        """The switch speaks OpenFlow `version` with us; whatever was known of its tables no longer counts."""
        with self._lock:
            entry = self._entries[dpid]
            entry.version, entry.connected, entry.installed = version, True, False
            entry.rules = entry.groups = None
            entry.connections += 1

    def disconnected(self, dpid: int) -> None:
        with self._lock:
            self._entries[dpid].connected = False

    def barrier(self, dpid: int) -> None:
        """The switch has worked through all that it was sent."""
        with self._lock:
            self._entries[dpid].installed = True

    def rules_counted(self, dpid: int, rules: int) -> None:
        with self._lock:
            entry = self._entries[dpid]
            entry.rules = rules
            if rules != len(entry.tables.flows):
                self._add_error(f"switch {self.names[dpid]} holds {rules} rules instead of "
                                f"{len(entry.tables.flows)}.", lacks=False)

    def groups_counted(self, dpid: int, groups: int) -> None:
        with self._lock:
            entry = self._entries[dpid]
            entry.groups = groups
            if groups != len(entry.tables.groups):
                self._add_error(f"switch {self.names[dpid]} holds {groups} groups instead of "
                                f"{len(entry.tables.groups)}.", lacks=False)

    def port(self, dpid: int, port: int, up: bool | None, time_s: float | None = None) -> None:
        """A port as the switch describes it, `up` None when it is gone; `time_s` where this is news.

        Switches report each port several times over; only changes are kept as events.
        """
        with self._lock:
            entry = self._entries[dpid]
            before = entry.ports.get(port)
            if up is None:
                entry.ports.pop(port, None)
            else:
                entry.ports[port] = up
            if time_s is not None and port in entry.ports_expected and bool(up) != before:
                self._port_events.append({"time_s": time_s, "switch": self.names[dpid], "port": port,
                                          "up": bool(up)})

    def packet_in(self) -> None:
        with self._lock:
            self._packet_ins += 1

    def error(self, sentence: str, lacks: bool = False) -> None:
        """`lacks`: the switch has not got what the routing needs, rather than being told wrong."""
        with self._lock:
            self._add_error(sentence, lacks)

    def summary(self) -> dict[str, object]:
        """All of it as plain values for JSON; `ready` when every switch holds exactly what it should."""
        with self._lock:
            entries = {self.names[dpid]: entry for dpid, entry in self._entries.items()}
            return {
                "ready": all(entry.ready for entry in entries.values()) and not self._error_count,
                "switches": {name: _described(entry) for name, entry in entries.items()},
                "errors": list(self._errors), "error_count": self._error_count,
                "packet_ins": self._packet_ins, "port_events": list(self._port_events),
                "repairs": list(self._repairs), "drained": list(self._drained), "settled": self._settled,
                "adopted": self._adopted, "scheduling": self._scheduling}

    def _add_error(self, sentence: str, lacks: bool) -> None:
        self._error_count += 1
        if len(self._errors) < ERRORS_KEPT:
            self._errors.append({"sentence": sentence, "lacks": lacks})


def _described(entry: _Entry) -> dict[str, object]:
    return {"ready": entry.ready, "connected": entry.connected, "connections": entry.connections,
            "openflow": entry.version, "installed": entry.installed,
            "rules": entry.rules, "rules_expected": len(entry.tables.flows),
            "groups": entry.groups, "groups_expected": len(entry.tables.groups),
            "ports_missing": _ascending(entry.ports_expected - entry.ports.keys()),
            "ports_down": _ascending(port for port in entry.ports_expected if entry.ports.get(port) is False)}


def _ascending(ports: Iterable[int]) -> list[int]:
    return sorted(ports)
