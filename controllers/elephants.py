"""Global scheduling in the controller's process: asks switches what pairs of hosts sent, and when all have
answered has new paths put in force.

One look at a time: where a switch has not answered within a period, what came of that look is dropped.
"""
from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping

import numpy
from os_ken.controller.controller import Datapath

from controllers.network import Network
from controllers.scheduling.counters import named, pair_bytes
from controllers.scheduling.loop import Reading, SchedulingLoop
from controllers.scheduling.options import Scheduling
from controllers.scheduling.paths import PathLists
from controllers.scheduling.steering import PAIR_SOURCES


class Elephants:
    """The looks of one fabric. All methods but `start` are called from os-ken's one event thread."""

    def __init__(self, network: Network, scheduling: Scheduling, rate_bps: float):
        self.graph = network.graph
        self.needs_links = scheduling.scheduler == "least-congested"
        self._avoided = network.avoided
        self.loop = SchedulingLoop(_paths(network), scheduling, rate_bps, network.seed)
        self._names = {host.ip: host.name for host in self.graph.hosts}
        self._edges = {self.graph.switch[host.rack].dpid for host in self.graph.hosts}
        self._owed: set[tuple[int, str]] = set()
        self._pairs: dict[tuple[str, str], int] = {}
        self._links = numpy.zeros(len(self.loop.paths.capacity))
        self._link_of = {(switch.dpid, port): 2 * link.index + (link.a != switch.name)
                         for switch in self.graph.switches
                         for port, (_, link) in self.graph.neighbours[switch.name].items()}

    def start(self, look: Callable[[], None]) -> None:
        """Call `look` once a period, in a thread of its own, for as long as the process lives."""

        def tick() -> None:
            due_s = time.monotonic()
            while True:
                now_s = time.monotonic()
                due_s = max(due_s + self.loop.scheduling.period_s, now_s)
                time.sleep(due_s - now_s)
                look()

        threading.Thread(target=tick, name="elephants", daemon=True).start()

    def ask(self, live: Mapping[int, Datapath]) -> None:
        """Ask for the counters of all pair rules and, where the scheduler wants them, of all ports."""
        self._owed, self._pairs = set(), {}
        self._links = numpy.zeros(len(self.loop.paths.capacity))
        for dpid, datapath in live.items():
            ofp, parser = datapath.ofproto, datapath.ofproto_parser
            if dpid in self._edges:
                self._owed.add((dpid, "pairs"))
                datapath.send_msg(parser.OFPFlowDescStatsRequest(
                    datapath, 0, ofp.OFPTT_ALL, ofp.OFPP_ANY, ofp.OFPG_ANY, 0, 0,
                    parser.OFPMatch(eth_type=0x0800, ipv4_src=PAIR_SOURCES)))
            if self.needs_links:
                self._owed.add((dpid, "links"))
                datapath.send_msg(parser.OFPPortStatsRequest(datapath, 0, ofp.OFPP_ANY))

    def pairs(self, dpid: int, described: list[bytes], last: bool, network: Network) -> Network | None:
        """A part of a switch's flow descriptions; the network with new paths, if that was the last part."""
        if (dpid, "pairs") not in self._owed:
            return None
        for pair, count in named(pair_bytes(described), self._names).items():
            if self.graph.switch[self.graph.host[pair[0]].rack].dpid == dpid:  # else a rule on its way
                self._pairs[pair] = count
        return self._answered(dpid, "pairs", network) if last else None

    def links(self, dpid: int, sent: Mapping[int, int], last: bool, network: Network) -> Network | None:
        """A part of a switch's port statistics: port -> bytes sent."""
        if (dpid, "links") not in self._owed:
            return None
        for port, count in sent.items():
            if (dpid, port) in self._link_of:
                self._links[self._link_of[dpid, port]] = count
        return self._answered(dpid, "links", network) if last else None

    def _answered(self, dpid: int, what: str, network: Network) -> Network | None:
        self._owed.discard((dpid, what))
        if self._owed:
            return None
        if network.avoided != self._avoided:
            self._avoided = network.avoided
            self.loop.rewire(_paths(network))
        links = self._links if self.needs_links else None
        changed = self.loop.step(Reading(time.monotonic(), self._pairs, links))
        return network.with_placed(self.loop.placed) if changed else None


def _paths(network: Network) -> PathLists:
    return PathLists(network.live, whole=network.graph)
