"""Progress on stderr while a run works: a line a stage, and one line that renews itself on a terminal."""
from __future__ import annotations

import sys
import time

from emulator.runlog import Stage
from emulator.stdout import complain
from emulator.units import show_time


class Progress:
    """Stages of a run with their durations. Silent when `quiet`."""

    def __init__(self, quiet: bool) -> None:
        self._quiet = quiet
        self._live = sys.stderr is not None and sys.stderr.isatty() and not quiet
        self._stage, self._since, self._shown = "", 0.0, 0.0
        self._began_s = 0.0
        self._past: list[Stage] = []

    def stage(self, name: str) -> None:
        """Begin a stage; the one before it is over."""
        self.done()
        self._stage, self._since, self._began_s = name, time.monotonic(), time.time()
        if self._live:
            self._say(f"\r\x1b[K  {name} …")

    def update(self, text: str) -> None:
        """Say where a long stage is; on a pipe at most every 10 seconds."""
        now = time.monotonic()
        if self._quiet or (not self._live and now - self._shown < 10.0):
            return
        self._shown = now
        self._say(f"\r\x1b[K  {self._stage}: {text}" if self._live else f"  {self._stage}: {text}\n")

    def done(self) -> None:
        """End the current stage with the time that it took."""
        took_s = time.monotonic() - self._since
        if self._stage:
            self._past.append(Stage(self._stage, self._began_s, took_s))
        if self._stage and not self._quiet:
            clear = "\r\x1b[K" if self._live else ""
            self._say(f"{clear}  {self._stage} ({show_time(took_s)})\n")
        self._stage = ""

    @property
    def stages(self) -> list[Stage]:
        """All stages so far, the present one as broken off."""
        return [*self._past, *([Stage(self._stage, self._began_s, None)] if self._stage else [])]

    def _say(self, text: str) -> None:
        """Write at once; when nobody reads it any more, the run goes on in silence."""
        if not complain(text):
            self._quiet = True
