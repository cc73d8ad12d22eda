"""Replays a schedule: real bytes over a Transport, one event loop and one clock for all ranks.

An operation starts when its dependencies have finished. A send is finished once the transport took
its last byte, a recv once its last byte was read; what arrives before its recv is posted is kept.
Iterations are separated by a barrier of the engine itself (no packets). To spare wake-ups the loop
looks at the sockets at most once per `tick_s`.
"""
from __future__ import annotations

import heapq
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from traffic.dag import dag
from traffic.diagnosis import explain_stuck
from traffic.progress import Progress
from traffic.records import Connection, ConnectionKey, EngineResult, Iteration, Message, Span
from traffic.schedule import PACE, Kind, Workload
from traffic.transport import Event, Transport
from traffic.verify import Verification

RTT_SAMPLE_S = 0.1
ACK_GRACE_S = 5.0
_SCRATCH_BYTES = 1 << 20


@dataclass(frozen=True)
class EngineOptions:
    """How to run. deadline_s bounds the whole replay; tick_s is the least time between two looks: too
    short, and every packet costs a wake-up and an acknowledgement of its own.
    """

    deadline_s: float
    tick_s: float = 0.002
    verify: bool = False
    seed: int = 0


class InFlight:
    """A message between its send operation and its acknowledgement."""

    __slots__ = ("send_op", "recv_op", "connection", "size", "start", "taken", "end_offset", "got",
                 "received", "acked", "retrans", "data", "sink", "crc")

    def __init__(self, send_op: int, recv_op: int, connection: int, size: int, start: float) -> None:
        self.send_op, self.recv_op, self.connection = send_op, recv_op, connection
        self.size, self.start = size, start
        self.taken = self.got = 0
        self.end_offset = -1
        self.received = self.acked = 0.0
        self.retrans = 0
        self.data: memoryview | None = None
        self.sink: memoryview | None = None
        self.crc = 0


def connections_of(workload: Workload) -> list[ConnectionKey]:
    """Every connection that the schedule uses, in a fixed order."""
    return sorted({ConnectionKey(rank, op.peer, op.channel, op.traffic_class)
                   for rank, ops in enumerate(workload.schedule.ranks)
                   for op in ops if op.kind is Kind.SEND})


