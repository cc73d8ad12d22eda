"""Writing a schedule down: transfers between ranks, with dependencies that follow from the data.

A collective says which bytes go where and in which order; `Program` remembers which operation last
wrote each byte of each rank's buffer, so that a send waits for exactly what it carries.
"""
from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict

from emulator.errors import BadInput
from traffic.schedule import Kind, Op, Schedule

MOST_OPERATIONS = 2_000_000
"""Six times a sliced ring over 128 ranks; beyond it memory and the start take more than anybody waits for."""


def split(low: int, high: int, parts: int) -> list[tuple[int, int]]:
    """[low, high) cut into `parts` ranges whose sizes differ by at most one byte; some may be empty."""
    size = high - low
    return [(low + size * i // parts, low + size * (i + 1) // parts) for i in range(parts)]


def pieces(low: int, high: int, slices: int, channels: int) -> list[tuple[int, int, int]]:
    """(channel, low, high) of every slice of [low, high), channels taking turns, none of them empty."""
    if slices == channels == 1:  # by far the most frequent
        return [(0, low, high)] if low < high else []
    parts = [split(*part, slices) for part in split(low, high, channels)]
    cut = [(c, *parts[c][s]) for s in range(slices) for c in range(channels)]
    return [piece for piece in cut if piece[1] < piece[2]]


class Written:
    """Who last wrote each byte of one buffer: disjoint ranges, sorted, each with an operation's index."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._spans: list[tuple[int, int]] = []  # (end of the range, index of the operation)

    def mark(self, low: int, high: int, op: int) -> None:
        """From now on [low, high) is what `op` wrote."""
        first, last = self._overlap(low, high)
        if last == first + 1 and self._starts[first] == low and self._spans[first][0] == high:
            self._spans[first] = (high, op)  # the same range again, as in most collectives
            return
        starts, spans = [low], [(high, op)]
        if first < last:
            if self._starts[first] < low:  # keep what stands before `low`
                starts.insert(0, self._starts[first])
                spans.insert(0, (low, self._spans[first][1]))
            end, writer = self._spans[last - 1]
            if end > high:  # and what stands after `high`
                starts.append(high)
                spans.append((end, writer))
        self._starts[first:last] = starts
        self._spans[first:last] = spans

    def by(self, low: int, high: int) -> tuple[int, ...]:
        """The operations that wrote any byte of [low, high), in ascending order."""
        first, last = self._overlap(low, high)
        if last - first == 1:
            return (self._spans[first][1],)
        return tuple(sorted({op for _, op in self._spans[first:last]}))

    def _overlap(self, low: int, high: int) -> tuple[int, int]:
        """Positions [first, last) of the ranges that share a byte with [low, high)."""
        first = bisect_right(self._starts, low)
        if first and self._spans[first - 1][0] > low:
            first -= 1
        last = first
        while last < len(self._starts) and self._starts[last] < high:
            last += 1
        return first, last


class Program:
    """A schedule while it is being written. Each method returns the index of what it appended.

    `traffic_class` is what the messages written from now on are for; set it before each stage.
    """

    def __init__(self, ranks: int) -> None:
        self.traffic_class = ""
        self.ops: list[list[Op]] = [[] for _ in range(ranks)]
        self.written = [Written() for _ in range(ranks)]
        self._room = MOST_OPERATIONS
        self._messages: defaultdict[tuple[int, int, int], int] = defaultdict(int)

    def append(self, rank: int, op: Op) -> int:
        self._room -= 1
        if self._room < 0:
            raise BadInput(f"the schedule needs more than {MOST_OPERATIONS} operations; use fewer ranks, "
                           "slices, channels or microbatches.")
        self.ops[rank].append(op)
        return len(self.ops[rank]) - 1

    def compute(self, rank: int, duration_s: float, deps: tuple[int, ...], phase: str, step: int) -> int:
        return self.append(rank, Op(Kind.COMPUTE, deps, duration_s=duration_s, phase=phase, step=step))

    def message(self, source: int, destination: int, size_bytes: int, *, deps: tuple[int, ...] = (),
                offset: int = -1, to: int = -1, channel: int = 0, phase: str = "", step: int = 0,
                triggers: tuple[tuple[int, int], ...] = ()) -> tuple[int, int]:
        """A send and its receive, with a tag of their own: (index at source, index at destination).

        `deps` and `triggers` hold back the send; the receive is posted from the start. `offset` is
        where the send reads, `to` where the receive writes (-1: no place in the buffer).
        """
        key = (source, destination, channel)
        tag = self._messages[key]
        self._messages[key] += 1
        return (
            self.append(source, Op(Kind.SEND, deps, destination, size_bytes, tag, channel, 0.0, offset,
                                   phase, step, self.traffic_class, triggers)),
            self.append(destination, Op(Kind.RECV, (), source, size_bytes, tag, channel, 0.0, to,
                                        phase, step, self.traffic_class)))

    def copy(self, source: int, destination: int, low: int, high: int, *, slices: int = 1,
             channels: int = 1, channel: int = 0, phase: str = "", step: int = 0, ahead: int = 0) -> None:
        """Bytes [low, high) of the source's buffer overwrite those of the destination's.

        They travel as `slices` messages on each of `channels` connections, numbered from `channel`. With
        `ahead` at most so many of them are under way at once: each waits for an earlier one's acknowledgement.
        """
        sent: list[int] = []
        for part, start, end in pieces(low, high, slices, channels):
            send, recv = self.message(source, destination, end - start,
                                      deps=self._deps(source, start, end, sent, ahead),
                                      offset=start, to=start, channel=channel + part, phase=phase, step=step)
            sent.append(send)
            self.written[destination].mark(start, end, recv)

    def add(self, source: int, destination: int, low: int, high: int, *, slices: int = 1,
            channels: int = 1, channel: int = 0, phase: str = "", step: int = 0, ahead: int = 0) -> None:
        """Bytes [low, high) of the source's buffer are added to those of the destination's; as in `copy`."""
        sent: list[int] = []
        for part, start, end in pieces(low, high, slices, channels):
            send, recv = self.message(source, destination, end - start,
                                      deps=self._deps(source, start, end, sent, ahead), offset=start,
                                      channel=channel + part, phase=phase, step=step)
            sent.append(send)
            deps = (recv, *self.written[destination].by(start, end))
            reduce = self.append(destination, Op(Kind.REDUCE, deps, size_bytes=end - start, offset=start,
                                                 phase=phase, step=step))
            self.written[destination].mark(start, end, reduce)

    def _deps(self, source: int, low: int, high: int, sent: list[int], ahead: int) -> tuple[int, ...]:
        """What a message that carries [low, high) waits for, when `sent` have gone before it."""
        wrote = self.written[source].by(low, high)
        return tuple(sorted({*wrote, sent[-ahead]})) if 0 < ahead <= len(sent) else wrote

    def schedule(self, name: str, buffer_bytes: int = 0) -> Schedule:
        return Schedule(name, tuple(tuple(ops) for ops in self.ops), buffer_bytes)
