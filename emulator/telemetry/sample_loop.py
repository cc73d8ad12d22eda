"""The sampling process: `python -m emulator.telemetry.sample_loop`, started by `sampler`.

It reads one line of JSON (the request), measures what a pass over the queues costs on this machine,
chooses a rate that stays in its CPU budget, takes a first sample, answers with one line (the layout of
the shared memory and the rates), then samples at absolute times until it is told to stop or its memory
is full, and ends with one line more. It runs at ordinary priority: that a busy machine makes it late is a
finding, not a fault.
"""
from __future__ import annotations

import gc
import json
import math
import signal
import sys
import time

import numpy as np

from emulator.errors import EmulatorError
from emulator.telemetry.cpu import read_cores
from emulator.telemetry.qdisc import SAMPLED, QueueReader
from emulator.telemetry.shared import Layout, map_arrays
from emulator.telemetry.ticks import die_with_parent, now_ns, sleep_until, wake_sharply

HOST_HZ = 25.0    # hosts cost a dump each (about 20 us), and their queues are the senders' own
MINIMUM_HZ = 10.0
_TRIALS, _TRIAL_GAP_NS = 20, 5_000_000  # closer together, caches stay warm and a pass looks cheaper
_SECOND_NS = 1_000_000_000


def choose_rates(asked_hz: float, costs_s: list[float], hosts: int, budget: float,
                 most_hz: float) -> list[float]:
    """Samples a second for each group, given the CPU seconds of a pass over each.

    Group `hosts` (-1: none) is sampled at most HOST_HZ often and with at most half of the budget
    (cores); the others share the rest. Nothing is sampled more often than asked or than `most_hz`,
    which is what the memory holds, nor, whatever the budget, less often than MINIMUM_HZ.
    """
    rates = [min(asked_hz, most_hz)] * len(costs_s)
    floor = min(MINIMUM_HZ, asked_hz, most_hz)
    left = budget
    if hosts >= 0:
        share = budget if len(costs_s) == 1 else budget / 2
        rates[hosts] = max(min(rates[hosts], HOST_HZ, share / costs_s[hosts]), floor)
        left -= rates[hosts] * costs_s[hosts]
    for group, cost_s in enumerate(costs_s):
        if group != hosts:
            rates[group] = max(min(rates[group], left / cost_s), floor)
    return rates


class Group:
    """Ports that are read in one pass, and where their samples go."""

    def __init__(self, reader: QueueReader, ports: int) -> None:
        self.reader, self.ports = reader, ports
        self.count = 0
        self._layouts_seen = -1

    def layout(self, prefix: str, rows: int) -> Layout:
        return {f"{prefix}.count": ("i8", (1,)), f"{prefix}.time_s": ("f8", (rows,)),
                f"{prefix}.read_s": ("f4", (rows,)), f"{prefix}.lateness_s": ("f4", (rows,)),
                f"{prefix}.unshaped_s": ("f8", (self.ports,)),
                f"{prefix}.words": ("u4", (rows, SAMPLED, self.ports))}

    def use(self, arrays: dict[str, np.ndarray], prefix: str) -> None:
        self._count, self._time, self._read, self._late, self._unshaped, self._words = (
            arrays[name] for name in self.layout(prefix, 0))
        self._unshaped[:] = np.nan

    def sample(self, lateness_ns: int) -> bool:
        """Take one sample; False if there was no room for it."""
        row = self.count
        if row == len(self._time):
            return False
        began = now_ns()
        self.reader.read_words(self._words[row])
        self._time[row] = began * 1e-9
        self._read[row] = (now_ns() - began) * 1e-9
        self._late[row] = lateness_ns * 1e-9
        if self.reader.relayouts != self._layouts_seen:
            self._layouts_seen = self.reader.relayouts
            self._unshaped[~self.reader.shaped & np.isnan(self._unshaped)] = began * 1e-9
        self.count = self._count[0] = row + 1
        return True

    def cost_s(self) -> float:
        """CPU seconds of one pass, waking up included; the mean of some."""
        out = np.zeros((SAMPLED, self.ports), np.uint32)
        costs = []
        due = now_ns()
        for _ in range(_TRIALS):
            before = time.thread_time()
            due += _TRIAL_GAP_NS
            sleep_until(due)
            self.reader.read_words(out)
            costs.append(time.thread_time() - before)
        return float(np.mean(costs))


