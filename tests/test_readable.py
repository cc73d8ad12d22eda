"""Waiting for a pipe, also one whose descriptor select(2) cannot name."""
from __future__ import annotations

import os
import resource
from collections.abc import Iterator

import pytest

from emulator.readable import can_be_read

HIGH = 1500


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    """A pipe whose reading end has a high number."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard <= HIGH:
        pytest.skip(f"the hard limit of open files here is {hard}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, HIGH + 1), hard))
    low, sink = os.pipe()
    source = os.dup2(low, HIGH)
    os.close(low)
    yield source, sink
    os.close(source)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_data_and_the_end_of_the_file_can_be_read(pipe: tuple[int, int]) -> None:
    source, sink = pipe
    assert not can_be_read(source, 0.01)
    os.write(sink, b"x")
    assert can_be_read(source, 0) and os.read(source, 9) == b"x" and not can_be_read(source, 0)
    os.close(sink)
    assert can_be_read(source, 0) and os.read(source, 9) == b""
