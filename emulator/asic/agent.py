"""The OpenFlow agent: one process that speaks for all `bpf` switches of a fabric.

It connects every switch to the controller and, where asked, listens for `ovs-ofctl` and its like.
It owns no packet's fate: when it dies, the datapath forwards on by the tables it has, and a
controller that dies leaves tables as they are while the agent tries to reach it again.

`python -m emulator.asic.agent CONFIG.json` is started by `agentprocess.py`; CONFIG holds
  datapath    'module:function', called with `argument`, returns the Datapath
  argument    any JSON
  controller  [host, port] or null
  listen      {datapath id: 'unix:PATH' or 'tcp:127.0.0.1:PORT'}
  parent      the process whose end ends this one
"""
from __future__ import annotations

import importlib
import json
import logging
import os
import selectors
import signal
import socket
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from emulator.asic.connection import Connection
from emulator.asic.listening import listen_on
from emulator.asic.openflow.session import Session
from emulator.asic.pipeline import Datapath, PortState
from emulator.asic.switch import Switch
from emulator.errors import EmulatorError
from emulator.machine import require_open_files
from emulator.syscalls import die_with_parent

_LOG = logging.getLogger("emulator.asic.agent")
POLL_S = 0.02  # for events of a datapath that has no file descriptor to wait for
_ROUND_S = 0.25  # timeouts of flow entries and silent peers need no closer look
_BACKOFF_S = (0.1, 1.0)  # first and longest wait before a new attempt at the controller
_PROBE_AFTER_S = 5.0  # Open vSwitch's inactivity probe
_GIVE_UP_AFTER_S = 15.0
_MAX_CLIENTS = 64


