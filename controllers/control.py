"""The os-ken app: puts planned tables in force and keeps them fit. Started by `app.py`.

A switch that connects is read first and told only what differs from the plan, so a controller that comes
back changes nothing that is right; it waits for all switches before it begins, since only they know which
links are dead. When a port goes or comes, or a link is drained, tables are planned anew
on what is left (`network.py`) and every switch is told the difference (`rollout.py`, `changes.py`).
"""
from __future__ import annotations

import logging
import threading
import time
from pathlib import Path

from os_ken.controller import ofp_event
from os_ken.controller.controller import Datapath
from os_ken.controller.handler import CONFIG_DISPATCHER, DEAD_DISPATCHER, MAIN_DISPATCHER, set_ev_cls

from controllers import readback
from controllers.bookkeeping import Bookkeeper
from controllers.drains import keep
from controllers.elephants import Elephants
from controllers.ledger import Ledger
from controllers.network import Network
from controllers.news import Begin, Drain, Look, Replan
from controllers.openflow import (SEEDED_VERSION, Order, change_orders, install_orders, more_follows,
                                  port_is_up, read_requests)
from controllers.rollout import Rollout
from emulator.errors import BadInput, MachineLacks

LOG = logging.getLogger("controller")
VERSION_NAMES = {4: "1.3", 6: "1.5"}
GATHER_S = 5.0  # from the first switch on: those that have not come by then are not waited for


class _Reading:
    """The descriptions of one switch's tables as they come in."""

    def __init__(self, wanted: set[str]) -> None:
        self.wanted = wanted
        self.parts: dict[str, list] = {"flows": [], "groups": []}


