"""Checks 4 to 8: do the accounts balance? Packets, queues, control, payload. Pure.

A check whose subject did not occur passes and says 'not exercised'.
"""
from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from emulator.delay.record import REFUSED
from emulator.fidelity.observations import Check, Observations
from emulator.fidelity.pace import as_option, some
from emulator.telemetry.statistics import depth_statistics
from emulator.units import show_size, show_time

SIZE_SAMPLES = 20
LITTLE_TOLERANCE = 0.20

# packets that a host's own stack threw away (net/ipv4/proc.c). Ip.OutDiscards and Udp.SndbufErrors are not
# among them: they also count what the host's own emulated queue refused (net/ipv4/ip_output.c: ip_send_skb)
SOCKET_DROPS = (
    "Ip.InDiscards", "Ip.InHdrErrors", "Ip.InAddrErrors", "TcpExt.TCPBacklogDrop", "TcpExt.TCPRcvQDrop",
    "TcpExt.TCPOFODrop", "TcpExt.RcvPruned", "TcpExt.OfoPruned", "TcpExt.TCPZeroWindowDrop",
    "TcpExt.TCPReqQFullDrop", "TcpExt.ListenDrops", "TcpExt.PFMemallocDrop", "Udp.RcvbufErrors",
    "Udp.MemErrors")
CHECKSUM_ERRORS = ("Tcp.InCsumErrors", "Udp.InCsumErrors", "IpExt.InCsumErrors", "Icmp.InCsumErrors")


def conservation(run: Observations) -> Check:
    """4. Every packet that entered a link left it; one that entered a switch left it or its queue dropped it.

    For each link, both ways: packets sent = packets that the peer received; no interface dropped or
    damaged any. For each switch: received = sent + dropped in queues + still queued + dropped on order.
    None lost in the cores' input queues, in sockets, in the datapath. Value: packets that are missing
    (or came from nowhere) in any of these. Limit: 0.
    """
    faults = [*_on_links(run), *_in_switches(run), *_elsewhere(run)]
    crossed = sum(counters.tx_packets for counters in run.between.links.values())
    dropped = sum(queue.dropped_packets for queue in run.between.queues.values())
    ordered = sum(run.switch_drops.values())
    hit = f", and {ordered} were lost to bit errors, as asked" if ordered else ""
    if not faults:
        return Check("conservation", 0, 0, True,
                     f"{crossed} packets crossed {len(run.ports) // 2} links and all arrived; {dropped} were "
                     f"dropped, all of them in emulated queues{hit}{_lost_to_events(run)}")
    faults.sort(key=lambda fault: -fault[0])
    missing = sum(number for number, _ in faults)
    return Check("conservation", missing, 0, False,
                 f"{some(sentence for _, sentence in faults)} ({crossed} packets crossed links in all): the "
                 f"machine lost them, not the fabric; lower --rate to about "
                 f"{as_option(run.host_rate_bps / 2)} or use fewer hosts")


def _lost_to_events(run: Observations) -> str:
    lost = sum(run.planned.lost_at.values())
    return f", and {lost} went with a link that failed by plan" if run.planned.interrupted else ""


def _on_links(run: Observations) -> Iterator[tuple[int, str]]:
    links = run.between.links
    for port in run.ports:
        sent, received = links[port.name].tx_packets, links[port.peer].rx_packets
        failed = not run.planned.interrupted.isdisjoint((port.name, port.peer))
        under_way = run.delay and received < sent and failed
        if sent != received and not under_way:  # what a link held when it failed is gone with it
            yield abs(sent - received), f"{port.name} sent {sent} packets and {port.peer} received {received}"
        if port.name in run.planned.interrupted:
            continue  # what was sent to a dead link is lost, and is accounted for at its queue
        for counter in ("rx_dropped", "tx_dropped", "rx_errors", "tx_errors"):
            number = getattr(links[port.name], counter)
            if number:
                yield number, f"{port.name} counts {number} {counter}"


def _in_switches(run: Observations) -> Iterator[tuple[int, str]]:
    entered: dict[str, int] = {}
    left: dict[str, int] = {}
    for port in run.ports:
        if port.netns is not None:
            continue
        link, queue = run.between.links[port.name], run.between.queues[port.name]
        entered[port.node] = entered.get(port.node, 0) + link.rx_packets
        lost = run.planned.lost_at[port.name] if port.name in run.planned.lost_at else link.tx_dropped
        left[port.node] = (left.get(port.node, 0) + link.tx_packets + lost
                           + queue.dropped_packets + queue.queued_packets)
    uncounted = () if run.planned.counted else run.planned.interrupted
    unknown = {port.node for port in run.ports if port.name in uncounted}
    for switch, packets in entered.items():
        if switch in unknown:
            continue  # its queues lost packets with a link, and nobody counted them one by one
        gone = left[switch] + run.switch_drops.get(switch, 0) + run.kept_frames.get(switch, 0)
        if packets > gone:
            yield packets - gone, f"{switch} received {packets} packets and lost {packets - gone} inside"
        elif packets < gone:
            yield gone - packets, f"{switch} received {packets} packets but accounts for {gone}"