class Agent:
    """All switches of `datapath`, connected to `controller` and listening on `listen`.

    `listen` maps datapath ids to 'unix:PATH' or 'tcp:127.0.0.1:PORT'. Raises BadInput for an address
    of another form or an unknown switch, MachineLacks if the process may not open enough sockets.
    """

    def __init__(self, datapath: Datapath, controller: tuple[str, int] | None,
                 listen: Mapping[int, str], clock: Callable[[], float] = time.monotonic) -> None:
        self.datapath = datapath
        self.controller = controller
        self.clock = clock
        self.switches = {dpid: Switch(dpid, datapath, clock) for dpid in datapath.dpids()}
        require_open_files(2 * len(self.switches) + _MAX_CLIENTS)
        self.connections: set[Connection] = set()
        self._selector = selectors.DefaultSelector()
        self._next_round_s = 0.0
        self._said_something = False  # somebody may have something to be sent
        # dpid -> (wait before the next attempt, when it is due)
        self._retry = {dpid: (_BACKOFF_S[0], 0.0) for dpid in self.switches} if controller else {}
        self._listeners = []
        for dpid, address in listen.items():
            self._listeners.append(listen_on(address, dpid, self.switches))
            self._selector.register(self._listeners[-1].sock, selectors.EVENT_READ, dpid)
        datapath.watch(self._packet_in, self._port_status)
        for descriptor in datapath.descriptors():
            self._selector.register(descriptor, selectors.EVENT_READ, None)

    def _packet_in(self, dpid: int, in_port: int, frame: bytes) -> None:
        self._said_something = True
        self.switches[dpid].packet_in(in_port, frame)

    def _port_status(self, dpid: int, port: PortState) -> None:
        self._said_something = True
        self.switches[dpid].port_status(port)

    def step(self, timeout_s: float = POLL_S) -> None:
        """One round: connect what is due, serve sockets, deliver events of the datapath, send."""
        self._connect_due()
        for key, events in self._selector.select(timeout_s):
            self._said_something = True
            if isinstance(key.data, Connection):
                self._serve(key.data, events)
            elif key.data is not None:
                self._accept(key.fileobj, key.data)
        self.datapath.poll(0)
        now_s = self.clock()
        if now_s >= self._next_round_s:
            self._next_round_s = now_s + _ROUND_S
            self._said_something = True
            self._look_after_all(now_s)
        if self._said_something:
            self._said_something = False
            self._flush_all()

    def _look_after_all(self, now_s: float) -> None:
        for switch in self.switches.values():
            switch.tick()
        for connection in list(self.connections):
            if not connection.alive(now_s, _PROBE_AFTER_S, _GIVE_UP_AFTER_S):
                self._drop(connection)

    def _flush_all(self) -> None:
        """Send what any session has to say: one peer's message may concern the others too."""
        for connection in list(self.connections):
            if not connection.flush():
                self._drop(connection)
                continue
            events = connection.wanted_events()
            if self._selector.get_key(connection.sock).events != events:
                self._selector.modify(connection.sock, events, connection)

    def run(self, until: Callable[[], bool]) -> None:
        """Rounds until `until()`."""
        while not until():
            self.step()

    def close(self) -> None:
        """Close every socket; tables stay as they are."""
        for connection in list(self.connections):
            self._selector.unregister(connection.sock)
            connection.session.close()
            connection.sock.close()
        self.connections.clear()
        for listener in self._listeners:
            listener.close()
        self._selector.close()

    def _connect_due(self) -> None:
        now_s = self.clock()
        for dpid, (wait_s, due_s) in list(self._retry.items()):
            if now_s < due_s:
                continue
            del self._retry[dpid]
            session = Session(self.switches[dpid], False, "the controller")
            connection = Connection(socket.socket(socket.AF_INET, socket.SOCK_STREAM), session, now_s, wait_s)
            begun = connection.connect(self.controller)
            self._add(connection)
            if not begun:
                self._drop(connection)

    def _accept(self, listener: socket.socket, dpid: int) -> None:
        try:
            sock, _ = listener.accept()
        except OSError as error:
            _LOG.warning("switch %016x: a client could not be accepted: %s", dpid, error)
            return
        if sum(connection.retry_s is None for connection in self.connections) >= _MAX_CLIENTS:
            _LOG.warning("switch %016x: a client was turned away, %d are connected", dpid, _MAX_CLIENTS)
            sock.close()
            return
        self._add(Connection(sock, Session(self.switches[dpid], True, "a client"), self.clock()))

    def _add(self, connection: Connection) -> None:
        self.connections.add(connection)
        self._selector.register(connection.sock, connection.wanted_events(), connection)

    def _serve(self, connection: Connection, events: int) -> None:
        if not connection.connected:
            alive = connection.finish_connecting()
        else:
            alive = not events & selectors.EVENT_READ or connection.receive(self.clock())
        if not alive:
            self._drop(connection)

    def _drop(self, connection: Connection) -> None:
        self._selector.unregister(connection.sock)
        self.connections.discard(connection)
        connection.session.close()
        connection.sock.close()
        if connection.retry_s is None:
            return
        dpid = connection.session.switch.dpid
        first_s, longest_s = _BACKOFF_S
        had_session = connection.session.version is not None
        wait_s = first_s if had_session else min(2 * connection.retry_s, longest_s)
        self._retry[dpid] = (wait_s, self.clock() + wait_s)
        _LOG.log(logging.WARNING if had_session else logging.DEBUG,
                 "switch %016x: no connection to the controller (%s); trying again in %.1f s",
                 dpid, connection.why_closed, wait_s)


def _open_datapath(name: str, argument: object) -> Datapath:
    module, _, function = name.partition(":")
    return getattr(importlib.import_module(module), function)(argument)


def main(config_path: str) -> int:
    """Run until SIGTERM; 'ready' on standard output once all sockets listen. Returns the exit status."""
    config = json.loads(Path(config_path).read_text())
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    die_with_parent()
    if os.getppid() != config["parent"]:
        return 1  # the parent was gone before the request took effect
    stopped: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, frame: stopped.append(number))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C is the parent's to handle
    try:
        datapath = _open_datapath(config["datapath"], config["argument"])
        controller = tuple(config["controller"]) if config["controller"] else None
        agent = Agent(datapath, controller, {int(dpid): at for dpid, at in config["listen"].items()})
    except EmulatorError as error:
        print(error, file=sys.stderr)
        return error.exit_status
    print("ready", flush=True)
    try:
        agent.run(lambda: bool(stopped))
    finally:
        agent.close()
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1]))
