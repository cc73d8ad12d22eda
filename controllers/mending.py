"""os-ken 4.2 on native threads, mended where it falls silent.

`hub.TaskExit` is there the class Exception: whatever a thread raises is taken for an orderly end, and
one exception in a handler ends the thread that calls all handlers, without a word in the log. And
when a switch hangs up, its connection waits for the sending thread, which waits for something to
send, since `hub.kill` does nothing: no DEAD event ever comes, and two threads stay behind.
"""
from __future__ import annotations

import socket
from contextlib import closing

import os_ken.base.app_manager  # noqa: F401  (first, else os-ken's modules import each other in a circle)
from os_ken.controller import controller
from os_ken.lib import hub


class TaskExit(Exception):
    """Raised by nobody: threads that are not killed do not exit in this way."""


class EndingDatapath(controller.Datapath):
    """A connection that is DEAD, and whose sender stops, as soon as nothing more can be received."""

    def _recv_loop(self) -> None:
        try:
            super()._recv_loop()
        finally:
            self.close()   # sends the DEAD event
            self.send(b"")  # wakes the sender, which then finds the connection dead


def serve_connection(connection: socket.socket, address: tuple[str, int]) -> None:
    """Speak with one switch until it hangs up."""
    with closing(EndingDatapath(connection, address)) as datapath:
        datapath.serve()


def mend_os_ken() -> None:
    """Put the above in place, before any app is loaded; os-ken finds both by their module's names."""
    hub.TaskExit = TaskExit
    controller.datapath_connection_factory = serve_connection