def _elsewhere(run: Observations) -> Iterator[tuple[int, str]]:
    if run.between.backlog.dropped:
        yield run.between.backlog.dropped, (f"{run.between.backlog.dropped} packets dropped in the cores' "
                                            f"input queues (of the whole machine)")
    for host, counters in run.between.sockets.items():
        for name in SOCKET_DROPS:
            if counters.get(name, 0):
                yield counters[name], f"{host} counts {counters[name]} {name}"
    excused = REFUSED if run.planned.interrupted else ()  # by a port that an event took down
    for where, number in (*run.datapath_losses.items(), *(run.delay.losses.items() if run.delay else ())):
        if number and where not in excused:
            yield number, f"{number} {where}"


def packet_size(run: Observations) -> Check:
    """5. No packet larger than the MTU in a queue.

    The kernel counts a packet that is yet to be segmented as its segments in a queue's counters and as
    one packet in those of the interface, so the two differ exactly by what was too large. Samples are
    weaker evidence: the kernel reads depth in packets and in bytes one after the other, and packets come
    between. So the bytes are shared among one packet more than counted, over at least SIZE_SAMPLES
    samples, and the median is taken. Value: interfaces with any evidence, an offload found on at the
    end included. Limit: 0.
    """
    wrong: dict[str, str] = {}
    for series in run.measured:
        for column, port in enumerate(series.ports):
            waiting = series.queued_packets[:, column] > 0
            if waiting.sum() < SIZE_SAMPLES:
                continue
            size = float(np.median(series.backlog_bytes[waiting, column]
                                   / (series.queued_packets[waiting, column] + 1.0)))
            if size > run.frame_bytes:
                wrong[port.name] = f"packets queued at {port.name} had at least {show_size(size)}"
    for port in run.ports:
        queue, link = run.between.queues[port.name], run.between.links[port.name]
        unsplit = queue.sent_packets - link.tx_packets - link.tx_dropped
        if unsplit > max(0, queue.queued_packets):
            wrong[port.name] = f"{port.name} sent {queue.sent_packets} segments in {link.tx_packets} packets"
    for interface, names in run.offloads.items():
        if names:
            wrong.setdefault(interface, f"{interface} has {', '.join(names)} on")
    if not wrong:
        return Check("packet-size", 0, 0, True,
                     f"no packet above {run.frame_bytes} bytes was in a queue, all offloads were off")
    return Check("packet-size", len(wrong), 0, False,
                 f"{some(wrong.values())}, {run.frame_bytes} bytes being the most: something turned "
                 f"segmentation offload on; turn it off with `ethtool -K` and run again")


def queue_limit(run: Observations) -> Check:
    """6. No queue was above its configured size.

    Value: the most bytes above it, over all samples. Limit: one frame, which the device may have handed
    back to a queue that has filled up since.
    """
    worst, where = 0.0, ""
    for series in run.measured:
        limits = np.array([port.limit_bytes for port in series.ports])
        above = (series.backlog_bytes.astype(np.int64) - limits).max(axis=0, initial=0)
        if above.max(initial=0) > worst:
            worst, where = float(above.max()), series.ports[int(above.argmax())].name
    if not worst:
        return Check("queue-limit", 0.0, run.frame_bytes, True, "no queue was above its configured size")
    why = f"{where} held {show_size(worst)} more than its configured size"
    ok = worst <= run.frame_bytes
    return Check("queue-limit", worst, run.frame_bytes, ok,
                 why if ok else f"{why}: its limit was changed, see `tc qdisc show`")


