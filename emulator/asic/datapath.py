"""pipeline.Datapath over BPF maps: the tables of all switches of a fabric, their counts and events.

A new table is written beside the one in force (the hash table's keys carry a generation) and put in
force by one store; what it replaced is removed at the next change, when no packet can be using it any
more. Counts live in arrays of their own, so a rule or bucket that stays keeps its count.
"""
from __future__ import annotations

import select
from collections.abc import Callable, Sequence

import numpy as np

from emulator.asic.chip import Chip, SwitchSite
from emulator.asic.grouprecord import record
from emulator.asic.layout import CAUSES, COUNT, GROUP, KEY, MASK, SWITCH
from emulator.asic.links import LinkWatch, link_state
from emulator.asic.maps import RingBuffer
from emulator.asic.pipeline import Count, PipelineTables, PortState, QueueState
from emulator.asic.places import Places
from emulator.asic.tuplespace import TupleSpace, lay_out
from emulator.errors import EmulatorError
from emulator.netlink import Netlink

_PACKET_IN_HEAD = np.dtype([("ifindex", "<u4"), ("bytes", "<u4")])
_NOT_A_LOSS = CAUSES.index("kick")


class _Tables:
    """What is in force on one switch: where its rules count, where its groups are."""

    def __init__(self, index: int, site: SwitchSite, rules: Places, groups: Places, buckets: Places) -> None:
        self.index, self.site = index, site
        self.ifindexes = {port.number: port.ifindex for port in site.ports}
        self.rates_bps = {port.number: port.rate_bps for port in site.ports}
        self.rules, self.groups, self.buckets = rules, groups, buckets
        self.keys = self.stale_keys = np.zeros(0, KEY)


