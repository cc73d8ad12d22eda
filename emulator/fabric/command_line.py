"""Mininet's command line on a running fabric, at a terminal or fed by a pipe or file."""
from __future__ import annotations

import sys
from typing import TextIO

from mininet.cli import CLI
from mininet.log import error, lg, output

from emulator import machine
from emulator.errors import EmulatorError
from emulator.fabric.class_command import classes_command
from emulator.fabric.mininet_api import Network
from emulator.fabric.switches import Switches


class CommandLine(CLI):
    """Mininet's CLI; what is read from a pipe are commands, never the input of a command before."""

    # Mininet would write a history into the user's home
    readlineInited = True

    def __init__(self, network: Network, stdin: TextIO, switches: Switches | None = None) -> None:
        self._switches = switches
        if stdin.isatty():
            import readline  # noqa: F401, its import is what gives input() line editing
        else:
            self.use_rawinput, self.prompt = False, ""
        super().__init__(network, stdin=stdin)

    def waitForNode(self, node) -> None:
        """Print a command's output as it comes, until it ends."""
        if self.isatty():
            super().waitForNode(node)
            return
        while node.waiting:
            try:
                output(node.monitor(timeoutms=1000))
            except KeyboardInterrupt:
                node.sendInt()

    def onecmd(self, line: str):
        """One command; a refusal is printed and does not end the command line."""
        try:
            return super().onecmd(line)
        except EmulatorError as refusal:
            error(f"{refusal}\n")
            return None

    def do_classes(self, line: str) -> None:
        """Show the classes of service, or change one: classes NAME weight=N"""
        output(classes_command(self._switches, line))

    def emptyline(self) -> None:
        pass


def run_command_line(network: Network, stdin: TextIO | None = None, switches: Switches | None = None) -> None:
    """Read commands until 'exit' or the end of the input; the shells are closed afterwards.

    Raises MachineLacks when ping is missing.
    """
    machine.require_programs(("ping",))  # without it pingall would call every host unreachable
    stdin = stdin or sys.stdin
    lg.ch.setStream(sys.stdout)  # what commands print is this program's output, not its complaints
    try:
        CommandLine(network, stdin, switches)
    finally:
        network.stop()
