"""Standard output and standard error whose reader may have gone, as behind `2>&1 | head`, or whose disk may
be full: what is said there may be lost, the program goes on.
"""
from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO


@contextmanager
def printing() -> Iterator[None]:
    """What is printed on standard output inside may be lost, with a sentence where the reader did not leave
    by himself.
    """
    try:
        yield
        if sys.stdout is not None:  # nobody's, as after `>&-`
            sys.stdout.flush()
    except BrokenPipeError:
        _drop(sys.stdout)
    except OSError as error:
        _drop(sys.stdout)
        complain(f"emulator: standard output takes no more: {error.strerror}.\n")


def complain(text: str) -> bool:
    """Write on standard error at once; False where nobody reads it any more."""
    if sys.stderr is None:
        return False
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except OSError:
        _drop(sys.stderr)
        return False
    return True


def _drop(stream: TextIO) -> None:
    """Whatever else is written goes nowhere, also what is in the buffer still, which would fail at the end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
