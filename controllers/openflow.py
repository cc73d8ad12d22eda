"""Tables as OpenFlow messages (1.5, and 1.3 where nothing has to be seeded), and errors as sentences.

The hash of a select group travels in the group property of Open vSwitch (lib/ofp-group.c,
`struct ntr_group_prop_selection_method`). os-ken's own experimenter property counts in words of 32
bits, which the list of fields does not end on; so the property is a class of this module.
"""
from __future__ import annotations

import ipaddress
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from os_ken.ofproto import ofproto_v1_3, ofproto_v1_5
from os_ken.ofproto.ofproto_parser import MsgBase
from os_ken.ofproto.ofproto_protocol import ProtocolDesc

from controllers.changes import AddGroup, Change, PutFlow, RemoveFlow, changes
from controllers.tables import (TCP, Action, FlowRule, Group, Match, Output, Selection, SetEthDst,
                                SwitchTables)
from emulator.errors import MachineLacks

VERSIONS = (ofproto_v1_3.OFP_VERSION, ofproto_v1_5.OFP_VERSION)
SEEDED_VERSION = ofproto_v1_5.OFP_VERSION  # the first whose groups have properties
ETH_TYPE_IPV4 = 0x0800
_SELECTION = struct.Struct("!HHII4x16sQ")

NTR_EXPERIMENTER, NTR_SELECTION_METHOD = 0x154D, 1
OXM_CLASS_BASIC = 0x8000
# Field of a Selection -> OXM fields (number, bytes). A hash skips fields that a packet lacks, so
# naming both TCP's and UDP's ports hashes whichever there are.
OXM_FIELDS = {"ip_proto": ((10, 1),), "ipv4_src": ((11, 4),), "ipv4_dst": ((12, 4),),
              "l4_src": ((13, 2), (15, 2)), "l4_dst": ((14, 2), (16, 2))}


@dataclass(frozen=True)
class Order:
    """One message and what it asks for, as it is named when a switch refuses it."""

    message: MsgBase
    what: str


def install_orders(datapath: ProtocolDesc, name: str, tables: SwitchTables) -> list[Order]:
    """Everything that puts `tables` into the switch `name` in place of whatever it holds, barrier last.

    Raises MachineLacks where the connection's OpenFlow version cannot seed select groups: unseeded,
    all switches hash alike and traffic polarises.
    """
    ofp, parser = datapath.ofproto, datapath.ofproto_parser
    nothing = SwitchTables(tables.dpid, (), ())
    return [
        Order(parser.OFPFlowMod(datapath, command=ofp.OFPFC_DELETE, table_id=ofp.OFPTT_ALL,
                                out_port=ofp.OFPP_ANY, out_group=ofp.OFPG_ANY, match=parser.OFPMatch(),
                                instructions=[]), "the removal of all old rules"),
        Order(parser.OFPGroupMod(datapath, command=ofp.OFPGC_DELETE, type_=ofp.OFPGT_SELECT,
                                 group_id=ofp.OFPG_ALL), "the removal of all old groups"),
        *change_orders(datapath, name, changes(nothing, tables))]


def change_orders(datapath: ProtocolDesc, name: str, steps: Sequence[Change]) -> list[Order]:
    """The messages that carry out `steps` at the switch `name`, in their order, barrier last.

    Raises MachineLacks as `install_orders` does.
    """
    if datapath.ofproto.OFP_VERSION < SEEDED_VERSION and any(isinstance(step, AddGroup) for step in steps):
        raise MachineLacks(f"switch {name} speaks OpenFlow 1.3 and no later, in which a select group has no "
                           f"seed; all switches would hash alike and leave half of the paths empty. Use a "
                           f"switch with OpenFlow 1.5, or --routing single.")
    orders = [_order(datapath, step) for step in steps]
    return [*orders, Order(datapath.ofproto_parser.OFPBarrierRequest(datapath), "the barrier")]