class Controller(Bookkeeper):
    """Events in, orders out. os-ken calls all handlers from one thread, so only the ledger is shared."""

    def __init__(self, *args, ledger: Ledger, network: Network, drained: Path,
                 elephants: Elephants | None = None, **kwargs):
        """drained: the file that keeps the drained links of `network` (`drains.py`)."""
        super().__init__(*args, ledger=ledger, rollout=Rollout(network.tables()), **kwargs)
        self.network, self._drained_file, self.elephants = network, drained, elephants
        self._reading: dict[int, _Reading] = {}
        self._planned = network  # what the present tables were planned on
        self._replanning = False
        self._began_s: float | None = None  # of the news that the present change answers
        self._told: dict[int, int] = {}     # switch -> changes of the present change
        self._begun = self._adopted = False
        self._late = False                  # there are new paths that no table on its way has
        self._gathering: threading.Timer | None = None
        if elephants:
            elephants.start(lambda: self.send_event(self.name, Look()))

    # ------------------------------------------------------------ switches come and go

    @set_ev_cls(ofp_event.EventOFPStateChange, [MAIN_DISPATCHER, DEAD_DISPATCHER])
    def on_state(self, event) -> None:
        datapath = event.datapath
        if event.state == DEAD_DISPATCHER:
            if self.live.get(datapath.id) is datapath:
                del self.live[datapath.id]
                self.rollout.forgotten(datapath.id)
                self.ledger.disconnected(datapath.id)
                LOG.warning("switch %s disconnected", self.ledger.names[datapath.id])
                self._go_on()
        elif datapath.id not in self.ledger.names:
            self.ledger.error(f"a switch with datapath id {datapath.id:016x} connected, "
                              f"which is not in the topology.")
        else:
            self.live[datapath.id] = datapath
            self.ledger.connected(datapath.id, VERSION_NAMES[datapath.ofproto.OFP_VERSION])
            seeded = datapath.ofproto.OFP_VERSION >= SEEDED_VERSION
            self._reading[datapath.id] = _Reading({"flows", "groups"} if seeded else {"flows"})
            for request in read_requests(datapath):
                datapath.send_msg(request)
            if self._gathering is None:
                self._gathering = threading.Timer(GATHER_S, self.send_event, (self.name, Begin()))
                self._gathering.daemon = True
                self._gathering.start()

    @set_ev_cls([ofp_event.EventOFPFlowDescStatsReply, ofp_event.EventOFPFlowStatsReply], MAIN_DISPATCHER)
    def on_flow_descriptions(self, event) -> None:
        self._read(event.msg, "flows")

    @set_ev_cls(ofp_event.EventOFPGroupDescStatsReply, MAIN_DISPATCHER)
    def on_group_descriptions(self, event) -> None:
        self._read(event.msg, "groups")

    def _read(self, reply, what: str) -> None:
        """Keep a part of what the switch holds; with the last one it is told what differs."""
        dpid = reply.datapath.id
        reading = self._reading.get(dpid)
        if reading is None and self.elephants and what == "flows":
            self._place(self.elephants.pairs(dpid, reply.body, not more_follows(reply), self.network))
        if reading is None or self.live.get(dpid) is not reply.datapath:
            return
        reading.parts[what] += reply.body
        if not more_follows(reply):
            reading.wanted.discard(what)
        if reading.wanted:
            return
        del self._reading[dpid]
        try:
            self.rollout.holds(dpid, readback.tables(dpid, reading.parts["flows"], reading.parts["groups"]))
        except readback.Foreign as strange:
            LOG.warning("switch %s holds %s: it gets its tables anew", self.ledger.names[dpid], strange)
            tables = self.rollout.target[dpid]
            self.rollout.holds(dpid, tables)
            self._send(dpid, install_orders(reply.datapath, self.ledger.names[dpid], tables))
            return
        if self._begun:
            self._adopt(dpid)
        elif len(self.rollout.known()) == len(self.ledger.names):
            self.on_begin(None)

    @set_ev_cls(Begin)
    def on_begin(self, _event) -> None:
        """All switches that will come have come: what they said of their ports is what is planned on."""
        if self._begun:
            return
        self._begun, self._planned = True, self.network
        self.rollout.target = self.network.tables()
        for dpid in self.rollout.known():
            self._adopt(dpid)
        self._go_on()

    def _adopt(self, dpid: int) -> None:
        """Tell a switch that was just read what differs; it may be nothing."""
        if self._bring(dpid):
            return
        self.ledger.planned(dpid, self.rollout.tables(dpid))
        if not self.rollout.owes(dpid):
            LOG.info("switch %s holds its tables already", self.ledger.names[dpid])
            self.ledger.barrier(dpid)
            self.count(self.live[dpid])

    # ------------------------------------------------------------ tables go out

    def _bring(self, dpid: int) -> bool:
        """Tell a switch what differs from its present tables; was there anything?"""
        datapath, name = self.live[dpid], self.ledger.names[dpid]
        steps = self.rollout.changes_for(dpid)
        if not steps:
            return False
        self.ledger.planned(dpid, self.rollout.tables(dpid))
        try:
            self._send(dpid, change_orders(datapath, name, steps))
        except MachineLacks as error:
            self.ledger.error(str(error), lacks=True)
            return False
        self._told[dpid] = self._told.get(dpid, 0) + len(steps)
        return True

    def _send(self, dpid: int, orders: list[Order]) -> None:
        datapath = self.live[dpid]
        self.ledger.planned(dpid, self.rollout.tables(dpid))
        self.rollout.told(dpid)
        for order in orders:
            self.orders[dpid, datapath.set_xid(order.message)] = order.what
            datapath.send_msg(order.message)

    def put_in_force(self, steps, began_s: float) -> None:
        """Have all switches hold the last of `steps` (datapath id -> tables, an iterator), by way of the
        others, each once all have confirmed the one before. began_s: when what it answers was learnt.
        """
        if self._began_s is None:
            self._began_s, self._told = began_s, {}
        self.ledger.settling()
        self.rollout.begin(steps)
        self._go_on(at_once=True)

    def _go_on(self, at_once: bool = False) -> None:
        """The next tables, if all switches have confirmed the present ones (or `at_once`)."""
        while at_once or not self.rollout.waiting:
            at_once = False
            if self.rollout.advance():
                for dpid in self.rollout.known():
                    self._bring(dpid)
            elif self.rollout.waiting:
                return
            else:
                self._settled()
                if not self._late or self._replanning:
                    return
                self._late = False
                self.rollout.begin(iter([self.network.tables()]))

    def _settled(self) -> None:
        if self._begun and not self._adopted:
            self._adopted = True
            self.ledger.adopted({"done_s": time.monotonic(), "switches": len(self._told),
                                 "changes": sum(self._told.values())})
        if self._began_s is None:
            return
        links = {link.index: f"{link.a}-{link.b}" for link in self.network.graph.links}
        self.ledger.repaired({
            "began_s": self._began_s, "done_s": time.monotonic(), "switches": len(self._told),
            "changes": sum(self._told.values()),
            "avoided": [links[number] for number in sorted(self._planned.avoided)]})
        self._began_s = None

    @set_ev_cls(ofp_event.EventOFPBarrierReply, MAIN_DISPATCHER)
    def on_barrier(self, event) -> None:
        datapath = event.msg.datapath
        if self.live.get(datapath.id) is not datapath or not self.rollout.owes(datapath.id):
            return
        if self.rollout.confirmed(datapath.id):
            self.ledger.barrier(datapath.id)
            self.count(datapath)
        self._go_on()

    # ------------------------------------------------------------ elephants

    @set_ev_cls(Look)
    def on_look(self, _event) -> None:
        if self._begun and not self.rollout.waiting and not self._replanning:
            self.elephants.ask(self.live)

    @set_ev_cls(ofp_event.EventOFPPortStatsReply, MAIN_DISPATCHER)
    def on_link_counters(self, event) -> None:
        if self.elephants:
            reply = event.msg
            sent = {port.port_no: port.tx_bytes for port in reply.body}
            self._place(self.elephants.links(reply.datapath.id, sent, not more_follows(reply), self.network))

    def _place(self, network: Network | None) -> None:
        """Put new paths in force: at once, or with what is planned next, or after what is going out now."""
        self.ledger.scheduled(self.elephants.loop.summary())
        if network is None:
            return
        self.network, self._late = network, True
        if not self.rollout.waiting:
            self._go_on()

    # ------------------------------------------------------------ news

    @set_ev_cls(ofp_event.EventOFPPortDescStatsReply, [CONFIG_DISPATCHER, MAIN_DISPATCHER])
    def on_ports(self, event) -> None:
        datapath = event.msg.datapath
        if datapath.id in self.ledger.names:
            for port in event.msg.body:
                self._port(datapath.id, port.port_no, port_is_up(datapath, port), None)

    @set_ev_cls(ofp_event.EventOFPPortStatus, MAIN_DISPATCHER)
    def on_port_status(self, event) -> None:
        message, datapath = event.msg, event.msg.datapath
        if datapath.id in self.ledger.names:
            gone = message.reason == datapath.ofproto.OFPPR_DELETE
            self._port(datapath.id, message.desc.port_no,
                       None if gone else port_is_up(datapath, message.desc), time.monotonic())

    def _port(self, dpid: int, port: int, up: bool | None, time_s: float | None) -> None:
        self.ledger.port(dpid, port, up, time_s)
        self.network = self.network.with_port(dpid, port, bool(up))
        self._replan(time_s)

    def _replan(self, time_s: float | None = None) -> None:
        """Plan anew once the news that came together has been taken in: a dead switch is many ports."""
        if self._begun and not self._replanning and not self.network.routes_as(self._planned):
            self._replanning, self._news_s = True, time_s or time.monotonic()
            self.ledger.settling()
            self.send_event(self.name, Replan())

    @set_ev_cls(Replan)
    def on_replan(self, _event) -> None:
        self._replanning = self._late = False
        before, self._planned = self._planned, self.network
        self.put_in_force(self.network.steps_from(before), self._news_s)

    @set_ev_cls(Drain)
    def on_drain(self, order) -> None:
        try:
            network = self.network.with_drained(order.name, order.drained)
            keep(self._drained_file, network.drained)
        except (BadInput, OSError) as refusal:
            order.answer.put(str(refusal))
            return
        self.network = network
        self.ledger.drained(network.drained_names)
        self._replan()
        order.answer.put("")
