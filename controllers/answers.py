"""What the controller answers on its Unix socket: its books, the traffic of links, and orders to drain.

A request is one line of JSON, {"ask": "books" | "status" | "drain" | "undrain", "name": LINK or SWITCH};
no line at all asks for the books. The answer is one JSON object, {"error": sentence} where it is no.
"""
from __future__ import annotations

import json
import logging
import os
import socket
import threading
import time
from pathlib import Path
from queue import Empty, SimpleQueue

from os_ken.base import app_manager
from os_ken.controller import event as osken_event

from controllers.ledger import Ledger
from controllers.network import links_of
from controllers.news import CountTraffic, Drain
from emulator.errors import BadInput
from topologies.graph import Graph

LOG = logging.getLogger("controller")
CONTROLLER = "Controller"  # the app of control.py, as os-ken names it
REQUEST_BYTES = 4096
ANSWER_S, DRAIN_S = 2.0, 30.0
QUIET_S, LOOK_S = 0.3, 0.1  # a link is empty when nothing crossed it for so long


def serve(path: str, ledger: Ledger, graph: Graph) -> None:
    """Answer whoever connects to the Unix socket `path`, each in a thread of its own; never returns."""
    Path(f"{path}~").unlink(missing_ok=True)  # of a controller that was killed at its start
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"{path}~")
        server.listen(16)
        os.rename(f"{path}~", path)  # who sees the socket may connect: it listens already
        while True:
            connection, _ = server.accept()
            threading.Thread(target=_answer, args=(connection, ledger, graph), daemon=True).start()


def _answer(connection: socket.socket, ledger: Ledger, graph: Graph) -> None:
    with connection:
        connection.settimeout(DRAIN_S)
        try:
            line = connection.makefile("rb").readline(REQUEST_BYTES)
            request = json.loads(line) if line.strip() else {}
            connection.sendall(json.dumps(_answered(request, ledger, graph)).encode())
        except (OSError, ValueError) as error:
            LOG.warning("a reader of the status went away, or asked for something unreadable: %s", error)


def _answered(request: dict, ledger: Ledger, graph: Graph) -> dict[str, object]:
    ask = request.get("ask", "books")
    if ask == "books":
        return ledger.summary()
    try:
        if ask == "status":
            return ledger.summary() | {"topology": _topology(graph), "traffic": _traffic(ledger, graph)}
        return _drain(str(request.get("name", "")), ask == "drain", ledger, graph)
    except BadInput as error:
        return {"error": str(error)}


def _topology(graph: Graph) -> dict[str, object]:
    return {"name": graph.name, "hosts": len(graph.hosts),
            "links": [{"link": f"{link.a}-{link.b}", "tier": link.tier, "a": link.a, "a_port": link.a_port,
                       "b": link.b, "b_port": link.b_port, "speed": link.speed} for link in graph.links]}


def _tell(event: osken_event.EventBase) -> None:
    """Put an event into the app's queue; BadInput where there is no app within ANSWER_S."""
    end_s = time.monotonic() + ANSWER_S
    while CONTROLLER not in app_manager.SERVICE_BRICKS:  # we answer before the app is there
        if time.monotonic() > end_s:
            raise BadInput("the controller is still starting; ask again in a moment.")
        time.sleep(0.01)
    app_manager.SERVICE_BRICKS[CONTROLLER].send_event(CONTROLLER, event)


def _sent(ledger: Ledger, timeout_s: float = ANSWER_S) -> dict[int, tuple[float, dict[int, tuple[int, int]]]]:
    """Fresh counters of every connected switch that answers in time."""
    asked_s = time.monotonic()
    _tell(CountTraffic())
    connected = {name for name, entry in ledger.summary()["switches"].items() if entry["connected"]}
    while time.monotonic() < asked_s + timeout_s:
        fresh = {dpid: seen for dpid, seen in ledger.counted().items() if seen[0] >= asked_s}
        if connected <= {ledger.names[dpid] for dpid in fresh}:
            break
        time.sleep(0.01)
    return fresh


def _traffic(ledger: Ledger, graph: Graph) -> list[list[float | None]]:
    """Of each link, as `_topology` lists them: [bit/s from a to b, from b to a] over a quarter of a second;
    None where it was not counted. Not by name: parallel links have one name.
    """
    before = _sent(ledger)
    time.sleep(0.25)
    after = _sent(ledger)

    def rate(node: str, port: int) -> float | None:
        dpid = graph.switch[node].dpid if node in graph.switch else None
        if dpid not in before or dpid not in after or port not in before[dpid][1]:
            return None
        (early_s, early), (late_s, late) = before[dpid], after[dpid]
        return 8 * (late[port][1] - early[port][1]) / (late_s - early_s)

    return [[rate(link.a, link.a_port), rate(link.b, link.b_port)] for link in graph.links]


def _drain(name: str, drained: bool, ledger: Ledger, graph: Graph) -> dict[str, object]:
    """Have traffic leave `name`, wait until all switches hold the new tables and the links are empty."""
    began_s = time.monotonic()
    links = links_of(graph, name)
    answer: SimpleQueue = SimpleQueue()
    _tell(Drain(name, drained, answer))
    try:
        refusal = answer.get(timeout=ANSWER_S)
    except Empty:
        raise BadInput("the controller is busy and did not take the order; give it again.") from None
    if refusal:
        raise BadInput(refusal)
    while not ledger.settled:
        if time.monotonic() > began_s + DRAIN_S:
            raise BadInput(f"the switches did not confirm their new tables within {DRAIN_S:g} s.")
        time.sleep(0.005)
    moved_s = time.monotonic() - began_s
    if drained:
        between = [link for link in links if link.a in graph.switch and link.b in graph.switch]
        ends = {(graph.switch[node].dpid, port) for link in between
                for node, port in ((link.a, link.a_port), (link.b, link.b_port))}
        _wait_until_empty(name, ends, ledger, began_s + DRAIN_S)
    return {"name": name, "drained": drained, "moved_s": moved_s, "done_s": time.monotonic() - began_s}


def _wait_until_empty(name: str, ends: set[tuple[int, int]], ledger: Ledger, end_s: float) -> None:
    last, since_s = None, time.monotonic()
    while time.monotonic() - since_s < QUIET_S:
        seen = _sent(ledger)
        now = {(dpid, port): seen[dpid][1].get(port) for dpid, port in ends if dpid in seen}
        if now != last:
            last, since_s = now, time.monotonic()
        if time.monotonic() > end_s:
            raise BadInput(f"packets still cross {name} after {DRAIN_S:g} s, though no table sends any.")
        time.sleep(LOOK_S)
