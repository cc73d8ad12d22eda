"""The sampling process on a real port."""
from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest
from tests.telemetry.shaped_pair import Pair, blast, overfill, run

from emulator.errors import BadInput, MachineLacks, Untrusted
from emulator.fabric.spec import Port
from emulator.telemetry.sampler import QueueSampler

pytestmark = pytest.mark.root


def test_depth_and_drops_are_those_of_tc(pair: Pair) -> None:
    with QueueSampler(pair.ports, 500, 20, cpu_budget=1.0) as sampler:
        time.sleep(0.1)
        for _ in range(4):
            overfill("s1-eth1", 80)
            time.sleep(0.1)
        recording = sampler.stop()
    switch, host = recording.series
    assert switch.ports == (pair.switch,)
    assert host.ports == (pair.host,)
    root = json.loads(run("tc -s -j qdisc show dev s1-eth1 root"))[0]
    assert switch.drops[-1, 0] == root["drops"] > 0
    assert switch.backlog_bytes.max() == 39 * 1514, "60 kB hold 39 packets of 1514 bytes"
    assert switch.queued_packets.max() == 39
    assert np.isnan(switch.unshaped_s).all()
    assert np.isnan(host.unshaped_s).all()
    assert host.sent_bytes[-1, 0] == 0
    assert (np.diff(switch.time_s) > 0).all()
    assert (switch.lateness_s >= 0).all()
    assert not recording.ended_early
    assert recording.rate_hz == pytest.approx(recording.asked_hz)


def test_bytes_flow_at_the_rate(pair: Pair) -> None:
    with QueueSampler(pair.ports, 200, 20) as sampler:
        blast(60)
        time.sleep(0.1)
        recording = sampler.stop()
    series = recording.series[0]
    full = series.backlog_bytes[:, 0] > 5_000_000 / 8 * 0.01
    seconds = np.ptp(series.time_s[full])
    sent = np.ptp(series.sent_bytes[full, 0])
    assert sent * 8 / seconds == pytest.approx(5e6, rel=2 * 1514 / sent), "bytes sent while backlogged"


def test_a_removed_htb_is_dated(pair: Pair) -> None:
    with QueueSampler(pair.ports, 100, 20) as sampler:
        time.sleep(0.05)
        before_s = time.monotonic()
        run("tc qdisc del dev s1-eth1 root")
        time.sleep(0.1)
        recording = sampler.stop()
    switch, host = recording.series
    assert switch.unshaped_s[0] >= before_s
    assert np.isnan(host.unshaped_s[0])


def test_the_deadline_bounds_the_memory(pair: Pair) -> None:
    with QueueSampler(pair.ports, 100, 0.2) as sampler:
        time.sleep(0.5)
        recording = sampler.stop()
    assert recording.ended_early
    assert len(recording.series[0].time_s) == pytest.approx(0.2 * recording.rate_hz, abs=3)


def test_a_small_budget_lowers_the_rate(pair: Pair) -> None:
    with QueueSampler(pair.ports, 1000, 5, cpu_budget=0.001) as sampler:
        recording = sampler.stop()
    assert recording.asked_hz == 1000
    assert recording.rate_hz < 200


def test_errors_are_sentences(pair: Pair) -> None:
    with pytest.raises(BadInput, match="above zero"):
        QueueSampler(pair.ports, 0, 5)
    gone = Port("h9-eth0", "h9", 0, 2, "h9", 1e6, 1000, 0, "s9")
    with pytest.raises(MachineLacks, match="h9"):
        QueueSampler([gone], 100, 5)


def test_a_sampler_that_dies_is_not_silent(pair: Pair) -> None:
    with QueueSampler(pair.ports, 100, 5) as sampler:
        os.kill(sampler.pid, signal.SIGKILL)
        with pytest.raises(Untrusted, match="ended by itself"):
            sampler.stop()


def test_it_dies_with_its_parent(pair: Pair) -> None:
    program = textwrap.dedent(f"""
        import time
        from emulator.fabric.spec import Port
        from emulator.telemetry.sampler import QueueSampler
        print(QueueSampler([{pair.switch!r}], 100, 60).pid, flush=True)
        time.sleep(30)""")
    parent = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True,
                              env={**os.environ, "PYTHONPATH": os.getcwd()})
    sampler = int(parent.stdout.readline())
    assert os.path.exists(f"/proc/{sampler}")
    parent.kill()
    parent.communicate(timeout=5)
    deadline = time.monotonic() + 5
    while _runs(sampler) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not _runs(sampler)


def _runs(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