def littles_law(run: Observations) -> Check:
    """6. Little's law: the mean queues of a path, each over its rate, add up to mean RTT - base RTT.

    Value: the largest difference over what is allowed, which is 20 % of the larger of the two and the
    time of one frame at each port. Limit: 1. The queues are averaged over time and the round trips
    over packets, so it is meant for flows that last most of the window.
    """
    if not run.paths:
        return Check("littles-law", 0.0, 1.0, True, "not exercised: no round-trip times were recorded")
    waits_s, frames_s = {}, {}
    for series in run.measured:
        for port, depth in zip(series.ports, depth_statistics(series)):
            waits_s[port.name] = depth.mean_bytes * 8 / port.rate_bps
            frames_s[port.name] = run.frame_bytes * 8 / port.rate_bps
    worst, why = -1.0, "not exercised: every path had ports that were paused"
    hosts = {port.name for port in run.ports if port.netns is not None}
    for path in run.paths:
        if not run.paused.isdisjoint(hosts.intersection(path.ports)):
            continue  # a host's queue that is held back does not drain at its port's rate
        queued_s = sum(path.waits_s.get(name, waits_s[name]) for name in path.ports)
        seen_s = path.rtt_s - path.base_rtt_s
        allowed_s = LITTLE_TOLERANCE * max(queued_s, seen_s) + sum(frames_s[name] for name in path.ports)
        if abs(queued_s - seen_s) / allowed_s > worst:
            worst = abs(queued_s - seen_s) / allowed_s
            why = (f"on {path.name} the queues account for {show_time(queued_s)} and the round trips show "
                   f"{show_time(seen_s)}, {show_time(allowed_s)} apart being allowed")
    if worst > 1:
        why += ": packets wait where no emulated queue is; lower --rate or use fewer hosts"
    return Check("littles-law", max(worst, 0.0), 1.0, worst <= 1, why)


def packet_in(run: Observations) -> Check:
    """7. No switch asked the controller during the measurement. Value: packet-ins. Limit: 0."""
    if not run.packet_ins:
        return Check("packet-in", 0, 0, True, "no packet went to the controller")
    return Check("packet-in", run.packet_ins, 0, False,
                 f"{run.packet_ins} packets went to the controller during the measurement: a table lacks a "
                 f"rule for them, or other traffic is on the fabric; see the controller's log")


def groups(run: Observations) -> Check:
    """7. What the select groups counted out of a port is what arrived at its queue.

    Value: packets of difference, over all ports that only groups feed. Limit: 0.
    """
    if not run.group_packets:
        return Check("groups", 0, 0, True, "not exercised: no port is fed by groups alone")
    off: list[tuple[int, str]] = []
    for interface, counted in run.group_packets.items():
        queue, link = run.between.queues[interface], run.between.links[interface]
        arrived = link.tx_packets + link.tx_dropped + queue.dropped_packets + queue.queued_packets
        if counted != arrived:
            off.append((abs(counted - arrived),
                        f"groups count {counted} packets to {interface}, where {arrived} arrived"))
    off.sort(reverse=True)
    if not off:
        return Check("groups", 0, 0, True,
                     f"groups and queues agree on {sum(run.group_packets.values())} packets")
    return Check("groups", sum(number for number, _ in off), 0, False,
                 f"{some(sentence for _, sentence in off)}: packets took another way than declared, see the "
                 f"flow tables in the controller's log")


def finished(run: Observations) -> Check:
    """8. Every flow finished. Value: those that did not. Limit: 0."""
    if not run.unfinished:
        return Check("finished", 0, 0, True, "every flow finished")
    remedy = "raise --deadline, or see where it is stuck in the log" if run.program_cpu_s is None else \
        "what it printed is in ranks/ of the bundle"
    return Check("finished", len(run.unfinished), 0, False, f"{some(run.unfinished)}: {remedy}")


def delivered(run: Observations) -> Check:
    """8. Every expected byte of payload arrived, once. Value: bytes received. Limit: bytes expected."""
    received, expected = run.bytes_received, run.bytes_expected
    if not expected:
        return Check("delivered", received, expected, False, "the workload sends no byte; give it some"
                     if run.program_cpu_s is None else "the program sent no byte of TCP from host to host")
    why = f"{received} of {expected} bytes arrived"
    if received > expected:
        why += f": {received - expected} came twice or from elsewhere"
    return Check("delivered", received, expected, received == expected, why)


def checksums(run: Observations) -> Check:
    """8. No payload and no packet was damaged. Value: wrong checksums or sums. Limit: 0."""
    by_stack = sum(counters.get(name, 0) for counters in run.between.sockets.values()
                   for name in CHECKSUM_ERRORS)
    total = by_stack + run.payload_errors
    if not total:
        return Check("checksums", 0, 0, True, "no wrong checksum")
    return Check("checksums", total, 0, False,
                 f"{by_stack} packets and {run.payload_errors} payload blocks had a wrong checksum: "
                 f"transmit checksum offload is on somewhere, or data was damaged")


def congestion_control(run: Observations) -> Check:
    """A congestion control that is a BPF program was called for every acknowledgement.

    Some kernels skip a call now and then (emulator/asic/napi.py); a window that then grew as no TCP's can
    gives it away. Value: how often. 0 where the algorithm is the kernel's own.
    """
    count = run.impossible_windows
    why = "no congestion window grew as none can"
    if count:
        why = (f"{count} congestion windows grew as none can: the kernel skipped calls of the BPF program; "
               "run again")
    return Check("congestion-control", count, 0, not count, why)
