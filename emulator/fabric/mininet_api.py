"""Mininet's API and command line over a fabric that is already built.

`net.get('h1').cmd('ping -c1 h16')`, `popen`, `pingAll`, the command line: all as Mininet's users know
them, while Mininet builds nothing and cleans up nothing. A node's shell opens with its first command, in
the node's namespace. Names in camel case are Mininet's own (mininet/node.py, link.py, net.py of 2.3.0).
"""
from __future__ import annotations

import os
import signal
import socket
import subprocess
from contextlib import nullcontext

from mininet.link import Intf, Link
from mininet.net import Mininet
from mininet.node import Node

from emulator import machine, netns
from emulator.errors import BadInput
from emulator.fabric.build import Fabric
from emulator.fabric.failures import set_link
from emulator.fabric.spec import Port
from emulator.fabric.switches import openflow_target

_SHELL_END_S = 2.0


def _own_signals() -> None:
    """In a new process: what a run ignores for itself (a terminal's signals), programs must heed."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


class PlacedNode(Node):
    """A node whose namespace stands already; `place` is its name, None for the sandbox's own."""

    isSetup = True  # nothing of Mininet's is needed but mnexec, which is looked for beforehand

    def __init__(self, name: str, place: str | None) -> None:
        self.place = place
        self._pid: int | None = None
        self._opens = False
        super().__init__(name, inNamespace=False)
        self.inNamespace = place is not None

    def startShell(self, mnopts: str | None = None) -> None:
        """Mininet's constructor calls this; the shell opens with the first command instead."""
        if not self._opens:
            self._opens = True
            return
        # mnexec's option n would make a namespace of its own; the process inherits ours
        inside, self.inNamespace = self.inNamespace, False
        try:
            with self._entered():
                super().startShell(mnopts)
        finally:
            self.inNamespace = inside

    def open(self) -> None:
        """Open the shell unless it is open."""
        if self.shell is None:
            self.startShell()

    @property
    def pid(self) -> int | None:
        """The shell's process, for programs that attach to it (`mnexec -a`)."""
        if self._opens:
            self.open()
        return self._pid

    @pid.setter
    def pid(self, value: int | None) -> None:
        self._pid = value

    def _entered(self):
        return netns.entered(self.place) if self.place else nullcontext()

    def _popen(self, cmd, **params):
        params.setdefault("preexec_fn", _own_signals)
        with self._entered():
            return super()._popen(cmd, **params)

    def cmd(self, *args, **kwargs):
        """Run a command and return its output."""
        self.open()
        return super().cmd(*args, **kwargs)

    def sendCmd(self, *args, **kwargs):
        """Start a command; `monitor` or `waitOutput` read what it says."""
        self.open()
        return super().sendCmd(*args, **kwargs)

    def popen(self, *args, **kwargs):
        """A subprocess.Popen on this node; needs no shell."""
        kwargs.setdefault("mncmd", [machine.program("mnexec"), "-d"])
        self._opens = False  # Mininet's popen asks for the shell's process, even where it is not used
        try:
            return super().popen(*args, **kwargs)
        finally:
            self._opens = True

    def terminate(self) -> None:
        """End the shell, if one is open, and nothing else."""
        if self.shell is None:
            return
        os.killpg(self.shell.pid, signal.SIGHUP)
        self.stdin.close()
        os.close(self.slave)
        try:
            self.shell.wait(_SHELL_END_S)
        except subprocess.TimeoutExpired:
            os.killpg(self.shell.pid, signal.SIGKILL)
            self.shell.wait(_SHELL_END_S)
        self.shell = None


