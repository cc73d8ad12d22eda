"""A small os-ken controller in a process of its own: `osken_app.py PORT VERSION`.

It tells what it sees as JSON lines.
"""
from __future__ import annotations

import json
import sys
import threading

from os_ken import cfg
from os_ken.base.app_manager import AppManager, OSKenApp
from os_ken.controller import ofp_event
from os_ken.controller.handler import CONFIG_DISPATCHER, HANDSHAKE_DISPATCHER, MAIN_DISPATCHER, set_ev_cls
from tests.agent.osken import selection_words

_LOCK = threading.Lock()


def tell(**facts) -> None:
    with _LOCK:
        print(json.dumps(facts), flush=True)


class Installer(OSKenApp):
    """Gives each switch a select group, a flow to it and a table-miss to the controller."""

    OFP_VERSIONS = [int(sys.argv[2])]

    @set_ev_cls(ofp_event.EventOFPSwitchFeatures, CONFIG_DISPATCHER)
    def _connected(self, event) -> None:
        dp = event.msg.datapath
        ofp, parser = dp.ofproto, dp.ofproto_parser
        outputs = [[parser.OFPActionOutput(port)] for port in (2, 3)]
        if ofp.OFP_VERSION == 4:
            group = parser.OFPGroupMod(dp, ofp.OFPGC_ADD, ofp.OFPGT_SELECT, 1,
                                       [parser.OFPBucket(weight=1, actions=actions) for actions in outputs])
        else:
            group = parser.OFPGroupMod(
                dp, ofp.OFPGC_ADD, ofp.OFPGT_SELECT, 1,
                buckets=[parser.OFPBucket(n, actions, []) for n, actions in enumerate(outputs)],
                properties=[parser.OFPGroupPropExperimenter(type_=0xFFFF, experimenter=0x154D, exp_type=1,
                                                            data=selection_words("hash", dp.id))])
        prefix = {"eth_type": 0x800, "ipv4_dst": ("10.0.1.0", "255.255.255.0")}
        flows = [(100, prefix, parser.OFPActionGroup(1)),
                 (0, {}, parser.OFPActionOutput(ofp.OFPP_CONTROLLER)),
                 (50, {}, parser.OFPActionOutput(99))]  # there is no port 99
        dp.send_msg(parser.OFPGroupMod(dp, ofp.OFPGC_DELETE, ofp.OFPGT_SELECT, ofp.OFPG_ALL))
        dp.send_msg(group)
        for priority, match, action in flows:
            dp.send_msg(parser.OFPFlowMod(
                dp, priority=priority, match=parser.OFPMatch(**match),
                instructions=[parser.OFPInstructionActions(ofp.OFPIT_APPLY_ACTIONS, [action])]))
        dp.send_msg(parser.OFPBarrierRequest(dp))

    @set_ev_cls(ofp_event.EventOFPBarrierReply, [CONFIG_DISPATCHER, MAIN_DISPATCHER])
    def _in_force(self, event) -> None:
        tell(event="barrier", dpid=event.msg.datapath.id)

    @set_ev_cls(ofp_event.EventOFPErrorMsg, [HANDSHAKE_DISPATCHER, CONFIG_DISPATCHER, MAIN_DISPATCHER])
    def _error(self, event) -> None:
        tell(event="error", dpid=event.msg.datapath.id, type=event.msg.type, code=event.msg.code)

    @set_ev_cls(ofp_event.EventOFPPacketIn, [CONFIG_DISPATCHER, MAIN_DISPATCHER])
    def _packet_in(self, event) -> None:
        message = event.msg
        tell(event="packet-in", dpid=message.datapath.id, port=message.match["in_port"],
             frame=message.data.hex())

    @set_ev_cls(ofp_event.EventOFPPortStatus, [CONFIG_DISPATCHER, MAIN_DISPATCHER])
    def _port_status(self, event) -> None:
        port = event.msg.desc
        tell(event="port", dpid=event.msg.datapath.id, port=port.port_no, state=port.state)


def main() -> None:
    cfg.CONF([], project="os_ken")
    cfg.CONF.ofp_listen_host, cfg.CONF.ofp_tcp_listen_port = "127.0.0.1", int(sys.argv[1])
    manager = AppManager.get_instance()
    manager.load_apps(["osken_app", "os_ken.controller.ofp_handler"])
    contexts = manager.create_contexts()
    manager.instantiate_apps(**contexts)
    tell(event="listening")
    threading.Event().wait(60)


if __name__ == "__main__":
    import osken_app  # os-ken loads apps by the name of their module, which must not be __main__

    osken_app.main()