def main() -> None:
    request = json.loads(sys.stdin.readline())
    die_with_parent(request["parent"])
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C is for the run, which then stops us
    try:
        _say(_converse(request))
    except EmulatorError as error:
        _say({"error": str(error), "kind": type(error).__name__})


def _say(line: dict) -> None:
    print(json.dumps(line), flush=True)


def _converse(request: dict) -> dict:
    """Prepare, answer the request, sample; the last line of the conversation."""
    wake_sharply()
    groups = [Group(QueueReader([(netns, ifindex) for netns, ifindex in interfaces]), len(interfaces))
              for interfaces in request["groups"]]
    costs_s = [group.cost_s() for group in groups]
    deadline_s = request["deadline_s"]
    row_bytes = sum(16 + 4 * SAMPLED * group.ports for group in groups)
    rates = choose_rates(request["rate_hz"], costs_s, request["hosts"], request["budget"],
                         request["memory_bytes"] / deadline_s / row_bytes)
    period_ns = round(_SECOND_NS / max(rates))
    every = [max(1, math.ceil(max(rates) / rate - 1e-6)) for rate in rates]
    seconds = math.ceil(deadline_s) + 3
    layout = {"stop": ("i8", (1,)), "cores.count": ("i8", (1,)), "cores.time_s": ("f8", (seconds,)),
              "cores.ticks": ("i8", (seconds, *read_cores().shape))}
    for index, group in enumerate(groups):
        rows = math.ceil(deadline_s * _SECOND_NS / period_ns / every[index]) + 2
        layout |= group.layout(str(index), rows)
    arrays = map_arrays(request["descriptor"], layout)
    for index, group in enumerate(groups):
        group.use(arrays, str(index))
    gc.collect()
    gc.disable()
    answer = {"layout": layout, "periods_s": [period_ns * step / _SECOND_NS for step in every]}
    return _loop(groups, every, period_ns, arrays, answer)


def _loop(groups: list[Group], every: list[int], period_ns: int, arrays: dict[str, np.ndarray],
          answer: dict) -> dict:
    """Sample until the stop flag is set or there is no room; says which, and the cores used.

    Answers after the first sample of every group: whoever waits for the answer and then starts the
    traffic is certain that it is watched, even where one core has to serve both.
    """
    stop, core_count = arrays["stop"], arrays["cores.count"]
    core_time, core_ticks = arrays["cores.time_s"], arrays["cores.ticks"]
    following = [0] * len(groups)
    start_ns = now_ns() + period_ns
    began_ns, began_cpu_s = start_ns, time.process_time()
    core_due_ns, tick, room = start_ns, 0, True
    while room and not stop[0]:
        due_ns = start_ns + tick * period_ns
        sleep_until(due_ns)
        late_ns = now_ns() - due_ns
        for index, group in enumerate(groups):
            if tick >= following[index]:
                following[index] = (tick // every[index] + 1) * every[index]
                room = group.sample(late_ns) and room
        if due_ns >= core_due_ns and core_count[0] < len(core_time):
            core_time[core_count[0]] = now_ns() * 1e-9
            core_ticks[core_count[0]] = read_cores()
            core_count[0] += 1
            core_due_ns += _SECOND_NS
        if tick == 0:
            _say(answer)
        # ticks that have gone by altogether are left out; their lateness shows in the times
        tick = max(tick + 1, (now_ns() - start_ns) // period_ns)
    wall_s = (now_ns() - began_ns) / _SECOND_NS
    return {"full": not room, "cpu_share": (time.process_time() - began_cpu_s) / max(wall_s, 1e-9)}


if __name__ == "__main__":
    main()
