"""One job of a replay: which operation starts when, iteration after iteration.

An operation starts when its dependencies have finished. A send that others wait for is finished when its
last byte was acknowledged (as in `simulate`, as htsim's send_done_trigger and the completion of an RDMA
write), any other once the transport took it, a recv once its last byte was read; what arrives before its recv
is posted is kept. A job's iterations are separated by a barrier over its ranks (no packets); other jobs do
not wait there.
"""
from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from traffic.dag import dag
from traffic.inflight import InFlight
from traffic.progress import Progress
from traffic.records import ConnectionKey, Iteration, Message, Span
from traffic.schedule import PACE, Job, Kind, Op
from traffic.verify import Verification

if TYPE_CHECKING:
    from traffic.engine import Engine

ACK_GRACE_S = 5.0
_BEGIN, _GIVE_UP = -1, -2
"""What a timer is for, where it is not for the operation of that number."""


class JobRun:
    """The state of a job. `received`, `expected`: payload bytes so far, and of all iterations begun."""

    def __init__(self, engine: Engine, number: int, job: Job) -> None:
        self.engine, self.number, self.job = engine, number, job
        self.schedule = job.workload.schedule
        self.dag = dag(self.schedule)
        self._awaited = {send for send, recv in self.dag.match.items() if self.dag.followers[send] != [recv]}
        self.verification = (Verification(job.workload, self.dag, engine.options.seed)
                             if engine.options.verify else None)
        only = engine.options.only
        self.done = only is not None and number not in only
        self.skipped = self.done
        self.running = False
        self.received = self.expected = 0
        self._index = -1
        self._unacked = 0
        self._finish_s = 0.0
        self._finished = False  # every operation of the iteration; acknowledgements may still be under way

    def arm(self, now: float) -> None:
        """Begin at the job's start, unless it waits for another job that runs."""
        after = self.job.after
        if not self.skipped and (after is None or self.engine.jobs[after].skipped):
            self._set_off(now)

    def ranks(self) -> range:
        """Its ranks among those of all jobs."""
        return range(self.job.first_rank, self.job.first_rank + self.job.ranks)

    def progress(self) -> str:
        """For people: the iteration, and what of its bytes, or of its operations, is done."""
        sent = self.schedule.bytes_sent
        part = ((self.received - self.expected + sent) / sent if sent
                else 1 - self.state.left / max(len(self.dag.ops), 1))
        return f"iteration {self._index + 1} of {self.job.rounds}, {100 * part:.0f} %"

    # ---------------------------------------------------------------- iterations

    def _set_off(self, now: float) -> None:
        if self.job.start_s > 0:
            self.engine.timer(now + self.job.start_s, self, _BEGIN)
        else:
            self._begin(now)

    def _begin(self, now: float) -> None:
        """The next iteration."""
        self._index += 1
        self.running, self._finished = True, False
        self.state = Progress(self.dag)
        self._posted: dict[int, float] = {}
        self._early: dict[int, InFlight] = {}
        self.expected += self.schedule.bytes_sent
        if self.verification:
            self.verification.begin(self._index)
        self._start_s = now
        self.engine.reach(self, self._index, "")
        self.start(self.state.ready(), now)

    def _all_finished(self, now: float) -> None:
        """Every operation of the iteration has; it ends for others when the acknowledgements are there."""
        self._finish_s, self._finished = now, True
        if self._unacked:
            self.engine.timer(now + ACK_GRACE_S, self, _GIVE_UP - self._index)
        else:
            self._end_iteration(now)

    def _end_iteration(self, now: float) -> None:
        if self.verification:
            self.verification.end()
        w = self.job.workload
        self.engine.result.iterations.append(
            Iteration(self._index, self._index >= w.warmup, self._start_s, self._finish_s, self.number))
        self.running = False
        if self._index + 1 < self.job.rounds:
            self._begin(now)
            return
        self.done = True
        for other in self.engine.jobs:
            if other.job.after == self.number and not other.skipped:
                other._set_off(now)

    def due(self, number: int, now: float) -> None:
        """A compute has taken its time, the job's start has come, or acknowledgements are overdue."""
        if number == _BEGIN:
            self._begin(now)
        elif number <= _GIVE_UP:
            if self.running and _GIVE_UP - number == self._index and self._unacked:
                ranks = self.ranks()
                self.engine.give_up_acks([n for n, key in enumerate(self.engine.keys) if key.src in ranks],
                                         ACK_GRACE_S)
                self._unacked = 0
                self._end_iteration(now)
        else:
            if self.dag.ops[number].phase != PACE:
                self._span(number, "compute", self._posted[number], now)
            self.start(self.state.finish(number), now)

    # ---------------------------------------------------------------- operations

    def start(self, operations: list[int], now: float) -> None:
        """Start these, and all that end at once and what they release."""
        todo = deque(operations)
        while todo:
            number = todo.popleft()
            op = self.dag.ops[number]
            if op.phase:
                self.engine.reach(self, self._index, op.phase)
            if op.kind is Kind.COMPUTE:
                self._posted[number] = now
                if op.duration_s > 0:
                    self.engine.timer(now + op.duration_s, self, number)
                else:
                    todo.extend(self.state.finish(number))
            elif op.kind is Kind.REDUCE:
                if self.verification:
                    self.verification.reduce(number)
                todo.extend(self.state.finish(number))
            elif op.kind is Kind.RECV:
                self._posted[number] = now
                message = self._early.pop(number, None)
                if message:
                    todo.extend(self._complete(message))
            else:
                todo.extend(self._taken(self._send(number, op, now)))
        if not self.state.left and not self._finished:
            self._all_finished(now)

    def _send(self, number: int, op: Op, now: float) -> list[InFlight]:
        key = self._key(number, op)
        message = InFlight(self, number, self.dag.match[number], self.engine.index[key], op.size_bytes, now)
        if self.verification:
            message.data, message.crc = self.verification.outgoing(number)
            message.sink = memoryview(bytearray(message.size))
        self._unacked += 1
        return self.engine.send(message)

    def took(self, messages: list[InFlight], now: float) -> None:
        self.start(self._taken(messages), now)

    def _taken(self, messages: list[InFlight]) -> list[int]:
        """The transport has these whole; what may start now."""
        return [free for message in messages if message.send_op not in self._awaited
                for free in self.state.finish(message.send_op)]

    def arrived(self, message: InFlight) -> list[int]:
        if self.state.waits(message.recv_op):
            self._early[message.recv_op] = message
            return []
        return self._complete(message)

    def _complete(self, message: InFlight) -> list[int]:
        """A message is there and its recv is posted."""
        number = message.recv_op
        self._span(number, "recv", min(max(self._posted[number], message.start), message.received),
                   message.received)
        if self.verification and message.sink is not None:
            self.verification.land(number, message.sink, message.crc)
        return self.state.finish(number)

    def delivered(self, message: InFlight, now: float) -> None:
        op, key = self.dag.ops[message.send_op], self._key(message.send_op, self.dag.ops[message.send_op])
        self.engine.result.messages.append(Message(
            self._index, key.src, key.dst, op.channel, op.tag, message.size, message.start,
            message.received, message.acked, message.retrans, op.phase, op.step, op.traffic_class))
        self._span(message.send_op, "send", message.start, message.acked)
        self._unacked -= 1
        if message.send_op in self._awaited:
            self.start(self.state.finish(message.send_op), now)
        if self._finished and not self._unacked:
            self._end_iteration(now)

    def _key(self, number: int, op: Op) -> ConnectionKey:
        first = self.job.first_rank
        return ConnectionKey(first + self.dag.rank[number], first + op.peer, op.channel, op.traffic_class)

    def _span(self, number: int, kind: str, start: float, end: float) -> None:
        op = self.dag.ops[number]
        self.engine.result.spans.append(Span(
            self._index, self.job.first_rank + self.dag.rank[number], kind, op.phase, op.step, start, end,
            op.traffic_class))
