"""One period of global scheduling after another: counters in, placement out, and the books on all moves.

A pair of hosts is an elephant while it sends more than the threshold; it stays one until it has been below
half of that for two periods, so that a flow at the threshold does not flap, and for QUIET_S where it sent in
several: one that waits for its turn in a collective does not lose its path, and others theirs as it comes back.
"""
from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy

from controllers.scheduling.demand import estimate
from controllers.scheduling.options import SCHEDULERS, Scheduling
from controllers.scheduling.paths import Path, PathLists
from controllers.scheduling.place import Pair, Situation, loads

QUIET_S, QUIET_PERIODS = 2.0, 2
EVENTS_KEPT = 500


@dataclass(frozen=True)
class Reading:
    """Counters at one moment: bytes of each pair since its rule came, and bytes sent on each directed link
    (shape (2 * links,)), None where the scheduler needs none.
    """

    time_s: float
    pair_bytes: Mapping[Pair, int]
    link_bytes: numpy.ndarray | None = None


@dataclass
class Books:
    """What was done so far. A move leads a placed pair from one path to another; it leads back where the
    pair has been on that path before.
    """

    periods: int = 0
    elephants_most: int = 0
    placed: int = 0
    moved: int = 0
    moved_back: int = 0
    released: int = 0
    events: list[dict[str, object]] = field(default_factory=list)


class SchedulingLoop:
    """The state of global scheduling on one fabric; `step` is given each period's reading."""

    def __init__(self, paths: PathLists, scheduling: Scheduling, rate_bps: float, seed: int):
        self.paths, self.scheduling, self.rate_bps, self.seed = paths, scheduling, rate_bps, seed
        self.placed: dict[Pair, Path] = {}
        self.books = Books()
        self._last: Reading | None = None
        self._quiet: dict[Pair, int] = {}  # elephant -> periods below half of the threshold
        self._loud: Counter[Pair] = Counter()  # elephant -> periods above the threshold
        self._quiet_periods = max(QUIET_PERIODS, round(QUIET_S / scheduling.period_s))
        self._been: dict[Pair, set[Path]] = defaultdict(set)

    def step(self, reading: Reading) -> bool:
        """Take a reading; True where `placed` has changed."""
        last, self._last = self._last, reading
        if last is None or reading.time_s <= last.time_s:
            return False
        scale = 8 / (reading.time_s - last.time_s) / self.rate_bps
        # a counter that went back belongs to a rule that was made anew
        rates = {pair: scale * max(0, count - last.pair_bytes.get(pair, 0))
                 for pair, count in reading.pair_bytes.items()}
        elephants = self._elephants(rates)
        settled = elephants <= self.placed.keys()
        background = numpy.zeros(len(self.paths.capacity))
        if settled and reading.link_bytes is not None and last.link_bytes is not None:
            sent = scale * (reading.link_bytes - last.link_bytes)
            background = numpy.maximum(0, sent - loads(self.paths, rates, self.placed))
        self.books.periods += 1
        self.books.elephants_most = max(self.books.elephants_most, len(elephants))
        ordered = [pair for pair in self._quiet if pair in elephants]  # in the order of their discovery
        placed = SCHEDULERS[self.scheduling.scheduler](Situation(
            self.paths, dict(zip(ordered, estimate(ordered), strict=True)), dict(self.placed), background,
            self.scheduling.hysteresis, self.seed, self.books.periods))
        return self._adopt(placed, reading.time_s)

    def _elephants(self, rates: Mapping[Pair, float]) -> set[Pair]:
        threshold = self.scheduling.threshold
        for pair, rate in rates.items():
            if rate > threshold and self.paths.of(*pair) and self.paths.of(*pair)[0]:
                self._quiet[pair] = 0
                self._loud[pair] += 1
            elif pair in self._quiet:
                self._quiet[pair] = self._quiet[pair] + 1 if rate < threshold / 2 else 0
                lasting = self._loud[pair] > QUIET_PERIODS
                if self._quiet[pair] >= (self._quiet_periods if lasting else QUIET_PERIODS):
                    del self._quiet[pair], self._loud[pair]
        for pair in self._quiet.keys() - rates.keys():
            del self._quiet[pair], self._loud[pair]
        return {pair for pair in self._quiet if self.paths.of(*pair)}  # a rack that is cut off has no path

    def _adopt(self, placed: dict[Pair, Path], time_s: float) -> bool:
        for pair in self.placed.keys() | placed.keys():
            old, new = self.placed.get(pair), placed.get(pair)
            if old == new:
                continue
            if new is None:
                what, self.books.released = "released", self.books.released + 1
            elif old is None:
                what, self.books.placed = "placed", self.books.placed + 1
            else:
                what, self.books.moved = "moved", self.books.moved + 1
                self.books.moved_back += new in self._been[pair]
            if new is not None:
                self._been[pair].add(new)
            else:
                self._been.pop(pair, None)  # its next flow is another one
            if len(self.books.events) < EVENTS_KEPT:
                self.books.events.append({
                    "time_s": time_s, "source": pair[0], "destination": pair[1], "what": what,
                    "over": list(self.paths.senders(new)) if new else []})
        changed = placed != self.placed
        self.placed = placed
        return changed

    def rewire(self, paths: PathLists) -> None:
        """From now on these are the paths; who was placed on one that is gone is hashed again."""
        self.paths = paths
        self.placed = {pair: path for pair, path in self.placed.items() if path in paths.of(*pair)}

    def summary(self) -> dict[str, object]:
        """The books as plain values; times as the readings gave them."""
        b = self.books
        return {"scheduler": self.scheduling.scheduler, "period_s": self.scheduling.period_s,
                "threshold": self.scheduling.threshold, "hysteresis": self.scheduling.hysteresis,
                "periods": b.periods, "elephants_most": b.elephants_most, "placed": b.placed,
                "moved": b.moved, "moved_back": b.moved_back, "released": b.released,
                "moves": list(b.events)}
