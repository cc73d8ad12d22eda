"""os-ken's own switch test cases (os_ken/tests/switch/of13) against the agent with the model datapath.

    python -m tests.agent.conformance [--verbose]

Each case installs flows and groups, sends a packet into port 1 and says what must come out of port
2, or go to the controller, or match nothing. A case is

  passed         within the switch's subset: installed, read back as sent, and the packet did as told
  not supported  outside the subset, and refused with an OFPT_ERROR
  tables only    within it, but judged by throughput, which the model datapath has not
  failed         anything else: also what lies outside the subset and was not refused

The subset is written down here a second time, in os-ken's terms, so that a refusal by mistake fails.
"""
from __future__ import annotations

import contextlib
import io
import ipaddress
import logging
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import os_ken.tests.switch
from tests.agent.fake_datapath import FakeDatapath
from os_ken.ofproto import ofproto_v1_3, ofproto_v1_3_parser
from os_ken.tests.switch import tester
from tests.agent.osken import Peer

from emulator.asic.openflow.constants import V13, Port
from emulator.asic.switch import Switch

CASES = Path(os_ken.tests.switch.__file__).parent / "of13"
FIELDS = {"in_port", "eth_type", "ip_proto", "ip_dscp", "ipv4_src", "ipv4_dst", "tcp_src", "tcp_dst",
          "udp_src", "udp_dst"}
OUTCOMES = ("passed", "not supported", "tables only", "failed")


@dataclass(frozen=True)
class Outcome:
    """One case: the file it is in, what it is about, how it went and why."""

    file: str
    description: str
    outcome: str
    why: str = ""


def outside_subset(message) -> str:
    """Why the switch should refuse an os-ken message; empty if it should take it."""
    kind = type(message).__name__
    if kind == "OFPGroupMod":
        if message.type == ofproto_v1_3.OFPGT_ALL:
            return "group type"
        return next(filter(None, (_actions(bucket.actions) for bucket in message.buckets)), "")
    if kind != "OFPFlowMod":
        return kind
    if message.table_id != 0:
        return "second table"
    fields = dict(message.match.items())
    unknown = set(fields) - FIELDS
    if unknown:
        return f"match on {min(unknown)}"
    if fields.keys() - {"in_port", "eth_type"} and fields.get("eth_type") != 0x0800:
        return "IPv6 fields"
    for value in fields.values():
        if isinstance(value, tuple) and not _is_prefix(value[1]):
            return "mask that is no prefix"
    for instruction in message.instructions:
        if type(instruction).__name__ != "OFPInstructionActions":
            return type(instruction).__name__
        why = _actions(instruction.actions)
        if why:
            return why
    return ""


def _is_prefix(mask: str) -> bool:
    bits = f"{int(ipaddress.IPv4Address(mask)):032b}"
    return "01" not in bits


def _actions(actions) -> str:
    for action in actions:
        kind = type(action).__name__
        if kind == "OFPActionSetField" and action.key not in ("eth_dst", "eth_src"):
            return f"set {action.key}"
        if kind not in ("OFPActionOutput", "OFPActionGroup", "OFPActionSetQueue", "OFPActionSetField"):
            return kind
    outputs = [action for action in actions if type(action).__name__ in ("OFPActionOutput", "OFPActionGroup")]
    return "two outputs" if len(outputs) > 1 else ""


def model() -> FakeDatapath:
    """A fresh switch 1 with ports 1 to 3."""
    return FakeDatapath(ports=3)


def run_case(file: str, case: tester.Test, datapath) -> Outcome:
    """Install, read back, send. `datapath` is empty, and has `inject` beside what a Datapath has."""
    switch = Switch(1, datapath)
    datapath.watch(lambda dpid, port, frame: switch.packet_in(port, frame), lambda dpid, port: None)
    peer = Peer(V13, switch)
    for message in case.prerequisite:
        expected = outside_subset(message)
        errors = [answer for answer in peer.ask(message, ofproto_v1_3_parser.OFPBarrierRequest(peer))
                  if isinstance(answer, ofproto_v1_3_parser.OFPErrorMsg)]
        if errors and expected:
            return Outcome(file, case.description, "not supported", expected)
        if errors or expected:
            return Outcome(file, case.description, "failed",
                           f"error {errors[0].type}/{errors[0].code}" if errors else f"took {expected}")
        if not _is_there(peer, message):
            return Outcome(file, case.description, "failed", "what was installed is not read back")
    measured = False
    for packet in case.tests:
        if tester.KEY_THROUGHPUT in packet:
            measured = True
            continue
        why = _send(peer, datapath, packet)
        if why:
            return Outcome(file, case.description, "failed", why)
    return Outcome(file, case.description, "tables only" if measured else "passed")


