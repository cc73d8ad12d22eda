"""One switch behind the agent: its tables, their way into the datapath, and who is to be told of what.

Changes are gathered and put in force together: a datapath takes whole tables, and a controller sends
hundreds of FlowMods in a row. Whoever must see them in force (a barrier, a statistics request, a
packet-out, the end of what a socket held) calls `commit` first.
"""
from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from emulator.asic.flowtable import Change, FlowEntry, FlowMod, Tables, apply_flow_mod, expired
from emulator.asic.grouptable import GroupMod, apply_group_mod
from emulator.asic.lookup import find_rule, parse, rewrite
from emulator.asic.openflow.constants import UNKNOWN_COUNT, FlowFlag, PacketInReason, Removed
from emulator.asic.openflow.errors import FlowModFailed, GroupModFailed, Refused
from emulator.asic.pipeline import Count, Datapath, PipelineRule, PortState

UNKNOWN = Count(UNKNOWN_COUNT, UNKNOWN_COUNT)


class Listener(Protocol):
    """A session, as far as the switch tells it things of its own accord."""

    role: int

    def packet_in(self, in_port: int, reason: PacketInReason, cookie: int, frame: bytes) -> None: ...

    def flow_removed(self, entry: FlowEntry, reason: Removed, count: Count) -> None: ...

    def port_status(self, port: PortState) -> None: ...


@dataclass(frozen=True)
class _Pending:
    """A change that is not in force yet, and whom to tell when the datapath will not have it."""

    mod: FlowMod | GroupMod
    refuse: Callable[[Refused], None]


class Switch:
    """The switch `dpid` of `datapath`. Ports and queues are those the datapath has at the start."""

    def __init__(self, dpid: int, datapath: Datapath, clock: Callable[[], float] = time.monotonic) -> None:
        self.dpid = dpid
        self.datapath = datapath
        self.clock = clock
        self.started_s = clock()
        self.tables = Tables(frozenset(port.number for port in datapath.ports(dpid)),
                             queues=frozenset(each.queue for each in datapath.queues(dpid)))
        self.listeners: list[Listener] = []
        self.generation_id: int | None = None
        self._in_force = self.tables
        self._rules: tuple[PipelineRule, ...] = ()
        self._pending: list[_Pending] = []
        self._removed: list[tuple[FlowEntry, Removed]] = []
        self._has_timeouts = False
        self._last_used_s: dict[int, float] = {}
        self._last_count: dict[int, int] = {}

    def apply(self, mod: FlowMod | GroupMod, refuse: Callable[[Refused], None]) -> None:
        """Carry out `mod` at the next commit.

        Raises Refused for what the tables rule out; `refuse` is called at the commit for what the
        datapath turns out to lack.
        """
        change = self._try(self.tables, mod)
        self.tables = change.tables
        self._removed.extend(change.removed)
        self._pending.append(_Pending(mod, refuse))

    def _try(self, tables: Tables, mod: FlowMod | GroupMod) -> Change:
        if isinstance(mod, FlowMod):
            return apply_flow_mod(tables, mod, self.clock())
        return apply_group_mod(tables, mod, self.clock(), seed=self.dpid)

    def commit(self) -> None:
        """Put all that is pending in force; afterwards the datapath has exactly `self.tables`."""
        if self.tables is self._in_force:
            return
        pending, self._pending = self._pending, []
        counts = self._counts_of_removed(self._removed)
        try:
            self._put_in_force(self.tables)
        except ValueError:
            if not pending:
                raise  # entries timed out: no datapath may fail to do with less
            # Something in the batch is more than this datapath can do: find it, keep the rest.
            self._removed = []
            self._commit_one_by_one(pending)
            return
        self._report_removed(counts)

    def _commit_one_by_one(self, pending: list[_Pending]) -> None:
        self.tables = self._in_force
        for item in pending:
            try:
                change = self._try(self._in_force, item.mod)
                counts = self._counts_of_removed(change.removed)
                self._put_in_force(change.tables)
            except Refused as refusal:
                item.refuse(refusal)
            except ValueError as error:
                code = (FlowModFailed.UNKNOWN if isinstance(item.mod, FlowMod)
                        else GroupModFailed.INVALID_GROUP)
                item.refuse(Refused(code, str(error)))
            else:
                self._removed = list(change.removed)
                self._report_removed(counts)
        self.tables = self._in_force

    def _put_in_force(self, tables: Tables) -> None:
        pipeline = tables.pipeline()
        self.datapath.replace_tables(self.dpid, pipeline)
        self._in_force, self._rules = tables, pipeline.rules
        self._has_timeouts = any(entry.idle_timeout_s or entry.hard_timeout_s
                                 for entry in tables.flows.values())

    def _counts_of_removed(self, removed) -> dict[int, Count]:
        """Last counts of entries about to go, read only if a controller asked to be told."""
        wanted = any(entry.flags & FlowFlag.SEND_FLOW_REM for entry, _ in removed)
        return self.datapath.rule_counts(self.dpid) if wanted else {}

    def _report_removed(self, counts: dict[int, Count]) -> None:
        removed, self._removed = self._removed, []
        for entry, reason in removed:
            if entry.flags & FlowFlag.SEND_FLOW_REM:
                for listener in self.listeners:
                    listener.flow_removed(entry, reason, counts.get(entry.id, UNKNOWN))

    def tick(self) -> None:
        """Carry out timeouts; to be called a few times a second."""
        now_s = self.clock()
        if not self._has_timeouts:
            return
        if any(entry.idle_timeout_s for entry in self.tables.flows.values()):
            self._note_use(now_s)
        change = expired(self.tables, now_s, self._last_used_s)
        if change.removed:
            self.tables = change.tables
            self._removed.extend(change.removed)
            self.commit()

    def _note_use(self, now_s: float) -> None:
        counts = {number: count.packets for number, count in self.datapath.rule_counts(self.dpid).items()}
        for number, packets in counts.items():
            if packets != self._last_count.get(number, 0):
                self._last_used_s[number] = now_s
        self._last_count = counts
        self._last_used_s = {n: used_s for n, used_s in self._last_used_s.items() if n in counts}

    def packet_in(self, in_port: int, frame: bytes) -> None:
        """A packet that a rule sent up; the rule is found again to name its cookie."""
        rule = find_rule(self._rules, parse(frame, in_port))
        if rule is None or not rule.actions.to_controller:
            cookie, reason = 0xFFFFFFFFFFFFFFFF, PacketInReason.APPLY_ACTION  # it has left since
        else:
            cookie = self._in_force.flows[rule.priority, rule.match].cookie
            miss = rule.priority == 0 and rule.match == type(rule.match)()
            reason = PacketInReason.TABLE_MISS if miss else PacketInReason.APPLY_ACTION
            frame = rewrite(rule.actions, frame)
        for listener in self.listeners:
            listener.packet_in(in_port, reason, cookie, frame)

    def port_status(self, port: PortState) -> None:
        """A port went up or down."""
        for listener in self.listeners:
            listener.port_status(port)