class Engine:
    """One replay of a workload. Make it, `connect`, `run` once."""

    def __init__(self, workload: Workload, transport: Transport, options: EngineOptions,
                 progress: Callable[[int, int, int], None] = lambda iteration, done, total: None) -> None:
        self.workload, self.transport, self.options, self._report = workload, transport, options, progress
        self.dag = dag(workload.schedule)
        self.keys = connections_of(workload)
        self._index = {key: number for number, key in enumerate(self.keys)}
        self._zeros = memoryview(bytes(_SCRATCH_BYTES))
        self._scratch = memoryview(bytearray(_SCRATCH_BYTES))
        self.result = EngineResult(verified=options.verify)
        self._messages, self._spans = self.result.messages, self.result.spans
        self._lateness: list[float] = []
        self._rtts: list[list[float]] = [[] for _ in self.keys]
        self._expected = self._received = 0
        self._verification = Verification(workload, self.dag, options.seed) if options.verify else None
        self._stuck: list[str] = []
        self._outgoing: list[deque[InFlight]] = [deque() for _ in self.keys]
        self._incoming: list[deque[InFlight]] = [deque() for _ in self.keys]
        self._unacked: list[deque[InFlight]] = [deque() for _ in self.keys]
        self._stream = [0] * len(self.keys)

    def connect(self, deadline_s: float = 30.0) -> None:
        """Open all connections; raises Unfinished naming the pairs that did not open."""
        self.transport.open(self.keys, deadline_s)

    def run(self, stop: Callable[[], bool] = lambda: False) -> EngineResult:
        """Replay all iterations until done, the deadline, or `stop()`; never raises for a stuck rank."""
        end = time.monotonic() + self.options.deadline_s
        self._next_rtt = time.monotonic()
        for index in range(self.workload.warmup + self.workload.iterations):
            if not self._iteration(index, end, stop):
                break
        return self.seen()

    def seen(self) -> EngineResult:
        """What has happened so far; after a run, or one that was broken off."""
        self._connections()
        return EngineResult(
            messages=self._messages, spans=self._spans, connections=self.result.connections,
            iterations=self.result.iterations, stuck=self._stuck, bytes_expected=self._expected,
            bytes_received=self._received,
            checksum_errors=self._verification.checksum_errors if self._verification else 0,
            wrong_values=self._verification.wrong_values if self._verification else 0,
            verified=self.options.verify, timer_lateness_s=tuple(self._lateness),
            received=[*self.result.received, (time.monotonic(), self._received)])

    def in_flight(self, connection: int) -> list[InFlight]:
        """Messages sent on this connection and not yet read in full, oldest first."""
        return list(self._incoming[connection])

    # ---------------------------------------------------------------- one iteration

    def _iteration(self, index: int, end: float, stop: Callable[[], bool]) -> bool:
        self._current = index
        self.state = Progress(self.dag)
        self._timers: list[tuple[float, int]] = []
        self._posted: dict[int, float] = {}
        self._early: dict[int, InFlight] = {}
        self._expected += self.workload.schedule.bytes_sent
        if self._verification:
            self._verification.begin(index)
        start = last_report = time.monotonic()
        self._start_all(self.state.ready(), start)
        total, received = len(self.dag.ops), self._received
        while self.state.left:
            now = time.monotonic()
            if now >= end or stop():
                self._stuck = explain_stuck(self, now - start)
                return False
            self._look(min(end, self._timers[0][0] if self._timers else now + 0.25) - now)
            if now - last_report > 0.25:
                last_report = now
                self._report(index, *self._progress(received, total))
        finish = time.monotonic()
        self._report(index, 1, 1)
        self._drain_acks(min(end, finish + ACK_GRACE_S))
        if self._verification:
            self._verification.end()
        self.result.iterations.append(
            Iteration(index, index >= self.workload.warmup, start, finish))
        return True

    def _progress(self, received_before: int, operations: int) -> tuple[int, int]:
        """(done, of) for people: bytes that arrived, or operations where none are sent."""
        if self.workload.schedule.bytes_sent:
            return self._received - received_before, self.workload.schedule.bytes_sent
        return operations - self.state.left, operations

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
            due, number = heapq.heappop(self._timers)
            self._lateness.append(now - due)
            self._end(number, now)
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

    # ---------------------------------------------------------------- operations

    def _start_all(self, numbers: list[int], now: float) -> None:
        todo = deque(numbers)
        while todo:
            number = todo.popleft()
            op = self.dag.ops[number]
            if op.kind is Kind.COMPUTE:
                self._posted[number] = now
                if op.duration_s > 0:
                    heapq.heappush(self._timers, (now + op.duration_s, number))
                else:
                    todo.extend(self.state.finish(number))
            elif op.kind is Kind.REDUCE:
                if self._verification:
                    self._verification.reduce(number)
                todo.extend(self.state.finish(number))
            elif op.kind is Kind.RECV:
                self._posted[number] = now
                message = self._early.pop(number, None)
                if message:
                    todo.extend(self._complete_recv(message))
            else:
                todo.extend(self._issue(number, now))

    def _end(self, number: int, now: float) -> None:
        """A compute timer has run out."""
        op = self.dag.ops[number]
        if op.phase != PACE:
            self._span(number, "compute", op, self._posted[number], now)
        self._start_all(self.state.finish(number), now)

    def _span(self, number: int, kind: str, op, start: float, end: float) -> None:
        self._spans.append(Span(self._current, self.dag.rank[number], kind, op.phase, op.step, start, end))

    def _issue(self, number: int, now: float) -> list[int]:
        op = self.dag.ops[number]
        connection = self._index[ConnectionKey(self.dag.rank[number], op.peer, op.channel, op.traffic_class)]
        message = InFlight(number, self.dag.match[number], connection, op.size_bytes, now)
        message.retrans = self.transport.info(connection).total_retrans
        if self._verification:
            message.data, message.crc = self._verification.outgoing(number)
            message.sink = memoryview(bytearray(message.size))
        self._stream[connection] += op.size_bytes
        message.end_offset = self._stream[connection] - 1
        queue = self._outgoing[connection]
        queue.append(message)
        self._incoming[connection].append(message)
        self._unacked[connection].append(message)
        return self._push(connection) if len(queue) == 1 else []

    def _push(self, connection: int) -> list[int]:
        """Give the transport what it takes; returns operations that became free."""
        queue, free = self._outgoing[connection], []
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
                queue.popleft()
                free.extend(self.state.finish(message.send_op))
            elif taken < len(chunk):
                self.transport.want_write(connection, True)
                break
        return free

    def _write(self, connection: int) -> None:
        self.transport.want_write(connection, False)
        self._start_all(self._push(connection), time.monotonic())

    def _read(self, connection: int) -> None:
        queue, free = self._incoming[connection], []
        for _ in range(64):  # then the others get their turn; level-triggered polling comes back
            if not queue:
                break
            message = queue[0]
            left = message.size - message.got
            into = self._scratch[:min(left, _SCRATCH_BYTES)] if message.sink is None else message.sink[message.got:]
            count = self.transport.read(connection, into)
            message.got += count
            self._received += count
            if message.got == message.size:
                queue.popleft()
                message.received = time.monotonic()
                self._record(message)
                if self.state.waits(message.recv_op):
                    self._early[message.recv_op] = message
                else:
                    free.extend(self._complete_recv(message))
            elif count < len(into):
                break
        if free:
            self._start_all(free, time.monotonic())

    def _complete_recv(self, message: InFlight) -> list[int]:
        number = message.recv_op
        op = self.dag.ops[number]
        start = min(max(self._posted[number], message.start), message.received)
        self._span(number, "recv", op, start, message.received)
        if self._verification and message.sink is not None:
            self._verification.land(number, message.sink, message.crc)
        return self.state.finish(number)

    def _acked(self, event: Event) -> None:
        pending = self._unacked[event.connection]
        total = None
        while pending and pending[0].end_offset <= event.offset:
            message = pending.popleft()
            if total is None:
                total = self.transport.info(event.connection).total_retrans
            message.retrans = total - message.retrans
            message.acked = event.time_s
            self._record(message)

    def _record(self, message: InFlight) -> None:
        """A message is history once it was read and acknowledged, in whichever order."""
        if not (message.received and message.acked):
            return
        op, rank = self.dag.ops[message.send_op], self.dag.rank[message.send_op]
        self._messages.append(Message(
            self._current, rank, op.peer, op.channel, op.tag, message.size, message.start,
            message.received, message.acked, message.retrans, op.phase, op.step, op.traffic_class))
        self._span(message.send_op, "send", op, message.start, message.acked)

    def _drain_acks(self, end: float) -> None:
        """All was received; wait, bounded, for the last acknowledgements."""
        while any(self._unacked):
            now = time.monotonic()
            if now >= end:
                for connection, pending in enumerate(self._unacked):
                    if pending:
                        key = self.keys[connection]
                        self._stuck.append(f"rank {key.src}: the last bytes to rank {key.dst} arrived but "
                                           f"were not acknowledged within {ACK_GRACE_S:.0f} s.")
                        pending.clear()
                return
            self._look(min(0.05, end - now))

    # ---------------------------------------------------------------- at the end

    def _connections(self) -> None:
        self.result.connections.clear()
        for number, key in enumerate(self.keys):
            src_port, dst_port = self.transport.ports(number)
            self.result.connections.append(Connection(
                key, src_port, dst_port, self.transport.congestion_control(number),
                self.transport.info(number), tuple(self._rtts[number])))