class BpfDatapath:
    """All `bpf` switches of one fabric; one process may change their tables. See pipeline.Datapath."""

    def __init__(self, chip: Chip) -> None:
        self.chip = chip
        self._switches = chip.maps["switches"].array(SWITCH)
        self._groups = chip.maps["groups"].array(GROUP)
        n, sizes = len(chip.switches), chip.sizes
        rules, groups, buckets = sizes.rules, sizes.groups, sizes.buckets
        # one row a CPU
        self._rule_counts = chip.maps["rule_counts"].array(COUNT).reshape(-1, n * rules)
        self._bucket_counts = chip.maps["bucket_counts"].array(COUNT).reshape(-1, n * buckets)
        if self._switches["table"]["masks"].any():
            raise EmulatorError("The switches already have tables from another process; only the process "
                                "that wrote them can change them.")
        self._tables = {
            site.dpid: _Tables(index, site, Places("rules", index * rules, rules),
                               Places("groups", index * groups + 1, groups),
                               Places("buckets", index * buckets, buckets))
            for index, site in enumerate(chip.switches)}
        self._owner = {port.ifindex: (site.dpid, port.number)
                       for site in chip.switches for port in site.ports}
        self._netlink = Netlink()
        self._links = LinkWatch(self._owner)
        self._packet_ins = RingBuffer(chip.maps["packet_ins"])
        self._packet_in: Callable[[int, int, bytes], None] | None = None
        self._port_status: Callable[[int, PortState], None] | None = None

    def dpids(self) -> Sequence[int]:
        """The datapath ids, in the order of construction."""
        return list(self._tables)

    def replace_tables(self, dpid: int, tables: PipelineTables) -> None:
        """Put `tables` in force at once; ValueError with a sentence for what a bpf switch cannot do.

        On ValueError the old tables stay in force. A packet is forwarded by the old tables or by the
        new, never by a mixture.
        """
        own = self._tables[dpid]
        entry = self._switches[own.index]
        self._forget_stale(own)
        generation = 1 - int(entry["generation"])
        with (own.rules.revision() as rules, own.groups.revision() as groups,
              own.buckets.revision() as buckets):
            counters = {rule.id: rules.place(rule.id) for rule in tables.rules}
            # a group that is in force is never written to: it gets a new place each time
            numbers = {group.id: groups.fresh(group.id) for group in tables.groups}
            records = {
                numbers[group.id]: record(group, own.site.seed,
                                          [buckets.place((group.id, i, bucket.port))
                                           for i, bucket in enumerate(group.buckets)], own.ifindexes,
                                         own.rates_bps, self.chip.classes)
                for group in tables.groups}
            space = lay_out(tables.rules, 2 * own.index + generation, counters, own.ifindexes, numbers,
                            self.chip.classes)
        self._rule_counts[:, rules.added] = 0
        self._bucket_counts[:, buckets.added] = 0
        for number, made in records.items():
            self._groups[number] = made
        self._put_in_force(own, entry, generation, space)

    def _put_in_force(self, own: _Tables, entry: np.void, generation: int, space: TupleSpace) -> None:
        self.chip.maps["rules"].update_batch(space.keys, space.rules)
        table = entry["table"][generation]
        table["mask"] = np.zeros(len(table["mask"]), MASK)
        table["mask"][:len(space.masks)] = space.masks
        table["masks"] = len(space.masks)
        entry["generation"] = generation  # one aligned store: from here on the new table is in force
        own.stale_keys, own.keys = own.keys, space.keys

    def _forget_stale(self, own: _Tables) -> None:
        self.chip.maps["rules"].delete_batch(own.stale_keys)
        own.stale_keys = np.zeros(0, KEY)
        for places in (own.rules, own.groups, own.buckets):
            places.release()

    def rule_counts(self, dpid: int) -> dict[int, Count]:
        """rule id -> packets and bytes since the rule came."""
        return {rule: self._count(self._rule_counts, place)
                for rule, place in self._tables[dpid].rules.in_force.items()}

    def bucket_counts(self, dpid: int) -> dict[int, list[Count]]:
        """group id -> one Count per bucket, in the buckets' order."""
        own = self._tables[dpid]
        found: dict[int, list[Count]] = {group: [] for group in own.groups.in_force}
        for (group, _, _), place in sorted(own.buckets.in_force.items()):
            found[group].append(self._count(self._bucket_counts, place))
        return found

    @staticmethod
    def _count(counts: np.ndarray, place: int) -> Count:
        return Count(int(counts["packets"][:, place].sum()), int(counts["bytes"][:, place].sum()))

    def ports(self, dpid: int) -> list[PortState]:
        """The ports with the kernel's own counters; drops are the switch's and the kernel's together."""
        return [self._port_state(port.ifindex) for port in self._tables[dpid].site.ports]

    def _port_state(self, ifindex: int) -> PortState:
        site, state = self.chip.site[ifindex], link_state(self._netlink, ifindex)
        self.chip.observe(ifindex)
        refused = self.chip.drops[ifindex]["packets"]
        queues = [self.chip.queue(ifindex, number) for number in range(self.chip.classes)]
        dropped = sum(int(queue["dropped_packets"]) + int(queue["lost_packets"]) for queue in queues)
        return PortState(site.number, site.name, site.mac, state.up, site.rate_bps, state.rx, state.tx,
                         state.rx_dropped + int(refused.sum() - refused[_NOT_A_LOSS]),
                         state.tx_dropped + dropped)

    def queues(self, dpid: int) -> list[QueueState]:
        """Every class of every port; `dropped` counts tail drops and bit errors on the way out."""
        states = []
        for port in self._tables[dpid].site.ports:
            self.chip.observe(port.ifindex)
            for number in range(self.chip.classes):
                queue = self.chip.queue(port.ifindex, number)
                states.append(QueueState(
                    port.number, number, Count(int(queue["sent_packets"]), int(queue["sent_bytes"])),
                    int(queue["dropped_packets"]) + int(queue["lost_packets"])))
        return states

    def packet_out(self, dpid: int, port: int, frame: bytes) -> None:
        """Send `frame` out of `port` through its queue, as if it was forwarded; else ValueError."""
        ifindex = self._tables[dpid].ifindexes.get(port)
        if ifindex is None:
            raise ValueError(f"switch {dpid:#x} has no port {port}.")
        self.chip.emit(ifindex, frame)

    def watch(self, packet_in: Callable[[int, int, bytes], None],
              port_status: Callable[[int, PortState], None]) -> None:
        """Call packet_in(dpid, in_port, frame) and port_status(dpid, port) from `poll`."""
        self._packet_in, self._port_status = packet_in, port_status

    def descriptors(self) -> Sequence[int]:
        """A port's news and packets for the controller."""
        return [self._links.fd, self._packet_ins.fd]

    def poll(self, timeout_s: float) -> None:
        """Deliver pending events to the watchers; returns after at most `timeout_s`."""
        ready, _, _ = select.select([self._packet_ins.fd, self._links.fd], [], [], timeout_s)
        if self._links.fd in ready:
            for ifindex in self._links.changed():
                if self._port_status:
                    self._port_status(self._owner[ifindex][0], self._port_state(ifindex))
        if self._packet_ins.fd in ready:
            for data in self._packet_ins.read():
                head = np.frombuffer(data, _PACKET_IN_HEAD, 1)[0]
                if self._packet_in:
                    self._packet_in(*self._owner[int(head["ifindex"])], data[_PACKET_IN_HEAD.itemsize:])

    def close(self) -> None:
        """Let go of sockets and the ring buffer; forwarding goes on."""
        self._packet_ins.close()
        self._links.close()
        self._netlink.__exit__()
