"""Performs the events of a replay, each at its time, in a real-time thread of the sandbox's process."""
from __future__ import annotations

import heapq
import os
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from controllers.process import ControllerProcess
from emulator.errors import EmulatorError
from emulator.events.acts import Acts
from emulator.events.record import EventsRecord, Happening, Tally
from emulator.events.spec import Event
from emulator.events.tally import Counter
from emulator.fabric.build import Fabric
from traffic.engine import Engine

PRIORITY = 20  # SCHED_FIFO: above ordinary processes, for the few milliseconds that an event takes
DRAIN_S = 40.0
READY_S = 30.0  # for a controller that returned shortly before the end
AWAKE_S = 1.0


class Conductor:
    """Make it while nothing is sent, `start` with the replay, `finish` after it, `close` at the very end:
    a controller that it started again lives as long as its thread.
    """

    def __init__(self, events: Sequence[Event], fabric: Fabric, switches: object,
                 controller: ControllerProcess, engine: Engine) -> None:
        self._controller = controller
        self._acts = Acts(fabric, switches)
        self._counter = Counter(self._acts.chip, fabric.ports, lambda: _retransmitted(engine))
        self._events = list(events)
        self._steps = [event for event in events if not event.when.timed]
        self._due: list[tuple[float, int, Event]] = []
        self._change = threading.Condition()
        self._over = self._closed = self._restarted = False
        self._happenings: list[Happening] = []
        self._drains: list[threading.Thread] = []
        self._watched: dict[str, int] = {}  # a dead port -> the happening that killed it
        self._failure: Exception | None = None
        self._port_events: list[Mapping[str, object]] = []
        self._repairs: list[Mapping[str, object]] = []
        self._adoptions: list[Mapping[str, object]] = []
        self._packet_ins = 0
        self._scheduling: list[Mapping[str, object]] = []
        self._idle = threading.Event()
        self._thread = threading.Thread(target=self._run, name="events", daemon=True)
        engine.reached = self.reached

    def start(self) -> None:
        """The replay begins now."""
        now = time.monotonic()
        for order, event in enumerate(self._events):
            if event.when.timed:
                self._due.append((now + event.when.time_s, order, event))
        heapq.heapify(self._due)
        self._thread.start()

    def reached(self, iteration: int, phase: str) -> None:
        """The engine begins an iteration (counted from 0, phase ''), or a phase for the first time."""
        hit = [event for event in self._steps if (event.when.iteration == iteration + 1 and not phase)
               or (event.when.phase is not None and event.when.phase == phase)]
        if hit:
            now = time.monotonic()
            with self._change:
                for event in hit:
                    self._steps.remove(event)
                    heapq.heappush(self._due, (now + event.when.time_s, self._events.index(event), event))
                self._change.notify()

    def _run(self) -> None:
        try:
            os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(PRIORITY))
            self._perform_all()
        except (EmulatorError, OSError) as failure:  # raised again by finish, in a thread that can report it
            self._failure = failure
        finally:
            self._idle.set()
        with self._change:
            while not self._closed:
                self._change.wait(AWAKE_S)

    def _perform_all(self) -> None:
        while True:
            with self._change:
                while not self._over:
                    wait = self._due[0][0] - time.monotonic() if self._due else AWAKE_S
                    if self._due and wait <= 0:
                        break
                    self._change.wait(min(wait, AWAKE_S))
                if self._over:
                    return
                due_s, _, event = heapq.heappop(self._due)
            self._perform(due_s, event)

    def _perform(self, due_s: float, event: Event) -> None:
        tally = self._counter.tally(self._dead())
        self._collect()
        number, began_s, ports = len(self._happenings), time.monotonic(), ()
        if event.kind in ("link", "switch"):
            if not event.up:
                self._watch(event, number)
            began_s = time.monotonic()
            ports = tuple(port.name for port in self._acts.carriers(event))
        elif event.kind == "degrade":
            self._acts.degrade(event)
        elif event.kind == "loss":
            self._acts.lose(event)
        elif event.kind == "controller":
            self._control(event.up)
        self._happenings.append(Happening(event.text, event.kind, event.target, event.up, due_s, began_s,
                                          time.monotonic(), tally, ports))
        if event.kind in ("drain", "undrain"):
            self._drain(event, number)

    def _dead(self) -> set[str]:
        """The switch ports without a link now."""
        return {name for name in self._acts.dead if self._acts.fabric.port[name].netns is None}

    def _control(self, up: bool) -> None:
        if up:
            self._controller.restart()
            self._restarted = True
        else:
            self._take_books()
            self._controller.kill()

    def _take_books(self) -> None:
        """Keep what the controller knows: a new one starts with empty books."""
        state = self._controller.state()
        self._port_events += state.port_events
        self._repairs += state.repairs
        self._adoptions += [state.adopted] if state.adopted else []
        self._packet_ins += state.packet_ins
        self._scheduling += [state.scheduling] if state.scheduling else []

    def _drain(self, event: Event, number: int) -> None:
        """In a thread of its own: it waits for queues to empty, and other events go on meanwhile."""

        def drain() -> None:
            refused = self._controller.order({"ask": event.kind, "name": event.target}, DRAIN_S)
            with self._change:
                self._happenings[number] = replace(self._happenings[number], done_s=time.monotonic(),
                                                   refused=refused)

        self._drains.append(threading.Thread(target=drain, name=event.text, daemon=True))
        self._drains[-1].start()

    # ------------------------------------------------------------ local repair, as the programs saw it

    def _watch(self, event: Event, number: int) -> None:
        if self._acts.chip is None:
            return
        for port in self._acts.ports_of(event):
            if port.netns is None and port.name not in self._watched:
                self._acts.chip.ports[port.ifindex]["avoided_ns"] = 0
                self._acts.chip.ports[port.ifindex]["avoided_packets"] = 0
                self._watched[port.name] = number

    def _collect(self) -> None:
        """Take down, for each event that killed ports, when and how often packets avoided them."""
        for number in set(self._watched.values()):
            seen = [self._acts.chip.ports[self._acts.fabric.port[name].ifindex]
                    for name, of in self._watched.items() if of == number]
            first = [int(port["avoided_ns"]) for port in seen if port["avoided_ns"]]
            self._happenings[number] = replace(
                self._happenings[number], avoided_s=min(first) * 1e-9 if first else None,
                avoided_packets=sum(int(port["avoided_packets"]) for port in seen))
        alive = [name for name in self._watched if name not in self._dead()]
        for name in alive:
            del self._watched[name]

    # ------------------------------------------------------------ the end

    def finish(self) -> None:
        """The traffic is over: perform nothing more, but let a controller that returned find its feet.

        Raises EmulatorError for an event that failed, or a controller that did not.
        """
        with self._change:
            self._over = True
            self._change.notify()
        self._idle.wait(10.0)
        for thread in self._drains:
            thread.join(DRAIN_S)
        if self._restarted and self._controller.running:
            self._controller.wait_ready(READY_S)
        if self._failure:
            raise EmulatorError(f"An event could not be performed: {self._failure}") from self._failure

    def record(self) -> EventsRecord:
        """All that happened, once nothing is sent any more."""
        touched = {name for name in self._acts.interrupted if self._acts.fabric.port[name].netns is None}
        lost_at = self._counter.lost_at(touched)
        end: Tally = self._counter.tally(touched)
        self._collect()
        if self._controller.running:
            self._take_books()
        missed = [event.text for event in self._steps] + [event.text for _, _, event in self._due]
        return EventsRecord(
            tuple(self._happenings), end, tuple(missed), tuple(self._port_events), tuple(self._repairs),
            tuple(self._adoptions), frozenset(self._acts.interrupted), frozenset(self._acts.reshaped),
            frozenset(self._acts.altered), lost_at)

    @property
    def packet_ins(self) -> int:
        """Packets that went to any controller of the run; known after `record`."""
        return self._packet_ins

    @property
    def scheduling(self) -> tuple[Mapping[str, object], ...]:
        """What each controller of the run moved, in their order (`SchedulingLoop.summary`); known after
        `record`."""
        return tuple(self._scheduling)

    def close(self) -> None:
        """End the thread, and with it a controller that it started."""
        with self._change:
            self._over = self._closed = True
            self._change.notify()
        if self._thread.is_alive():
            self._thread.join(5.0)
        self._counter.close()
        self._acts.close()


def _retransmitted(engine: Engine) -> int:
    return sum(engine.transport.info(number).total_retrans for number in range(len(engine.keys)))
