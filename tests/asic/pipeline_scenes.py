"""The forwarding pipeline: look-ups and choices of members, packet by packet through the real program."""
from __future__ import annotations

import random
import socket
import subprocess
import time
from collections import Counter

from emulator import netns
from emulator.asic.hashing import group_seed, hashed_member
from emulator.asic.layout import CAUSES
from emulator.asic.objects import test_run
from tests.asic.packets import TCP, UDP, Packet, frame, winner
from emulator.asic.pipeline import (PipelineActions, PipelineBucket, PipelineGroup, PipelineMatch,
                                    PipelineRule, PipelineTables)
from emulator.asic.queueing import one_queue
from tests.asic.fabrics import UP, Lab, lab, number, tables, udp
from tests.fabric.graphs import leaf_spine

SENT, SHOT = 4, 2  # TC_ACT_STOLEN: a packet with a socket, as test runs are, goes on as a clone
ADDRESSES = [number(ip) for ip in ("10.0.0.1", "10.0.0.2", "10.0.1.1", "10.1.0.1", "11.0.0.1")]


def forward(made: Lab, port: str, data: bytes) -> int:
    """The program's verdict on a frame that port `port` received; it goes on its way."""
    return test_run(made.chip.programs["forward"], data, made.ifindex(port))[0]


def random_match(draw: random.Random) -> PipelineMatch:
    def maybe(values):
        return draw.choice([None, *values])

    def prefix():
        return maybe([(draw.choice(ADDRESSES), length) for length in (8, 16, 24, 32)])

    proto = maybe([1, TCP, UDP])
    l4 = [0, 80, 5001] if proto in (TCP, UDP) else []
    if draw.random() < 0.1:
        return PipelineMatch(in_port=maybe([1, 2]), eth_type=maybe([0x0806]))
    return PipelineMatch(maybe([1, 2]), None, prefix(), prefix(), proto, maybe([0, 10, 46]), maybe(l4),
                         maybe(l4))


def random_packet(draw: random.Random) -> Packet:
    if draw.random() < 0.1:
        return Packet(draw.choice([1, 2]), 0x0806)
    proto = draw.choice([1, TCP, UDP])
    l4 = (draw.choice([0, 80, 5001]), draw.choice([0, 80, 5001])) if proto != 1 else (0, 0)
    return Packet(draw.choice([1, 2]), 0x0800, draw.choice(ADDRESSES), draw.choice(ADDRESSES), proto,
                  draw.choice([0, 10, 46]), *l4)


def look_ups() -> dict:
    """Random tables and packets: how often the program counted another rule than OpenFlow's definition."""
    made = lab(leaf_spine(1, 1, 2), telemetry=False)
    leaf, draw = made.dpid("l1"), random.Random(7)
    made.datapath.replace_tables(made.dpid("s1"), PipelineTables((), ()))  # nothing comes back
    tried, wrong, misses = 0, [], 0
    for _ in range(60):
        rules = tuple(PipelineRule(i, priority, random_match(draw), PipelineActions(output=3))
                      for i, priority in enumerate(draw.sample(range(100), draw.randrange(1, 25))))
        made.datapath.replace_tables(leaf, PipelineTables(rules, ()))
        for _ in range(25):
            packet = random_packet(draw)
            before = made.datapath.rule_counts(leaf)
            verdict = forward(made, f"l1-eth{packet.in_port}", frame(packet))
            after = made.datapath.rule_counts(leaf)
            hit = [rule for rule in after if after[rule].packets != before[rule].packets]
            expected = winner(rules, packet)
            tried += 1
            misses += expected is None
            if hit != ([] if expected is None else [expected.id]) or verdict != (
                    SHOT if expected is None else SENT):
                wrong.append([str(packet), hit, str(expected), verdict])
    refused = sum(int(made.chip.drops["packets"][made.ifindex(port)][CAUSES.index("no rule")])
                  for port in ("l1-eth1", "l1-eth2"))
    return {"tried": tried, "misses": misses, "wrong": wrong[:3], "no_rule": refused}


def flows(count: int, seed: int = 3) -> list[Packet]:
    draw = random.Random(seed)
    return [Packet(1, 0x0800, number("10.0.0.2"), number("10.0.1.2") + draw.randrange(8), TCP, 0,
                   draw.randrange(32768, 61000), 5001) for _ in range(count)]


