"""The queues of all ports, read in one pass: depth, bytes, packets, drops, and whether HTB is there.

A port's numbers are those of its root qdisc. HTB's root counts what its classes and leaves hold,
send and refuse (net/sched/sch_htb.c: htb_enqueue, htb_dequeue), and what the device handed back.
Drops of a clsact program in front of the queue, where the `bpf` switch limits and marks, are added.

The first pass is walked attribute by attribute; where each number stands is remembered, and as long
as the layout is the same a pass is one numpy gather.
"""
from __future__ import annotations

import struct
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from emulator.telemetry import netlink
from emulator.telemetry.netlink import DumpBuffer, DumpSocket, attributes, messages

TCMSG = struct.Struct("=BxxxiIII")  # family, ifindex, handle, parent, info
TC_H_ROOT, TC_H_CLSACT = 0xFFFFFFFF, 0xFFFFFFF1
TCA_KIND, TCA_OPTIONS, TCA_STATS2 = 1, 2, 7
TCA_HTB_INIT = 2
TCA_STATS_BASIC, TCA_STATS_QUEUE, TCA_STATS_PKT64 = 1, 3, 8

# the numbers of a port, one 32-bit word each; 64-bit ones are a low and a high word
WORDS = ("backlog", "queued", "bytes", "drops", "clsact_drops",
         "bytes_high", "packets", "packets_high", "direct")
SAMPLED = 5  # the first so many are what a time series needs
_ROW = {word: row for row, word in enumerate(WORDS)}
# words of a message that say whose it is: length; type and flags; ifindex; handle; parent
_IDENTITY = (0, 4, 20, 24, 28)
_LITTLE = sys.byteorder == "little"


@dataclass(frozen=True)
class QueueReading:
    """The state of P ports at one moment, arrays of P.

    backlog_bytes, queued_packets: waiting now. sent_bytes, sent_packets: dequeued since the qdisc was
    made (a packet that segmentation would split counts as its segments). dropped_packets: refused, from
    32-bit counters. direct_packets: those that no class took, which HTB lets pass unshaped. shaped: the
    root is HTB.
    """

    backlog_bytes: np.ndarray
    queued_packets: np.ndarray
    sent_bytes: np.ndarray
    sent_packets: np.ndarray
    dropped_packets: np.ndarray
    direct_packets: np.ndarray
    shaped: np.ndarray