def _order(datapath: ProtocolDesc, step: Change) -> Order:
    ofp, parser = datapath.ofproto, datapath.ofproto_parser
    if isinstance(step, AddGroup):
        group = step.group
        return Order(_group_mod(datapath, group),
                     f'group {group.id} (selection method "{group.selection.method}")')
    if isinstance(step, PutFlow):
        return Order(_flow_mod(datapath, step.rule), f"the rule for {_named(step.rule.match)}")
    if isinstance(step, RemoveFlow):
        removal = parser.OFPFlowMod(datapath, command=ofp.OFPFC_DELETE_STRICT, priority=step.priority,
                                    out_port=ofp.OFPP_ANY, out_group=ofp.OFPG_ANY,
                                    match=_fields(datapath, step.match), instructions=[])
        return Order(removal, f"the removal of the rule for {_named(step.match)}")
    return Order(parser.OFPGroupMod(datapath, command=ofp.OFPGC_DELETE, type_=ofp.OFPGT_SELECT,
                                    group_id=step.number), f"the removal of group {step.number}")


def _named(match: Match) -> str:
    return match.ipv4_dst if match == Match(match.ipv4_dst) and match.ipv4_dst else str(match)


def read_requests(datapath: ProtocolDesc) -> list[MsgBase]:
    """Requests whose replies describe all rules and, from 1.5 on, all groups of the switch (`readback`)."""
    ofp, parser = datapath.ofproto, datapath.ofproto_parser
    everything = (datapath, 0, ofp.OFPTT_ALL, ofp.OFPP_ANY, ofp.OFPG_ANY, 0, 0, parser.OFPMatch())
    if ofp.OFP_VERSION < SEEDED_VERSION:
        return [parser.OFPFlowStatsRequest(*everything)]
    return [parser.OFPFlowDescStatsRequest(*everything),
            parser.OFPGroupDescStatsRequest(datapath, 0, ofp.OFPG_ALL)]


def count_requests(datapath: ProtocolDesc) -> list[MsgBase]:
    """Requests whose replies tell how many rules and groups the switch really holds, and its ports."""
    ofp, parser = datapath.ofproto, datapath.ofproto_parser
    return [parser.OFPAggregateStatsRequest(datapath, 0, ofp.OFPTT_ALL, ofp.OFPP_ANY, ofp.OFPG_ANY, 0, 0,
                                            parser.OFPMatch()),
            parser.OFPGroupStatsRequest(datapath, 0, ofp.OFPG_ALL),
            parser.OFPPortDescStatsRequest(datapath, 0)]


def rules_counted(reply: MsgBase) -> int:
    """The number of rules that an aggregate statistics reply reports."""
    if reply.version < SEEDED_VERSION:
        return reply.body.flow_count
    return reply.body.stats["flow_count"]


def versions_offered(hello: MsgBase) -> set[int]:
    """The wire versions of a hello's bitmap; without one, all up to its own (OpenFlow 1.3.1, 6.3.1)."""
    elements = getattr(hello, "elements", None) or []
    bitmap = {version for element in elements for version in element.versions}
    return bitmap or set(range(1, hello.version + 1))


def more_follows(reply: MsgBase) -> bool:
    """Is this multipart reply one of several, and not the last?"""
    return bool(reply.flags & reply.datapath.ofproto.OFPMPF_REPLY_MORE)


def port_is_up(datapath: ProtocolDesc, port: Any) -> bool:
    """Does a port (ofp_port) have carrier, and has nobody set it down?"""
    ofp = datapath.ofproto
    return not port.state & ofp.OFPPS_LINK_DOWN and not port.config & ofp.OFPPC_PORT_DOWN


@dataclass(frozen=True)
class Refusal:
    """An OFPT_ERROR as a sentence. `lacks_method`: it does not know a group's selection method."""

    sentence: str
    lacks_method: bool