def _is_there(peer: Peer, message) -> bool:
    """The switch's statistics hold the message as it was sent."""
    if isinstance(message, ofproto_v1_3_parser.OFPGroupMod):
        reply, = peer.ask(ofproto_v1_3_parser.OFPGroupDescStatsRequest(peer, 0))
        return any(group.group_id == message.group_id and group.type == message.type
                   and str(group.buckets) == str(message.buckets) for group in reply.body)
    reply, = peer.ask(ofproto_v1_3_parser.OFPFlowStatsRequest(
        peer, 0, 0xFF, Port.ANY, Port.ANY, 0, 0, ofproto_v1_3_parser.OFPMatch()))
    return any(entry.priority == message.priority and str(entry.instructions) == str(message.instructions)
               and dict(entry.match.items()) == dict(message.match.items()) for entry in reply.body)


def _send(peer: Peer, datapath, packet: dict) -> str:
    """Why the packet did not do as told; empty if it did."""
    frame = packet[tester.KEY_INGRESS]
    sent = datapath.inject(1, 1, frame)
    told = [message.data for message in peer.read()]
    if tester.KEY_EGRESS in packet:
        good = sent == [(2, packet[tester.KEY_EGRESS])] and not told
    elif tester.KEY_PKT_IN in packet:
        good = told == [packet[tester.KEY_PKT_IN]] and not sent
    else:
        good = not sent and not told
    return "" if good else f"left {[(port, data.hex()) for port, data in sent]}, told {len(told)}"


def run_all(make_datapath: Callable = model) -> list[Outcome]:
    """Every case of every file, each on a datapath from `make_datapath`."""
    tester.OfTester.target_ver = tester.OfTester.tester_ver = V13
    logging.disable(logging.CRITICAL)  # hundreds of refusals are wanted here
    try:
        return _run_files(make_datapath)
    finally:
        logging.disable(logging.NOTSET)


def _run_files(make_datapath: Callable) -> list[Outcome]:
    outcomes = []
    for path in sorted(CASES.rglob("*.json")):
        name = str(path.relative_to(CASES))
        with contextlib.redirect_stdout(io.StringIO()):
            file = tester.TestFile(str(path), logging.getLogger("cases"))
        if not file.tests:
            outcomes.append(Outcome(name, "", "failed", "os-ken could not read its own file"))
        outcomes += [run_case(name, case, make_datapath()) for case in file.tests]
    return outcomes


def report(outcomes: list[Outcome], verbose: bool) -> int:
    """Print counts by folder, what is not supported, and each failure; 1 if there is one."""
    folders = sorted({Path(outcome.file).parts[0] for outcome in outcomes})
    print(f"{'':12}" + "".join(f"{name:>15}" for name in OUTCOMES))
    for folder in (*folders, ""):
        counts = Counter(o.outcome for o in outcomes if not folder or Path(o.file).parts[0] == folder)
        print(f"{folder or 'all':12}" + "".join(f"{counts[name]:15}" for name in OUTCOMES))
    reasons = Counter(outcome.why for outcome in outcomes if outcome.outcome == "not supported")
    print("\nnot supported: " + ", ".join(f"{why} ({count})" for why, count in reasons.most_common()))
    for outcome in outcomes:
        if verbose or outcome.outcome == "failed":
            print(f"{outcome.outcome}: {outcome.file}: {outcome.description} {outcome.why}")
    return int(any(outcome.outcome == "failed" for outcome in outcomes))


if __name__ == "__main__":
    raise SystemExit(report(run_all(), "--verbose" in sys.argv[1:]))
