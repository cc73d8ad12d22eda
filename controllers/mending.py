"""os-ken 4.2 on native threads, mended where it falls silent.

`hub.TaskExit` is there the class Exception: whatever a thread raises is taken for an orderly end, and
one exception in a handler ends the thread that calls all handlers, without a word in the log. And
when a switch hangs up, its connection waits for the sending thread, which waits for something to
send, since `hub.kill` does nothing: no DEAD event ever comes, and two threads stay behind. And its decoder
trips over Open vSwitch's group property, so descriptions are left as bytes for `readback.py`.
"""
from __future__ import annotations

import socket
import struct
from contextlib import closing

import os_ken.base.app_manager  # noqa: F401  (first, else os-ken's modules import each other in a circle)
from os_ken.controller import controller
from os_ken.lib import hub
from os_ken.ofproto import ofproto_v1_5_parser


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


class Description(bytes):
    """An ofp_flow_desc or ofp_group_desc as it came; os-ken asks of it its `length` only."""

    @property
    def length(self) -> int:
        return len(self)

    @classmethod
    def parser(cls, data: bytes, offset: int) -> Description:
        """The description at `offset`, whose first two bytes are its length."""
        length, = struct.unpack_from("!H", data, offset)
        return cls(data[offset:offset + length])


def serve_connection(connection: socket.socket, address: tuple[str, int]) -> None:
    """Speak with one switch until it hangs up."""
    with closing(EndingDatapath(connection, address)) as datapath:
        datapath.serve()


def mend_os_ken() -> None:
    """Put the above in place, before any app is loaded; os-ken finds both by their module's names."""
    hub.TaskExit = TaskExit
    controller.datapath_connection_factory = serve_connection


def leave_descriptions() -> None:
    """Have flow and group descriptions (1.5) come as Description instead of decoded."""
    ofproto_v1_5_parser.OFPFlowDescStatsReply.cls_stats_body_cls = Description
    ofproto_v1_5_parser.OFPGroupDescStatsReply.cls_stats_body_cls = Description
