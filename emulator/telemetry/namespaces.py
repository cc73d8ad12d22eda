"""Entering a host's namespace for as long as it takes to open a socket or read a file in it.

A socket belongs to the namespace in which it was opened, so one process can read the counters of
every host. Only the calling thread moves: read `/proc/thread-self/net`, not `/proc/net`, inside.
"""
from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from emulator import netns as names
from emulator.errors import MachineLacks


@contextmanager
def inside(netns: str | None) -> Iterator[None]:
    """Run the block in the namespace /run/netns/NETNS; None is the namespace one is in already.

    Raises MachineLacks when the namespace is not there or may not be entered.
    """
    with ExitStack() as stack:
        if netns is not None:
            try:
                stack.enter_context(names.entered(netns))
            except OSError as error:
                raise MachineLacks(
                    f"The network namespace {names.DIRECTORY}/{netns} cannot be entered "
                    f"({error.strerror}); is its host still there, and is this root?") from None
        yield