class PlacedSwitch(PlacedNode):
    """A switch: its ports are in the sandbox's own namespace."""

    portBase = 1

    def __init__(self, name: str, dpid: int, target: str) -> None:
        super().__init__(name, None)
        self.dpid, self.target = f"{dpid:016x}", target

    def dpctl(self, command: str, *args: str) -> str:
        """ovs-ofctl on this switch."""
        return self.cmd("ovs-ofctl -O OpenFlow15", command, self.target, *args)

    def start(self, _controllers) -> None:
        """Switches run from the start of the fabric to its end."""
        raise BadInput(f"{self.name} runs already; switches are not started by hand here.")

    def stop(self, deleteIntfs: bool = False) -> None:
        """Switches run from the start of the fabric to its end."""
        raise BadInput(f"{self.name} cannot be stopped by hand; take its links down instead: "
                       f"link {self.name} NEIGHBOUR down")


class PlacedIntf(Intf):
    """An interface that stands already; its addresses are known without asking."""

    def __init__(self, port: Port, node: PlacedNode, link: Link, ip: str | None, mac: str | None) -> None:
        self.node, self.name, self.link, self.mac = node, port.name, link, mac
        self.ip, self.prefixLen, self.params = ip, 8 if ip else None, {}
        node.intfs[port.number], node.ports[self], node.nameToIntf[port.name] = self, port.number, self

    def updateIP(self) -> str | None:
        return self.ip

    def updateMAC(self) -> str | None:
        return self.mac

    def updateAddr(self) -> tuple[str | None, str | None]:
        return self.ip, self.mac

    def status(self) -> str:
        with self.node._entered():
            return "OK" if self.name in {name for _, name in socket.if_nameindex()} else "MISSING"


class PlacedLink(Link):
    """A link that stands already."""

    def __init__(self) -> None:
        self.intf1 = self.intf2 = None


class Network(Mininet):
    """The fabric as Mininet's users know a network."""

    def __init__(self, fabric: Fabric) -> None:
        super().__init__(topo=None, build=False)
        self.fabric, self.built = fabric, True
        graph = fabric.spec.graph
        self.hosts = [PlacedNode(host.name, fabric.site[host.name].netns) for host in graph.hosts]
        self.switches = [PlacedSwitch(switch.name, switch.dpid, openflow_target(fabric.spec, switch.name))
                         for switch in graph.switches]
        self.nameToNode = {node.name: node for node in (*self.hosts, *self.switches)}
        for port in fabric.ports:
            if port.name < port.peer:
                self._place_link(port, fabric.port[port.peer])
        order = {link.index: place for place, link in enumerate(graph.links)}
        self.links.sort(key=lambda link: order[fabric.port[link.intf1.name].link])

    def _place_link(self, *ends: Port) -> None:
        link, graph = PlacedLink(), self.fabric.spec.graph
        first, second = sorted(ends, key=lambda port: port.ifindex)
        made = []
        for port in (first, second):
            host = graph.host.get(port.node)
            made.append(PlacedIntf(port, self.nameToNode[port.node], link, host.ip if host else None,
                                   host.mac if host else None))
        link.intf1, link.intf2 = made
        self.links.append(link)

    def start(self) -> None:
        """It runs already."""

    def stop(self) -> None:
        """End the shells; the fabric itself ends with its sandbox."""
        for node in (*self.hosts, *self.switches):
            node.terminate()

    def configLinkStatus(self, src: str, dst: str, status: str) -> None:
        """Take all links between two nodes down or up, as the command `link` does."""
        between = [link for link in self.fabric.spec.graph.links if {link.a, link.b} == {src, dst}]
        if not between:
            raise BadInput(f"There is no link between {src} and {dst}.")
        for link in between:
            set_link(self.fabric, link.index, status == "up")

    def _fixed(self, *_args, **_kwargs):
        raise BadInput("This fabric is fixed once it stands; change the topology and run again.")

    build = addHost = addSwitch = addController = addLink = addNAT = delNode = delLink = _fixed


def open_network(fabric: Fabric) -> Network:
    """Mininet's view of a built fabric. Raises MachineLacks when mnexec is missing."""
    machine.program("mnexec")
    Mininet.inited = True  # or Mininet raises limits of the whole kernel
    return Network(fabric)
