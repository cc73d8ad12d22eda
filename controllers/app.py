"""The controller process: the os-ken app (`control.py`), its books, and the socket that answers on them.

    python -m controllers.app CONFIG.json

CONFIG is {"graph", "routing", "seed", "rate_bps", "port", "status_socket", "parent_pid"}: it listens for
switches on 127.0.0.1:port, answers requests on the Unix socket (`answers.py`) and ends when its parent does.
The tables are worked out here, from the graph; links that an earlier process of the same CONFIG was told to
drain are drained still (`drains.py`).

os-ken 4 runs on native threads; where it falls silent it is mended (`mending.py`). Its Event.wait
overruns its timeout, so this module waits with the standard library; what it merely logs as an error,
such as an exception in a handler, goes into the books.
"""
from __future__ import annotations

import json
import logging
import os
import signal
import sys
import threading
import time
from pathlib import Path

from os_ken import cfg
from os_ken.base.app_manager import AppManager

from controllers.answers import serve
from controllers.drains import drains_file, kept
from controllers.elephants import Elephants
from controllers.ledger import Ledger
from controllers.mending import leave_descriptions, mend_os_ken
from controllers.network import Network
from controllers.parent import die_with_parent
from controllers.routing import scheduling_of
from topologies.graph_json import graph_from_json

LOG = logging.getLogger("controller")


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


def main(config_path: str) -> int:
    """Serve until the parent ends or the listening thread does; the process's exit status."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal's Ctrl-C is for the parent, who stops us
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(levelname)s %(message)s")
    config = json.loads(Path(config_path).read_text())
    die_with_parent(config["parent_pid"])
    graph = graph_from_json(config["graph"])
    drained = drains_file(Path(config_path))
    network = Network(graph, config["routing"], config["seed"], drained=kept(drained))
    ledger = Ledger(graph, network.tables())
    ledger.drained(network.drained_names)
    logging.getLogger().addHandler(ErrorsToLedger(ledger))
    threading.Thread(target=serve, args=(config["status_socket"], ledger, graph), daemon=True).start()
    scheduling = scheduling_of(config["routing"])
    elephants = Elephants(network, scheduling, config["rate_bps"]) if scheduling else None
    if elephants:
        ledger.scheduled(elephants.loop.summary())
    threads = start_os_ken(ledger, network, elephants, drained, config["port"])
    while all(thread.is_alive() for thread in threads):
        time.sleep(0.2)
    LOG.error("the thread that listens on port %s has ended", config["port"])
    return 1


def start_os_ken(ledger: Ledger, network: Network, elephants: Elephants | None, drained: Path,
                 port: int) -> list[threading.Thread]:
    """Listen on 127.0.0.1:`port` in threads of os-ken; returns those that must live."""
    cfg.CONF(args=[], project="os_ken", default_config_files=[])
    cfg.CONF.set_override("ofp_listen_host", "127.0.0.1")
    cfg.CONF.set_override("ofp_tcp_listen_port", port)
    mend_os_ken()
    leave_descriptions()
    manager = AppManager.get_instance()
    manager.load_apps(["controllers.control", "os_ken.controller.ofp_handler"])
    manager.create_contexts()
    return manager.instantiate_apps(ledger=ledger, network=network, drained=drained, elephants=elephants)


if __name__ == "__main__":
    exit_status = main(sys.argv[1])
    logging.shutdown()
    os._exit(exit_status)  # a plain exit would wait for os-ken's threads, which never end
