"""On which core the work of a connection is done."""
from __future__ import annotations

import os
from collections.abc import Sequence


class Cores:
    """Spreads connections over the cores that this process may use.

    The kernel does a flow's work (timers, forwarding, both ends' TCP) on the core that touched it last: an
    engine that stays on one core draws all of it there, and the other stands idle. So each connection has a
    home core, and this thread goes there before it reads or writes. Moving costs some 10 us, hence
    `poll` hands out the events of the present core first.
    """

    def __init__(self) -> None:
        self._usable = sorted(os.sched_getaffinity(0))
        self.here = -1

    def divide(self, sources: Sequence[int]) -> list[int]:
        """A home for each connection: neighbouring source hosts together, equal shares of hosts a core."""
        hosts = sorted(set(sources))
        usable = self._usable
        share = {host: usable[place * len(usable) // len(hosts)] for place, host in enumerate(hosts)}
        return [share[source] for source in sources]

    def go(self, core: int) -> None:
        """Move this thread to a core."""
        if core != self.here:
            os.sched_setaffinity(0, {core})
            self.here = core

    def leave(self) -> None:
        """Be free to run anywhere again."""
        os.sched_setaffinity(0, self._usable)
        self.here = -1