class QueueReader:
    """Reads the queues of interfaces given as (namespace under /run/netns or None, ifindex).

    The order given is that of all arrays. `shaped` tells which roots are HTB. `relayouts` counts the
    passes whose layout differed from the one before: a qdisc was added, removed or replaced since.
    """

    def __init__(self, interfaces: Sequence[tuple[str | None, int]]) -> None:
        names = list(dict.fromkeys(netns for netns, _ in interfaces))
        request = TCMSG.pack(0, 0, 0, 0, 0)
        self._sockets = [DumpSocket(netlink.RTM_GETQDISC, request, netns) for netns in names]
        self._column = {(names.index(netns), ifindex): column
                        for column, (netns, ifindex) in enumerate(interfaces)}
        self._buffer = DumpBuffer()
        self._memory: memoryview | None = None
        self._ends: list[int] = []
        self.shaped = np.zeros(len(interfaces), bool)
        self.relayouts = -1  # the first pass always makes a layout

    def read_words(self, out: np.ndarray) -> None:
        """One pass; out[SAMPLED, P] of uint32 receives the first words of WORDS."""
        self._pass()
        # 'clip' lets numpy write into `out` without a buffer between
        np.take(self._words, self._at[:SAMPLED], out=out, mode="clip")

    def read(self) -> QueueReading:
        """One pass, all numbers."""
        self._pass()
        row = self._words.take(self._at).astype(np.int64)

        def wide(word: str) -> np.ndarray:
            return (row[_ROW[f"{word}_high"]] << 32) | row[_ROW[word]]

        return QueueReading(row[_ROW["backlog"]], row[_ROW["queued"]], wide("bytes"), wide("packets"),
                            row[_ROW["drops"]] + row[_ROW["clsact_drops"]], row[_ROW["direct"]],
                            self.shaped.copy())

    def _pass(self) -> None:
        ends, end = [], 0
        for dump_socket in self._sockets:
            end = dump_socket.dump(self._buffer, end)
            ends.append(end)
        if ends != self._ends or self._buffer.memory is not self._memory or not self._same_layout():
            self._lay_out(ends)

    def _same_layout(self) -> bool:
        return np.array_equal(self._words.take(self._identity_at), self._identity)

    def _lay_out(self, ends: list[int]) -> None:
        """Find where in the buffer each number of each port stands."""
        self._ends, self._memory = ends, self._buffer.memory
        self._words = np.frombuffer(self._memory, np.uint32)
        self._at = np.full((len(WORDS), len(self._column)), len(self._words) - 1)  # a word that stays zero
        self.shaped[:] = False
        identity: list[int] = []
        for place, (start, end) in enumerate(zip([0, *ends], ends)):
            for offset, stop in messages(self._memory, start, end, netlink.RTM_NEWQDISC):
                identity += self._place(place, offset, stop)
        self._identity_at = np.array(identity, np.intp) // 4
        self._identity = self._words.take(self._identity_at)
        self.relayouts += 1

    def _place(self, namespace: int, offset: int, end: int) -> list[int]:
        """Remember one message's numbers if it is of a port; the offsets of what tells that it is."""
        _, ifindex, _, parent, _ = TCMSG.unpack_from(self._memory, offset + netlink.NLMSG_HEADER.size)
        column = self._column.get((namespace, ifindex))
        if column is None or parent not in (TC_H_ROOT, TC_H_CLSACT):
            return []
        kind_at, kind, places = _places(self._memory, offset, end)
        if parent == TC_H_CLSACT:
            self._at[_ROW["clsact_drops"], column] = places["drops"] // 4
        else:
            self.shaped[column] = kind == b"htb"
            for word, place in places.items():
                self._at[_ROW[word], column] = place // 4
        return [*(offset + place for place in _IDENTITY), kind_at]

    def close(self) -> None:
        for dump_socket in self._sockets:
            dump_socket.close()


def _wide(word: str, offset: int) -> dict[str, int]:
    """Where the two words of a 64-bit number at `offset` stand."""
    low, high = (0, 4) if _LITTLE else (4, 0)
    return {word: offset + low, f"{word}_high": offset + high}


def _places(memory: memoryview, offset: int, end: int) -> tuple[int, bytes, dict[str, int]]:
    """(offset of the kind, kind, offset of each number) of one RTM_NEWQDISC message."""
    kind_at, kind, places = 0, b"", {}
    for name, at, stop in attributes(memory, offset + netlink.NLMSG_HEADER.size + TCMSG.size, end):
        if name == TCA_KIND:
            kind_at, kind = at, bytes(memory[at:stop]).rstrip(b"\0")
        elif name == TCA_OPTIONS and kind == b"htb":
            for option, inner, _ in attributes(memory, at, stop):
                if option == TCA_HTB_INIT:
                    places["direct"] = inner + 16  # struct tc_htb_glob: direct_pkts is the fifth word
        elif name == TCA_STATS2:
            places |= _statistics(memory, at, stop)
    return kind_at, kind, places


def _statistics(memory: memoryview, start: int, end: int) -> dict[str, int]:
    """Offsets in a TCA_STATS2 block (include/uapi/linux/gen_stats.h)."""
    places: dict[str, int] = {}
    for name, at, _ in attributes(memory, start, end):
        if name == TCA_STATS_BASIC:  # bytes u64, packets u32
            places = {**_wide("bytes", at), "packets": at + 8, **places}
        elif name == TCA_STATS_PKT64:  # only there once the count does not fit 32 bits
            places |= _wide("packets", at)
        elif name == TCA_STATS_QUEUE:  # qlen, backlog, drops, requeues, overlimits: u32 each
            places |= {"queued": at, "backlog": at + 4, "drops": at + 8}
    return places
