"""The part of the os-ken app that only keeps books: counts read back, traffic, errors, packets sent up."""
from __future__ import annotations

import logging
import time

from os_ken.base.app_manager import OSKenApp
from os_ken.controller import ofp_event
from os_ken.controller.controller import Datapath
from os_ken.controller.handler import CONFIG_DISPATCHER, HANDSHAKE_DISPATCHER, MAIN_DISPATCHER, set_ev_cls

from controllers.ledger import Ledger
from controllers.news import CountTraffic
from controllers.openflow import (VERSIONS, count_requests, explain, more_follows, rules_counted,
                                  versions_offered)
from controllers.rollout import Rollout

LOG = logging.getLogger("controller")


class Bookkeeper(OSKenApp):
    """`live` are the connections by datapath id, `orders` what was asked: (datapath id, xid) -> words."""

    OFP_VERSIONS = list(VERSIONS)

    def __init__(self, *args, ledger: Ledger, rollout: Rollout, **kwargs):
        super().__init__(*args, **kwargs)
        self.ledger, self.rollout = ledger, rollout
        self.live: dict[int, Datapath] = {}
        self.orders: dict[tuple[int, int], str] = {}
        self._groups_seen: dict[int, int] = {}
        self._traffic: dict[int, dict[int, tuple[int, int]]] = {}

    @set_ev_cls(ofp_event.EventOFPHello, HANDSHAKE_DISPATCHER)
    def on_hello(self, event) -> None:
        """os-ken hangs up on a switch without a common version and only logs it; keep that in the books."""
        offered = versions_offered(event.msg)
        if not offered & set(VERSIONS):
            self.ledger.error(f"the switch at {_address(event.msg.datapath)} offers OpenFlow wire versions "
                              f"{sorted(offered)}; 1.3 (4) or 1.5 (6) is needed.", lacks=True)

    def count(self, datapath: Datapath) -> None:
        """Ask the switch how many rules and groups it holds, and for its ports."""
        self._groups_seen[datapath.id] = 0
        for request in count_requests(datapath):
            datapath.send_msg(request)

    @set_ev_cls(ofp_event.EventOFPAggregateStatsReply, MAIN_DISPATCHER)
    def on_rules(self, event) -> None:
        dpid = event.msg.datapath.id
        if not self.rollout.owes(dpid):  # else another count follows the barrier
            self.ledger.rules_counted(dpid, rules_counted(event.msg))

    @set_ev_cls(ofp_event.EventOFPGroupStatsReply, MAIN_DISPATCHER)
    def on_groups(self, event) -> None:
        dpid = event.msg.datapath.id
        self._groups_seen[dpid] = self._groups_seen.get(dpid, 0) + len(event.msg.body)
        if not more_follows(event.msg):
            counted = self._groups_seen.pop(dpid)
            if not self.rollout.owes(dpid):
                self.ledger.groups_counted(dpid, counted)

    @set_ev_cls(CountTraffic)
    def on_count_traffic(self, _event) -> None:
        for datapath in self.live.values():
            self._traffic[datapath.id] = {}
            parser, anywhere = datapath.ofproto_parser, datapath.ofproto.OFPP_ANY
            datapath.send_msg(parser.OFPPortStatsRequest(datapath, 0, anywhere))

    @set_ev_cls(ofp_event.EventOFPPortStatsReply, MAIN_DISPATCHER)
    def on_traffic(self, event) -> None:
        dpid = event.msg.datapath.id
        counted = self._traffic.setdefault(dpid, {})
        counted |= {port.port_no: (port.tx_packets, port.tx_bytes) for port in event.msg.body}
        if not more_follows(event.msg):
            self.ledger.traffic(dpid, time.monotonic(), counted)

    @set_ev_cls(ofp_event.EventOFPPacketIn, MAIN_DISPATCHER)
    def on_packet_in(self, event) -> None:
        self.ledger.packet_in()

    @set_ev_cls(ofp_event.EventOFPErrorMsg, [HANDSHAKE_DISPATCHER, CONFIG_DISPATCHER, MAIN_DISPATCHER])
    def on_error(self, event) -> None:
        message, dpid = event.msg, event.msg.datapath.id
        what = self.orders.get((dpid, message.xid), "a message")
        name = self.ledger.names.get(dpid, f"at {_address(message.datapath)}")
        refusal = explain(message, name, what)
        LOG.error("%s", refusal.sentence)
        self.ledger.error(refusal.sentence, refusal.lacks_method)


def _address(datapath: Datapath) -> str:
    return ":".join(map(str, datapath.address[:2]))
