"""Waiting until something can be read from a file or pipe, whatever its descriptor's number.

select(2) knows descriptors below 1024 only, and a replay over many ranks holds more sockets than that.
"""
from __future__ import annotations

import select
from typing import IO


def can_be_read(file: IO[str] | IO[bytes] | int, timeout_s: float) -> bool:
    """Whether there is data, or the end of the file, within `timeout_s`."""
    poll = select.poll()
    poll.register(file, select.POLLIN)
    return bool(poll.poll(1000 * timeout_s))
