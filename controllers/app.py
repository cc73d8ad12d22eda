"""The controller process: an os-ken app that installs planned tables and keeps the books on it.

    python -m controllers.app CONFIG.json

CONFIG is {"graph", "routing", "seed", "port", "status_socket", "parent_pid"}: it listens for switches
on 127.0.0.1:port, answers each connection to the Unix socket with one JSON object (`Ledger.summary`)
and ends when its parent does. The tables are worked out here, from the graph.

os-ken 4 runs on native threads; where it falls silent it is mended (`mending.py`). Its Event.wait
overruns its timeout, so this module waits with the standard library; what it merely logs as an error,
such as an exception in a handler, goes into the books.
"""
from __future__ import annotations

import json
import logging
import os
import signal
import socket
import sys
import threading
import time
from pathlib import Path

from os_ken import cfg
from os_ken.base.app_manager import AppManager, OSKenApp
from os_ken.controller import ofp_event
from os_ken.controller.controller import Datapath
from os_ken.controller.handler import (CONFIG_DISPATCHER, DEAD_DISPATCHER, HANDSHAKE_DISPATCHER,
                                       MAIN_DISPATCHER, set_ev_cls)

from controllers.ledger import Ledger
from controllers.mending import mend_os_ken
from controllers.openflow import (VERSIONS, count_requests, explain, install_orders, more_follows,
                                  port_is_up, rules_counted, versions_offered)
from controllers.parent import die_with_parent
from controllers.routing import plan_tables
from emulator.errors import MachineLacks
from topologies.graph_json import graph_from_json

LOG = logging.getLogger("controller")
VERSION_NAMES = {4: "1.3", 6: "1.5"}


class TableInstaller(OSKenApp):
    """Gives each switch its tables when it connects, waits for the barrier, reads the counts back.

    os-ken calls all handlers from one thread, so only the ledger is shared.
    """

    OFP_VERSIONS = list(VERSIONS)

    def __init__(self, *args, ledger: Ledger, **kwargs):
        super().__init__(*args, **kwargs)
        self.ledger = ledger
        self._live: dict[int, Datapath] = {}
        self._orders: dict[tuple[int, int], str] = {}  # (dpid, xid) -> what was asked
        self._groups_seen: dict[int, int] = {}

    @set_ev_cls(ofp_event.EventOFPHello, HANDSHAKE_DISPATCHER)
    def on_hello(self, event) -> None:
        """os-ken hangs up on a switch without a common version and only logs it; keep that in the books."""
        offered = versions_offered(event.msg)
        if not offered & set(VERSIONS):
            self.ledger.error(f"the switch at {_address(event.msg.datapath)} offers OpenFlow wire versions "
                              f"{sorted(offered)}; 1.3 (4) or 1.5 (6) is needed.", lacks=True)

    @set_ev_cls(ofp_event.EventOFPStateChange, [MAIN_DISPATCHER, DEAD_DISPATCHER])
    def on_state(self, event) -> None:
        datapath = event.datapath
        if event.state == DEAD_DISPATCHER:
            if self._live.get(datapath.id) is datapath:
                del self._live[datapath.id]
                self.ledger.disconnected(datapath.id)
                LOG.warning("switch %s disconnected", self.ledger.names[datapath.id])
        elif datapath.id not in self.ledger.names:
            self.ledger.error(f"a switch with datapath id {datapath.id:016x} connected, "
                              f"which is not in the topology.")
        else:
            self._install(datapath)

    def _install(self, datapath: Datapath) -> None:
        name, dpid = self.ledger.names[datapath.id], datapath.id
        self._live[dpid] = datapath
        self.ledger.connected(dpid, VERSION_NAMES[datapath.ofproto.OFP_VERSION])
        try:
            orders = install_orders(datapath, name, self.ledger.tables(dpid))
        except MachineLacks as error:
            self.ledger.error(str(error), lacks=True)
            return
        for order in orders:
            self._orders[dpid, datapath.set_xid(order.message)] = order.what
            datapath.send_msg(order.message)

    @set_ev_cls(ofp_event.EventOFPBarrierReply, MAIN_DISPATCHER)
    def on_barrier(self, event) -> None:
        datapath = event.msg.datapath
        if self._live.get(datapath.id) is datapath:
            self.ledger.barrier(datapath.id)
            self._groups_seen[datapath.id] = 0
            for request in count_requests(datapath):
                datapath.send_msg(request)

    @set_ev_cls(ofp_event.EventOFPAggregateStatsReply, MAIN_DISPATCHER)
    def on_rules(self, event) -> None:
        self.ledger.rules_counted(event.msg.datapath.id, rules_counted(event.msg))

    @set_ev_cls(ofp_event.EventOFPGroupStatsReply, MAIN_DISPATCHER)
    def on_groups(self, event) -> None:
        dpid = event.msg.datapath.id
        self._groups_seen[dpid] = self._groups_seen.get(dpid, 0) + len(event.msg.body)
        if not more_follows(event.msg):
            self.ledger.groups_counted(dpid, self._groups_seen.pop(dpid))

    @set_ev_cls(ofp_event.EventOFPPortDescStatsReply, [CONFIG_DISPATCHER, MAIN_DISPATCHER])
    def on_ports(self, event) -> None:
        datapath = event.msg.datapath
        if datapath.id in self.ledger.names:
            for port in event.msg.body:
                self.ledger.port(datapath.id, port.port_no, port_is_up(datapath, port))

    @set_ev_cls(ofp_event.EventOFPPortStatus, MAIN_DISPATCHER)
    def on_port_status(self, event) -> None:
        message, datapath = event.msg, event.msg.datapath
        if datapath.id in self.ledger.names:
            gone = message.reason == datapath.ofproto.OFPPR_DELETE
            self.ledger.port(datapath.id, message.desc.port_no,
                             None if gone else port_is_up(datapath, message.desc), time.time())

    @set_ev_cls(ofp_event.EventOFPPacketIn, MAIN_DISPATCHER)
    def on_packet_in(self, event) -> None:
        self.ledger.packet_in()

    @set_ev_cls(ofp_event.EventOFPErrorMsg, [HANDSHAKE_DISPATCHER, CONFIG_DISPATCHER, MAIN_DISPATCHER])
    def on_error(self, event) -> None:
        message, dpid = event.msg, event.msg.datapath.id
        what = self._orders.get((dpid, message.xid), "a message")
        name = self.ledger.names.get(dpid, f"at {_address(message.datapath)}")
        refusal = explain(message, name, what)
        LOG.error("%s", refusal.sentence)
        self.ledger.error(refusal.sentence, refusal.lacks_method)


