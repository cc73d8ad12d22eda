"""Replays jobs: real bytes over a Transport, one event loop and one clock for all ranks of all jobs.

The engine moves messages: it hands them to the transport, reads what arrives, keeps time. What is sent
when is decided by whoever sends: each job (`jobrun.py`), and the background. To spare wake-ups the loop
looks at the sockets at most once per `tick_s`.
"""
from __future__ import annotations

import heapq
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace

from traffic.backgroundrun import BackgroundRun, background_keys
from traffic.diagnosis import explain_stuck
from traffic.inflight import InFlight, Sender
from traffic.jobrun import JobRun
from traffic.records import Connection, ConnectionKey, EngineResult, TcpInfo
from traffic.schedule import Kind, Workload
from traffic.transport import Event, Transport

RTT_SAMPLE_S = 0.1
_REPORT_S = 0.25
_SCRATCH_BYTES = 1 << 20


@dataclass(frozen=True)
class EngineOptions:
    """How to run. deadline_s bounds the whole replay; tick_s is the least time between two looks: too
    short, and every packet costs a wake-up and an acknowledgement of its own. Of several jobs only
    those with a number in `only` run, where it is given.
    """

    deadline_s: float
    tick_s: float = 0.002
    verify: bool = False
    seed: int = 0
    only: frozenset[int] | None = None


def connections_of(workload: Workload) -> list[ConnectionKey]:
    """Every connection that the workload uses, in a fixed order; the background's are the last."""
    own = sorted({ConnectionKey(rank, op.peer, op.channel, op.traffic_class)
                  for rank, ops in enumerate(workload.schedule.ranks)
                  for op in ops if op.kind is Kind.SEND})
    return own + background_keys(workload.background, len(workload.placement))