class Uplinks:
    """One leaf with four uplinks (ports 2 to 5) whose group is set as a test wants it."""

    def __init__(self, rate_bps=50e6, **queueing) -> None:
        self.made = lab(leaf_spine(1, 4, 1), rate_bps, queueing=one_queue(**queueing), telemetry=False)
        self.leaf = self.made.dpid("l1")

    def set(self, weights=(1, 1, 1, 1), **group) -> PipelineGroup:
        buckets = tuple(PipelineBucket(2 + i, weight) for i, weight in enumerate(weights))
        made = PipelineGroup(UP, buckets, **group)
        switch = self.made.fabric.spec.graph.switch["l1"]
        self.made.datapath.replace_tables(self.leaf, tables(self.made.fabric.spec.graph, switch, made))
        return made

    def choose(self, packet: Packet, size_bytes: int = 64) -> int | None:
        """The member that the program picks for `packet`, None if it drops it."""
        before = self.counts()
        verdict = forward(self.made, "l1-eth1", frame(packet, size_bytes))
        hit = [i for i, (old, new) in enumerate(zip(before, self.counts(), strict=True)) if new != old]
        assert (verdict == SENT) == (len(hit) == 1)
        return hit[0] if hit else None

    def counts(self) -> list[int]:
        return [count.packets for count in self.made.datapath.bucket_counts(self.leaf)[UP]]

    def link(self, spine: int, state: str) -> None:
        subprocess.run(["ip", "link", "set", f"s{spine}-eth1", state], check=True, timeout=10)


