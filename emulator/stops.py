"""Signals that ask to stop while no sandbox runs; one that runs obeys them itself (`sandbox.enter`)."""
from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager


class Stops:
    """They raise KeyboardInterrupt, but while `held`, when files are being written, they only leave word in
    `came`.
    """

    def __init__(self) -> None:
        self.held = self.came = False

    def __call__(self, _number: int, _frame: object) -> None:
        if not self.held:
            raise KeyboardInterrupt
        self.came = True


@contextmanager
def stoppable() -> Iterator[Stops]:
    """Obey SIGINT, SIGTERM and SIGHUP so inside the block; the old handlers return afterwards."""
    stops = Stops()
    old = {number: signal.signal(number, stops) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        yield stops
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)
