"""Places in an array, lent to keys: a key that stays keeps its place, a place is lent again only later.

`revision` makes a new set of keys: what it does not ask for again is given up when it ends well, but
lent again only after the next `release`, when no packet can be using it. A revision that fails changes
nothing.
"""
from __future__ import annotations

from collections.abc import Hashable, Iterator
from contextlib import contextmanager


class Revision:
    """The set of keys in the making. `added` are the places that were not in force before."""

    def __init__(self, in_force: dict[Hashable, int], free: list[int], what: str) -> None:
        self._before, self._free, self._what = in_force, free, what
        self.places: dict[Hashable, int] = {}
        self.added: list[int] = []

    def place(self, key: Hashable) -> int:
        """The place of `key`: the one that it has, or a free one; ValueError if there is none."""
        if key in self.places:
            return self.places[key]
        if key in self._before:
            self.places[key] = self._before[key]
            return self.places[key]
        if len(self.added) == len(self._free):
            raise ValueError(f"this switch has no room for more {self._what}.")
        self.places[key] = self._free[len(self.added)]
        self.added.append(self.places[key])
        return self.places[key]


class Places:
    """Places first .. first + count - 1. `in_force` is key -> place."""

    def __init__(self, what: str, first: int, count: int) -> None:
        self._what = what
        self.in_force: dict[Hashable, int] = {}
        self._free = list(range(first, first + count))
        self._given_up: list[int] = []

    @contextmanager
    def revision(self) -> Iterator[Revision]:
        """A new set of keys; it takes the place of the old one when the block ends without an error."""
        revision = Revision(self.in_force, self._free, self._what)
        yield revision
        del self._free[:len(revision.added)]
        kept = set(revision.places.values())
        self._given_up += [place for place in self.in_force.values() if place not in kept]
        self.in_force = revision.places

    def release(self) -> None:
        """What was given up may be lent again."""
        self._free += self._given_up
        self._given_up.clear()