def choices() -> dict:
    """What each mode does with packets, by the member that each takes."""
    up, found = Uplinks(pausable=True), {}
    for mode in ("hash", "dp_hash"):
        group = up.set((3, 1, 2, 2), mode=mode, seed=11)
        seed, weights = group_seed(11, 0), (3, 1, 2, 2)
        found[f"{mode}_differs"] = sum(up.choose(packet) != hashed_member(packet.flow, seed, weights)
                                       for packet in flows(300))
    own_seed = group_seed(0, up.made.chip.switches[0].seed)
    up.set(mode="hash")
    found["own_seed_differs"] = sum(up.choose(packet) != hashed_member(packet.flow, own_seed, (1,) * 4)
                                    for packet in flows(100))
    up.set((3, 1, 0, 0), mode="hash", seed=5)
    found["weights_3_1"] = [up.choose(packet) for packet in flows(1000)].count(0) / 1000
    one = flows(1)[0]
    up.set(mode="spray")
    found["round_robin"] = [up.choose(one) for _ in range(12)]
    in_step = [up.choose(packet) for _ in range(8) for packet in flows(2)]
    found["two_in_step"] = [sorted(set(in_step[0::2])), sorted(set(in_step[1::2]))]
    up.set((2, 1, 1, 0), mode="spray")
    found["weighted_round_robin"] = sorted(Counter(up.choose(one) for _ in range(256 // 4 * 4)).values())
    up.set(mode="spray", random_spray=True)
    found["random"] = sorted(Counter(up.choose(one) for _ in range(400)).values())
    up.set(mode="flowlet", flowlet_gap_s=0.05)
    found["flowlet_together"] = len({up.choose(one) for _ in range(20)})
    found["flowlet_apart"] = []
    for _ in range(20):
        time.sleep(0.06)
        found["flowlet_apart"].append(up.choose(one))
    up.set(fast_failover=True)
    found["failover"] = [up.choose(one)]
    up.set(mode="hash", seed=11)
    before = [up.choose(packet) for packet in flows(200)]
    up.link(1, "down")
    after = [up.choose(packet) for packet in flows(200)]
    found["moved_though_alive"] = sum(old != new for old, new in zip(before, after, strict=True) if old != 0)
    found["dead_still_used"] = after.count(0)
    found["refugees"] = sorted({new for old, new in zip(before, after, strict=True) if old == 0})
    up.set(fast_failover=True)
    found["failover"].append(up.choose(one))
    up.set(mode="spray")
    found["spray_around_dead"] = sorted({up.choose(one) for _ in range(30)})
    for spine in (2, 3, 4):
        up.link(spine, "down")
    found["all_dead"] = up.choose(one)
    refused = up.made.chip.drops["packets"][up.made.ifindex("l1-eth1")]
    found["no_live_bucket"] = int(refused[CAUSES.index("no live bucket")])
    return found


def least_queue_weighted() -> dict:
    """Which member packets take, by weight and flow, where ports are alike and paths are not."""
    up = Uplinks(rate_bps=1e6)  # a packet takes longer than all the choices
    up.set((4, 4, 4, 1), mode="least-queue")
    taken = Counter(up.choose(packet, 1400) for packet in flows(1) * 65 + flows(65))
    up.set((4, 4, 4, 0), mode="least-queue")
    return {"taken": [taken[i] for i in range(4)],
            "with_a_weight_of_0": sorted({up.choose(packet, 1400) for packet in flows(60)})}


def least_queue() -> dict:
    """Which member a packet takes while others hold packets behind shut gates."""
    up = Uplinks(pausable=True)
    made, limit = up.made, 60_000
    for port in (2, 3, 4, 5):
        made.chip.pause(made.ifindex(f"l1-eth{port}"), 0)
        for _ in range(2):  # one may leave through a gate that was just shut
            made.datapath.packet_out(up.leaf, port, frame(flows(1)[0], 1000))
    for port, packets in ((2, 4), (3, 12), (5, 12)):
        for _ in range(packets):
            made.datapath.packet_out(up.leaf, port, frame(flows(1)[0], 1000))
    depths = []
    for port in (2, 3, 4, 5):
        made.chip.observe(made.ifindex(f"l1-eth{port}"))
        depths.append(int(made.chip.queue(made.ifindex(f"l1-eth{port}"))["held_bytes"]))
    up.set(mode="least-queue")
    found = {"depths": depths, "limit": limit, "per_packet": sorted({up.choose(p) for p in flows(30)})}
    up.set(mode="least-queue", flowlet_gap_s=10.0)
    one = flows(1)[0]
    first = up.choose(one)
    for _ in range(20):
        made.datapath.packet_out(up.leaf, 4, frame(one, 1000))
    found["flowlet_stays"] = [first, up.choose(one)]
    found["others_go"] = sorted({up.choose(p) for p in flows(30, 9)[1:]})
    return found


def large_frames() -> dict:
    """Frames up to the largest that a port takes are sent to a host as they are; others are refused."""
    made = lab(leaf_spine(1, 1, 2), mtu=9000, telemetry=False)
    leaf, found, refused = made.dpid("l1"), [], []
    with netns.entered("h1"):
        sniffer = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x88B6))
        sniffer.settimeout(2)
    draw = random.Random(3)
    for size in (14, 60, 2048, 2049, 3600, 9014):
        data = frame(Packet(1, 0x88B6), 14) + draw.randbytes(size - 14)
        made.datapath.packet_out(leaf, 1, data)
        found.append([size, sniffer.recv(20000) == data])
    sniffer.close()
    for size in (13, 9015, 20000):
        try:
            made.datapath.packet_out(leaf, 1, frame(Packet(1, 0x88B6), size)[:size])
        except ValueError as error:
            refused.append(str(error))
    return {"found": found, "refused": refused}


def events() -> dict:
    """Packet-in, packet-out, port status, and the refusals of other owners and impossible tables."""
    made = lab(leaf_spine(1, 1, 2), telemetry=False)
    leaf, seen, ports = made.dpid("l1"), [], []
    made.datapath.watch(lambda dpid, port, data: seen.append((dpid, port, data)),
                        lambda dpid, port: ports.append((dpid, port.number, port.up)))
    to_controller = PipelineRule(1, 9, PipelineMatch(eth_type=0x88CC), PipelineActions(to_controller=True))
    made.datapath.replace_tables(leaf, PipelineTables((to_controller,), ()))
    sent = [frame(Packet(1, 0x88CC), size) for size in (14, 60, 1514)]
    for data in sent:
        forward(made, "l1-eth2", data)
    end_s = time.monotonic() + 2
    while len(seen) < len(sent) and time.monotonic() < end_s:
        made.datapath.poll(0.1)
    found = {"packet_ins": [(dpid, port, data == sent[i]) for i, (dpid, port, data) in enumerate(seen)]}
    receiver = udp("h1", 7000)
    host = made.fabric.spec.graph.hosts[0]
    with netns.entered("h1"):
        sniffer = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x88B6))
        sniffer.settimeout(2)
    made.datapath.packet_out(leaf, 1, frame(Packet(1, 0x88B6), 100))
    found["packet_out_bytes"] = len(sniffer.recv(2000))
    subprocess.run(["ip", "link", "set", "s1-eth1", "down"], check=True, timeout=10)
    end_s = time.monotonic() + 2
    while (leaf, 3, False) not in ports and time.monotonic() < end_s:  # the spine's own end may come before
        made.datapath.poll(0.1)
    found["port_status"] = ports
    found["leaf"], found["host"] = leaf, host.name
    receiver.close()
    try:
        made.datapath.replace_tables(leaf, PipelineTables((PipelineRule(
            1, 1, PipelineMatch(), PipelineActions(output=77)),), ()))
    except ValueError as error:
        found["refused"] = str(error)
    forward(made, "l1-eth2", sent[1])
    found["old_tables_stand"] = made.datapath.rule_counts(leaf)[1].packets
    return found
