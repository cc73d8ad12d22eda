"""Congestion controls over the bpf switch: what they do to a queue."""
from __future__ import annotations

import selectors
import socket
import time

import numpy as np

from emulator import netns
from emulator.asic.cc import AVAILABLE, Swift, provide
from emulator.asic.napi import thread_receive
from emulator.asic.objects import program_id
from emulator.asic.queueing import one_queue
from emulator.asic.telemetry import QueueTelemetry
from tests.asic.fabrics import lab
from tests.fabric.graphs import leaf_spine

TCP_CONGESTION = 13


def tcp_pair(client: str, server: str, address: str, port: int,
             name: str) -> tuple[socket.socket, socket.socket]:
    """A connection with congestion control `name` at both ends."""
    ends = []
    for host in (server, client):
        with netns.entered(host):
            made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        made.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, name.encode())
        made.settimeout(5)
        ends.append(made)
    listener, out = ends
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
    out.setsockopt(socket.SOL_SOCKET, 32, 4 << 20)  # SO_SNDBUFFORCE
    listener.bind((address, port))
    listener.listen(1)
    out.connect((address, port))
    into, _ = listener.accept()
    listener.close()
    return out, into


def incast(algorithm: str, rate_bps: float, seconds: float, k_bytes: int | None, buffer_bytes: int,
           target_s: float | None = None, senders: int = 2, threaded: bool = True) -> dict:
    """`senders` hosts send one stream each to one host; its port's queue from the second second on."""
    made = lab(leaf_spine(1, 1, senders + 1), rate_bps, buffer_bytes=buffer_bytes,
               queueing=one_queue(k_bytes))
    if threaded:
        thread_receive(port for port in made.fabric.ports if port.netns)
    cc = provide(algorithm, "test", Swift(target_s) if target_s else None)
    last = made.fabric.spec.graph.hosts[-1]
    pairs = [tcp_pair(f"h{i + 1}", last.name, last.ip, 7000 + i, cc.name) for i in range(senders)]
    used = [end.getsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, 16).rstrip(b"\0").decode() for pair in pairs
            for end in pair]
    selector, data, got = selectors.DefaultSelector(), bytes(1 << 16), 0
    for out, into in pairs:
        for end, events in ((out, selectors.EVENT_WRITE), (into, selectors.EVENT_READ)):
            end.setblocking(False)
            selector.register(end, events)
    telemetry, start_s, measured_s, drained_s = QueueTelemetry(made.chip), time.monotonic(), 0.0, 0.0
    while (now := time.monotonic()) - start_s < seconds:
        if not measured_s and now - start_s > 1:
            telemetry.start()
            measured_s, got = now, 0
        if measured_s and now - drained_s > 0.1:
            telemetry.drain()
            drained_s = now
        for key, events in selector.select(0.05):
            if events & selectors.EVENT_WRITE:
                key.fileobj.send(data)
            else:
                got += len(key.fileobj.recv(1 << 20))
        time.sleep(0.002)
    totals, _, depths = telemetry.finish()
    port = f"l1-eth{senders + 1}"
    hot = next(t for t in totals if t.key.port.name == port)
    column = depths.keys.index(hot.key)
    _, grid = depths.on_grid(0.001)
    impossible = cc.impossible_windows
    cc.close()
    return {"impossible": impossible, "used": used, "source": cc.source,
            "goodput_bps": got * 8 / (time.monotonic() - measured_s),
            "mean_bytes": float(np.mean(grid[:, column])), "mean_exact": hot.depth_mean_bytes,
            "percentiles": depths.percentiles(column, (5, 50, 95, 99)),
            "dropped": hot.dropped_packets, "marked": hot.marked_packets, "ect": hot.ect_packets,
            "delay_s": [hot.sojourn_p50_s, hot.sojourn_p99_s, hot.sojourn_max_s], "sent": hot.sent_packets,
            "timed": hot.timed_packets}


def leave_all_behind() -> dict:
    """A fabric with traffic and a congestion control, left without a word: the numbers of its BPF objects."""
    made = lab(leaf_spine(2, 2, 1), 50e6, queueing=one_queue(pausable=True))
    cc = provide("swift", "gone", Swift(0.001)) if "swift" not in AVAILABLE.read_text() else None
    out, _ = tcp_pair("h1", "h2", made.fabric.spec.graph.hosts[1].ip, 7000, cc.name if cc else "cubic")
    for port in ("l1-eth2", "l2-eth1"):
        made.chip.pause(made.ifindex(port), 0)
    out.send(bytes(1 << 16))
    for _ in range(3):
        made.datapath.packet_out(made.dpid("l1"), 2, bytes(12) + b"\x88\xb6" + bytes(1000))
    handles = made.chip.handles
    programs = list(handles["programs"].values())
    if cc:
        programs.append(program_id(cc._loaded.program("swift_init")))
    return {"prog": programs, "map": list(handles["maps"].values()),
            "registered": cc is not None and cc.name in AVAILABLE.read_text(), "name": cc.name if cc else ""}