class ErrorsToLedger(logging.Handler):
    """Puts os-ken's own log lines of level ERROR into the ledger; ours are there already."""

    def __init__(self, ledger: Ledger):
        super().__init__(level=logging.ERROR)
        self.ledger = ledger
        self.addFilter(lambda record: record.name != LOG.name)

    def emit(self, record: logging.LogRecord) -> None:
        cause = f": {record.exc_info[1]!r}" if record.exc_info else ""
        lines = record.getMessage().strip().splitlines()
        gist = " … ".join(dict.fromkeys([lines[0], lines[-1]]))
        self.ledger.error(f"the controller logged an error: {gist}{cause}")


def _address(datapath: Datapath) -> str:
    return ":".join(map(str, datapath.address[:2]))


def main(config_path: str) -> int:
    """Serve until the parent ends or the listening thread does; the process's exit status."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal's Ctrl-C is for the parent, who stops us
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(levelname)s %(message)s")
    config = json.loads(Path(config_path).read_text())
    die_with_parent(config["parent_pid"])
    graph = graph_from_json(config["graph"])
    ledger = Ledger(graph, plan_tables(graph, config["routing"], config["seed"]))
    logging.getLogger().addHandler(ErrorsToLedger(ledger))
    threading.Thread(target=serve_status, args=(config["status_socket"], ledger), daemon=True).start()
    threads = start_os_ken(ledger, config["port"])
    while all(thread.is_alive() for thread in threads):
        time.sleep(0.2)
    LOG.error("the thread that listens on port %s has ended", config["port"])
    return 1


def start_os_ken(ledger: Ledger, port: int) -> list[threading.Thread]:
    """Listen on 127.0.0.1:`port` in threads of os-ken; returns those that must live."""
    cfg.CONF(args=[], project="os_ken", default_config_files=[])
    cfg.CONF.set_override("ofp_listen_host", "127.0.0.1")
    cfg.CONF.set_override("ofp_tcp_listen_port", port)
    mend_os_ken()
    manager = AppManager.get_instance()
    manager.load_apps(["controllers.app", "os_ken.controller.ofp_handler"])
    manager.create_contexts()
    return manager.instantiate_apps(ledger=ledger)


def serve_status(path: str, ledger: Ledger) -> None:
    """Write the ledger's summary to whoever connects to the Unix socket `path`, and close."""
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"{path}~")
        server.listen(16)
        os.rename(f"{path}~", path)  # who sees the socket may connect: it listens already
        while True:
            connection, _ = server.accept()
            with connection:
                connection.settimeout(5)
                try:
                    connection.sendall(json.dumps(ledger.summary()).encode())
                except OSError as error:
                    LOG.warning("a reader of the status went away: %s", error)


if __name__ == "__main__":
    exit_status = main(sys.argv[1])
    logging.shutdown()
    os._exit(exit_status)  # a plain exit would wait for os-ken's threads, which never end