class Engine:
    """One replay of a workload. Make it, `connect`, `run` once."""

    def __init__(self, workload: Workload, transport: Transport, options: EngineOptions,
                 progress: Callable[[str], None] = lambda text: None) -> None:
        self.workload, self.transport, self.options, self._report = workload, transport, options, progress
        self.keys = connections_of(workload)
        self.index = {key: number for number, key in enumerate(self.keys)}
        self.result = EngineResult(verified=options.verify)
        self._zeros = memoryview(bytes(_SCRATCH_BYTES))
        self._scratch = memoryview(bytearray(_SCRATCH_BYTES))
        self._lateness: list[float] = []
        self._rtts: list[list[float]] = [[] for _ in self.keys]
        self._least_rtt_s: list[float] = []
        self._stuck: list[str] = []
        self._phases: set[str] = set()
        self.reached: Callable[[int, str], None] = lambda iteration, phase: None
        """Called when an iteration of the first job begins (phase ''), and at the first of each phase."""
        self._timers: list[tuple[float, int, Sender, int]] = []
        self._timers_made = 0
        self._outgoing: list[deque[InFlight]] = [deque() for _ in self.keys]
        self._incoming: list[deque[InFlight]] = [deque() for _ in self.keys]
        self._unacked: list[deque[InFlight]] = [deque() for _ in self.keys]
        self._stream = [0] * len(self.keys)
        self.jobs = [JobRun(self, number, job) for number, job in enumerate(workload.parts)]
        self.background = BackgroundRun(self, workload.background) if workload.background else None

    def connect(self, deadline_s: float = 30.0) -> None:
        """Open all connections; raises Unfinished naming the pairs that did not open."""
        self.transport.open(self.keys, deadline_s)
        # the kernel may forget it (tcp_min_rtt_wlen): the handshake crosses an empty fabric
        self._least_rtt_s = [self.transport.info(number).min_rtt_s for number in range(len(self.keys))]

    def run(self, stop: Callable[[], bool] = lambda: False) -> EngineResult:
        """Replay all jobs until done, the deadline, or `stop()`; never raises for a stuck rank."""
        start = last_report = self._next_rtt = time.monotonic()
        end = start + self.options.deadline_s
        for job in self.jobs:
            job.arm(start)
        if self.background:
            self.background.arm(start)
        while not all(job.done for job in self.jobs):
            now = time.monotonic()
            if now >= end or stop():
                self._stuck += explain_stuck(self, now - start)
                break
            self._look(min(end, self._timers[0][0] if self._timers else now + 0.25) - now)
            if now - last_report > _REPORT_S:
                last_report = now
                self._report(self._progress())
        return self.seen()

    def seen(self) -> EngineResult:
        """What has happened so far; after a run, or one that was broken off."""
        self.result.connections.clear()
        for number, key in enumerate(self.keys):
            src_port, dst_port = self.transport.ports(number)
            self.result.connections.append(Connection(
                key, src_port, dst_port, self.transport.congestion_control(number), self._info(number),
                tuple(self._rtts[number])))
        seen, background, checked = self.result, self.background, [job.verification for job in self.jobs]
        return EngineResult(
            messages=seen.messages, spans=seen.spans, connections=seen.connections,
            iterations=seen.iterations, stuck=self._stuck,
            bytes_expected=sum(job.expected for job in self.jobs), bytes_received=self._received,
            checksum_errors=sum(v.checksum_errors for v in checked if v),
            wrong_values=sum(v.wrong_values for v in checked if v),
            verified=self.options.verify, timer_lateness_s=tuple(self._lateness),
            received=[*seen.received, (time.monotonic(), self._received)],
            wrong_by_job=tuple(v.wrong_values + v.checksum_errors if v else 0 for v in checked),
            background=background.messages if background else [],
            background_open=background.open if background else ())

    def _info(self, number: int) -> TcpInfo:
        info = self.transport.info(number)
        return replace(info, min_rtt_s=min([info.min_rtt_s, *self._least_rtt_s[number:number + 1]]))

    def ports(self, connection: int) -> tuple[int, int]:
        """Source and destination port of a connection."""
        return self.transport.ports(connection)

    def close(self) -> None:
        """Close all connections."""
        self.transport.close()

    def in_flight(self, connection: int) -> list[InFlight]:
        """Messages sent on this connection and not yet read in full, oldest first."""
        return list(self._incoming[connection])

    @property
    def _received(self) -> int:
        """Payload bytes that the jobs have received."""
        return sum(job.received for job in self.jobs)

    def reach(self, job: JobRun, iteration: int, phase: str) -> None:
        """A job begins an iteration (phase ''), or an operation of a phase."""
        if phase and phase not in self._phases:
            self._phases.add(phase)
            self.reached(iteration, phase)
        elif not phase and job is next(each for each in self.jobs if not each.skipped):
            self.reached(iteration, "")

    def _progress(self) -> str:
        """For people: which iteration, and how much of it has arrived."""
        running = [job for job in self.jobs if job.running]
        if len(self.jobs) == 1 and running:
            return running[0].progress()
        ended = sum(job.done for job in self.jobs)
        return ", ".join([f"{ended} of {len(self.jobs)} jobs done",
                          *(f"{job.job.name}: {job.progress()}" for job in running[:3])])

    # ---------------------------------------------------------------- what senders ask for

    def timer(self, due: float, sender: Sender, number: int) -> None:
        """Call sender.due(number, now) at CLOCK_MONOTONIC second `due`, or as soon after it as can be."""
        self._timers_made += 1
        heapq.heappush(self._timers, (due, self._timers_made, sender, number))

    def send(self, message: InFlight) -> list[InFlight]:
        """Put a message on its connection; returns those on it that the transport has now taken whole."""
        connection = message.connection
        message.retrans = self.transport.info(connection).total_retrans
        self._stream[connection] += message.size
        message.end_offset = self._stream[connection] - 1
        queue = self._outgoing[connection]
        queue.append(message)
        self._incoming[connection].append(message)
        self._unacked[connection].append(message)
        return self._push(connection) if len(queue) == 1 else []

    def give_up_acks(self, connections: range | list[int], grace_s: float) -> None:
        """Say which connections of a job still lack acknowledgements, and wait for them no longer."""
        for connection in connections:
            if self._unacked[connection]:
                key = self.keys[connection]
                self._stuck.append(f"rank {key.src}: the last bytes to rank {key.dst} arrived but "
                                   f"were not acknowledged within {grace_s:.0f} s.")
                self._unacked[connection].clear()

    # ---------------------------------------------------------------- the loop

    def _look(self, timeout_s: float) -> None:
        """Wait for events up to timeout_s, handle them, run due timers, and rest until the next tick."""
        began = time.monotonic()
        for event in self.transport.poll(max(0.0, timeout_s)):
            if event.kind == "readable":
                self._read(event.connection)
            elif event.kind == "acked":
                self._acked(event)
            else:
                self._write(event.connection)
        now = time.monotonic()
        while self._timers and self._timers[0][0] <= now:
            due, _, sender, number = heapq.heappop(self._timers)
            self._lateness.append(now - due)
            sender.due(number, now)
        if now >= self._next_rtt:
            self._next_rtt = now + RTT_SAMPLE_S
            self.result.received.append((now, self._received))
            for connection, pending in enumerate(self._unacked):
                if pending:
                    self._rtts[connection].append(self.transport.info(connection).rtt_s)
        rest = began + self.options.tick_s - time.monotonic()
        if self._timers:
            rest = min(rest, self._timers[0][0] - time.monotonic())
        if rest > 0:
            time.sleep(rest)

    def _push(self, connection: int) -> list[InFlight]:
        """Give the transport what it takes; returns the messages that it has taken whole."""
        queue, whole = self._outgoing[connection], []
        while queue:
            message = queue[0]
            left = message.size - message.taken
            if message.data is not None:
                chunk = message.data[message.taken:]
            else:
                chunk = self._zeros[:min(left, _SCRATCH_BYTES)]
            taken = self.transport.write(connection, chunk)
            message.taken += taken
            if message.taken == message.size:
                whole.append(queue.popleft())
            elif taken < len(chunk):
                self.transport.want_write(connection, True)
                break
        return whole

    def _write(self, connection: int) -> None:
        self.transport.want_write(connection, False)
        whole = self._push(connection)
        if whole:
            whole[0].sender.took(whole, time.monotonic())

    def _read(self, connection: int) -> None:
        queue, free, whole = self._incoming[connection], [], None
        for _ in range(64):  # then the others get their turn; level-triggered polling comes back
            if not queue:
                break
            message = queue[0]
            left = message.size - message.got
            if message.sink is None:
                into = self._scratch[:min(left, _SCRATCH_BYTES)]
            else:
                into = message.sink[message.got:]
            count = self.transport.read(connection, into)
            message.got += count
            message.sender.received += count
            if message.got == message.size:
                whole = queue.popleft()
                message.received = time.monotonic()
                free.extend(message.sender.arrived(message))
                self._record(message, message.received)
            elif count < len(into):
                break
        if whole:
            whole.sender.start(free, time.monotonic())

    def _acked(self, event: Event) -> None:
        pending, total = self._unacked[event.connection], None
        while pending and pending[0].end_offset <= event.offset:
            message = pending.popleft()
            if total is None:
                total = self.transport.info(event.connection).total_retrans
            message.retrans = total - message.retrans
            message.acked = event.time_s
            self._record(message, time.monotonic())

    def _record(self, message: InFlight, now: float) -> None:
        """A message is history once it was read and acknowledged, in whichever order."""
        if message.received and message.acked:
            message.sender.delivered(message, now)
