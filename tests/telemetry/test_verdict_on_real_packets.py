"""The verdict on real queues: passes when they are as configured, fails when somebody changes them.

The checks of the machine's own load (idle, steal, timers) say here how busy others keep it. A port may
then truly be slow; a run in which one of them fails shows nothing about the others and is repeated.
"""
from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from tests.telemetry.routed_hosts import DATAGRAM_BYTES, RoutedHosts, routed_hosts, send_datagrams, stream
from tests.telemetry.shaped_pair import BURST_BYTES, reshape, run

from emulator.fidelity import Check, Observations, PathDelay, judge
from emulator.telemetry.counters import difference, take_snapshot
from emulator.telemetry.sampler import QueueSampler
from emulator.telemetry.statistics import depth_statistics

pytestmark = pytest.mark.root
OF_THE_MACHINE = ("idle", "steal", "timers")


@pytest.fixture
def routed(sandbox: None) -> Iterator[RoutedHosts]:
    with routed_hosts() as hosts:
        yield hosts


def observe(routed: RoutedHosts, traffic: Callable[[], tuple[int, int]], **more: object) -> Observations:
    """Sample and count around `traffic`, which returns bytes expected and received."""
    with QueueSampler(routed.ports, 200, 30, cpu_budget=0.5) as sampler:
        before = take_snapshot(routed.ports, routed.hosts)
        start_s = time.monotonic()
        expected, received = traffic()
        end_s = time.monotonic()
        after = take_snapshot(routed.ports, routed.hosts)
        recording = sampler.stop()
    return Observations(
        routed.ports, 1500, BURST_BYTES, start_s, end_s, recording.series, recording.cores,
        difference(before, after), {port.name: port.rate_bps for port in routed.ports}, {}, 0, (), expected,
        received, 0, **more)


def observe_undisturbed(routed: RoutedHosts, traffic: Callable[[], tuple[int, int]]) -> Observations:
    """The first of three runs that passes, else the first whose machine was not too busy to tell."""
    for _ in range(3):
        run = observe(routed, traffic)
        checks = {check.name: check for check in judge(run).checks}
        if not failed(run) or all(checks[name].ok for name in OF_THE_MACHINE):
            return run
    pytest.skip("the machine is too busy to judge it: "
                + "; ".join(checks[name].why for name in OF_THE_MACHINE if not checks[name].ok))


def overload() -> tuple[int, int]:
    """1 s of three times what the bottleneck carries; what it drops was not expected to arrive."""
    sent, received = send_datagrams(1.0, 15e6)
    assert 0 < received < sent
    return received * DATAGRAM_BYTES, received * DATAGRAM_BYTES


def failed(run: Observations) -> dict[str, Check]:
    return {check.name: check for check in judge(run).checks
            if not check.ok and check.name not in OF_THE_MACHINE}


def test_an_overloaded_port_as_configured_passes(routed: RoutedHosts) -> None:
    run = observe_undisturbed(routed, overload)
    assert {name: check.why for name, check in failed(run).items()} == {}
    rate = next(check for check in judge(run).checks if check.name == "rate")
    assert rate.why.startswith("s1-eth2 sent at"), "the bottleneck was backlogged and is the port judged"
    dropped = {name: queue.dropped_packets for name, queue in run.between.queues.items()}
    assert dropped["s1-eth2"] > 0
    assert sum(dropped.values()) == dropped["s1-eth2"], "an overload drops at the one slow port"
    seen = next(series for series in run.series if routed.bottleneck in series.ports)
    assert seen.drops[-1, seen.ports.index(routed.bottleneck)] == dropped["s1-eth2"]


def later(seconds: float, action: Callable[[], object]) -> Callable[[], tuple[int, int]]:
    """The overload, with `action` on s1's ports that long after its start."""
    def traffic() -> tuple[int, int]:
        thread = threading.Timer(seconds, action)
        thread.start()
        try:
            return overload()
        finally:
            thread.join()
    return traffic


def test_a_removed_htb_fails(routed: RoutedHosts) -> None:
    found = failed(observe(routed, later(0.3, lambda: run("tc qdisc del dev s1-eth2 root"))))
    assert "s1-eth2 was without HTB" in found["shaping"].why


@pytest.mark.parametrize("rate_bps, check", [(4_000_000, "rate"), (7_000_000, "ceiling")])
def test_another_rate_fails_though_htb_is_there(routed: RoutedHosts, rate_bps: int, check: str) -> None:
    reshape("s1-eth2", rate_bps)
    found = failed(observe(routed, overload))
    assert "s1-eth2" in found[check].why
    assert "shaping" not in found, "the read-back was pretended to be right"


def test_packets_that_a_switch_swallows_fail(routed: RoutedHosts) -> None:
    run("ip route add blackhole 10.0.9.0/24")

    def traffic() -> tuple[int, int]:
        run("ip -n h1 route replace 10.0.2.2 via 10.0.1.1")
        run("ip route del 10.0.2.0/24 dev s1-eth2")
        run("ip route add blackhole 10.0.2.0/24")
        send_datagrams(0.1, 5e6)
        return 1, 1

    check = failed(observe(routed, traffic))["conservation"]
    assert check.value > 10
    assert "lost" in check.why and "s1 received" in check.why


def test_offloads_that_are_on_fail(routed: RoutedHosts) -> None:
    for netns, device in (("h1", "h1-eth0"), ("h2", "h2-eth0")):
        run(f"ip netns exec {netns} ethtool -K {device} tx on sg on gso on tso on")

    def traffic() -> tuple[int, int]:
        stream(0.3)
        return 1, 1

    assert "segments" in failed(observe(routed, traffic))["packet-size"].why


def test_little_s_law_holds_for_a_tcp_flow(routed: RoutedHosts) -> None:
    trips_s: list[float] = []

    def traffic() -> tuple[int, int]:
        trips_s[:] = stream(1.5)
        return 1, 1

    seen = observe_undisturbed(routed, traffic)
    path = PathDelay("h1-h2", ("h1-eth0", "s1-eth2", "h2-eth0", "s1-eth1"), float(np.mean(trips_s)), 1e-4)
    with_path = Observations(**{**vars(seen), "paths": (path,)})
    law = next(check for check in judge(with_path).checks if check.name == "littles-law")
    assert law.ok, law.why
    assert law.value > 0
    queue = next(series for series in seen.measured if routed.bottleneck in series.ports)
    assert max(depth.mean_bytes for depth in depth_statistics(queue)) > 5000
    assert failed(with_path) == {}
