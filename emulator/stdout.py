"""Standard output whose reader may have gone, as behind `| head`, or whose disk may be full."""
from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def printing() -> Iterator[None]:
    """What is printed inside may be lost, with a sentence where the reader did not leave by himself; the
    program goes on.
    """
    try:
        yield
        if sys.stdout is not None:  # nobody's, as after `>&-`
            sys.stdout.flush()
    except BrokenPipeError:
        _drop()
    except OSError as error:
        _drop()
        print(f"emulator: standard output takes no more: {error.strerror}.", file=sys.stderr)


def _drop() -> None:
    """Whatever else is printed goes nowhere, also what is still in the buffer."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