def explain(message: MsgBase, name: str, what: str) -> Refusal:
    """The OFPT_ERROR `message` with which the switch `name` refused `what`."""
    ofp = message.datapath.ofproto
    if message.type == ofp.OFPET_EXPERIMENTER:
        code = f"experimenter {message.experimenter:#x}, type {message.exp_type}"
    else:
        code = ofp.ofp_error_code_to_str(message.type, message.code).split("(")[0]
    lacks = what.startswith("group ") and message.type in (ofp.OFPET_GROUP_MOD_FAILED,
                                                           getattr(ofp, "OFPET_BAD_PROPERTY", None))
    advice = "; this kind of switch cannot choose in that way, so take another --routing or --switch"
    return Refusal(f"switch {name} refuses {what}: {code}{advice if lacks else ''}.", lacks)


def _flow_mod(datapath: ProtocolDesc, rule: FlowRule) -> MsgBase:
    ofp, parser = datapath.ofproto, datapath.ofproto_parser
    actions = [_action(datapath, action) for action in rule.actions]
    instructions = [parser.OFPInstructionActions(ofp.OFPIT_APPLY_ACTIONS, actions)] if actions else []
    return parser.OFPFlowMod(datapath, priority=rule.priority, out_port=ofp.OFPP_ANY, out_group=ofp.OFPG_ANY,
                             match=_fields(datapath, rule.match), instructions=instructions)


def _fields(datapath: ProtocolDesc, match: Match) -> Any:
    """A Match as OXM fields; TCP and UDP name their ports each in their own way."""
    fields: dict[str, Any] = {} if match == Match() else {"eth_type": ETH_TYPE_IPV4}
    for name in ("ipv4_dst", "ipv4_src"):
        if getattr(match, name) is not None:
            network = ipaddress.IPv4Network(getattr(match, name))
            fields[name] = (str(network.network_address), str(network.netmask))
    protocol = "tcp" if match.ip_proto == TCP else "udp"
    ports = {f"{protocol}_src": match.l4_src, f"{protocol}_dst": match.l4_dst}
    exact = {"ip_proto": match.ip_proto, "ip_dscp": match.ip_dscp, **ports}
    fields |= {name: value for name, value in exact.items() if value is not None}
    return datapath.ofproto_parser.OFPMatch(**fields)


def _action(datapath: ProtocolDesc, action: Action) -> Any:
    parser = datapath.ofproto_parser
    if isinstance(action, SetEthDst):
        return parser.OFPActionSetField(eth_dst=action.mac)
    if isinstance(action, Output):
        return parser.OFPActionOutput(action.port)
    return parser.OFPActionGroup(action.group)


def _group_mod(datapath: ProtocolDesc, group: Group) -> MsgBase:
    """Each bucket watches its port, so that a switch leaves out by itself one whose link is down."""
    ofp, parser = datapath.ofproto, datapath.ofproto_parser
    buckets = [parser.OFPBucket(bucket_id=i, actions=[parser.OFPActionOutput(bucket.port)], properties=[
        parser.OFPGroupBucketPropWeight(type_=ofp.OFPGBPT_WEIGHT, weight=bucket.weight),
        parser.OFPGroupBucketPropWatch(type_=ofp.OFPGBPT_WATCH_PORT, watch=bucket.port)])
        for i, bucket in enumerate(group.buckets)]
    return parser.OFPGroupMod(datapath, command=ofp.OFPGC_ADD, type_=ofp.OFPGT_SELECT, group_id=group.id,
                              buckets=buckets, properties=[SelectionProperty(group.selection)])


@dataclass(frozen=True)
class SelectionProperty:
    """A Selection as a group property; os-ken asks of a property no more than `serialize`."""

    selection: Selection

    def serialize(self) -> bytes:
        """Header, pad, name, parameter, then each field as OXM whose value is a mask; padded to 8 bytes."""
        fields = b"".join(struct.pack("!HBB", OXM_CLASS_BASIC, number << 1, size) + b"\xff" * size
                          for name in self.selection.fields for number, size in OXM_FIELDS[name])
        length = _SELECTION.size + len(fields)
        head = _SELECTION.pack(ofproto_v1_5.OFPGPT_EXPERIMENTER, length, NTR_EXPERIMENTER,
                               NTR_SELECTION_METHOD, self.selection.method.encode("ascii"),
                               self.selection.param)
        return head + fields + b"\0" * (-length % 8)
