"""Dependencies follow from the data: the bookkeeping of who wrote which byte."""
from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.errors import BadInput
from traffic import program
from traffic.program import Program, Written, pieces, split

SPANS = st.tuples(st.integers(0, 30), st.integers(1, 15)).map(lambda span: (span[0], span[0] + span[1]))


@given(st.lists(SPANS, max_size=20), SPANS)
def test_written_is_a_memory_of_single_bytes(writes, asked):
    written, last = Written(), {}
    for op, (low, high) in enumerate(writes):
        written.mark(low, high, op)
        last.update(dict.fromkeys(range(low, high), op))
    assert written.by(*asked) == tuple(sorted({last[byte] for byte in range(*asked) if byte in last}))


@given(low=st.integers(0, 99), size=st.integers(0, 99), parts=st.integers(1, 20))
def test_split_covers_evenly(low, size, parts):
    ranges = split(low, low + size, parts)
    assert ranges[0][0] == low and ranges[-1][1] == low + size and len(ranges) == parts
    assert all(before[1] == after[0] for before, after in zip(ranges, ranges[1:]))
    sizes = [end - start for start, end in ranges]
    assert max(sizes) - min(sizes) <= 1


@given(size=st.integers(0, 99), slices=st.integers(1, 7), channels=st.integers(1, 5))
def test_pieces_cover_once_and_are_never_empty(size, slices, channels):
    cut = pieces(0, size, slices, channels)
    assert sorted(byte for _, low, high in cut for byte in range(low, high)) == list(range(size))
    assert all(low < high and channel < channels for channel, low, high in cut)


def test_every_message_of_a_connection_has_a_tag_of_its_own():
    writing = Program(2)
    for _ in range(3):
        writing.message(0, 1, 10)
    writing.message(0, 1, 10, channel=1)
    assert [(op.tag, op.channel) for op in writing.ops[0]] == [(0, 0), (1, 0), (2, 0), (0, 1)]


def test_a_schedule_that_nobody_could_hold_is_refused(monkeypatch):
    monkeypatch.setattr(program, "MOST_OPERATIONS", 5)
    writing = Program(2)
    with pytest.raises(BadInput, match="more than 5 operations; use fewer"):
        for _ in range(3):
            writing.message(0, 1, 10)
