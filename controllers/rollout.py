"""How new tables reach running switches: what each holds, what it is told next, when all have it. Pure.

`begin` takes tables to be put in force one after the other. `changes_for` a switch leads from what it was
told last to the present ones; `confirmed` is its barrier. When nobody is awaited, `advance` goes on.
"""
from __future__ import annotations

from collections.abc import Iterator, Mapping

from controllers.changes import Change, changes, renumbered
from controllers.tables import SwitchTables


class Rollout:
    """Datapath ids throughout. A switch takes part from `holds` on until it is `forgotten`."""

    def __init__(self, tables: Mapping[int, SwitchTables]) -> None:
        self.target = dict(tables)
        self._held: dict[int, SwitchTables] = {}
        self._awaited: dict[int, int] = {}  # barriers under way
        self._steps: Iterator[Mapping[int, SwitchTables]] = iter(())

    def holds(self, dpid: int, tables: SwitchTables) -> None:
        """The switch was read and holds `tables`."""
        self._held[dpid] = tables

    def forgotten(self, dpid: int) -> None:
        """Nothing is known of the switch any more."""
        self._held.pop(dpid, None)
        self._awaited.pop(dpid, None)

    def known(self) -> list[int]:
        """The switches whose tables are known."""
        return list(self._held)

    def changes_for(self, dpid: int) -> tuple[Change, ...]:
        """What the switch is to be told now; it counts as told. Empty where it holds its tables already."""
        wanted = renumbered(self._held[dpid], self.target[dpid])
        steps = changes(self._held[dpid], wanted)
        self._held[dpid] = wanted
        return steps

    def tables(self, dpid: int) -> SwitchTables:
        """What the switch holds once it has carried out all that it was told."""
        return self._held[dpid]

    def told(self, dpid: int) -> None:
        """Changes and a barrier are on their way to it."""
        self._awaited[dpid] = self._awaited.get(dpid, 0) + 1

    def confirmed(self, dpid: int) -> bool:
        """A barrier came back; is it the last that the switch owed?"""
        left = self._awaited.get(dpid, 1) - 1
        self._awaited[dpid] = left
        if left <= 0:
            self._awaited.pop(dpid)
        return left <= 0

    def owes(self, dpid: int) -> bool:
        """Is a barrier of this switch under way?"""
        return dpid in self._awaited

    @property
    def waiting(self) -> bool:
        """Is any barrier under way?"""
        return bool(self._awaited)

    def begin(self, steps: Iterator[Mapping[int, SwitchTables]]) -> None:
        """From now on `steps` are put in force, whatever was left of earlier ones."""
        self._steps = steps

    def advance(self) -> bool:
        """Go to the next tables; False where there are none left."""
        tables = next(self._steps, None)
        if tables is None:
            return False
        self.target = dict(tables)
        return True
