"""The workload over a standing fabric, with everything measured while it runs."""
from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, TypeVar

from controllers.routing import scheduling_of
from emulator import netns
from emulator.errors import EmulatorError, Interrupted
from emulator.events.conductor import Conductor
from emulator.fabric import pcap
from emulator.fabric.build import Fabric
from emulator.fabric.ethtool import offloads_on
from emulator.fabric.verify import shaped_rates_bps
from emulator.telemetry.counters import Snapshot, difference, take_snapshot, without_drops
from emulator.telemetry.sampler import QueueSampler
from traffic.engine import Engine, EngineOptions
from traffic.records import ConnectionKey
from traffic.tcp import TcpTransport
from traffic.transport import Endpoint

if TYPE_CHECKING:
    from emulator.session import Session

T = TypeVar("T")

SAMPLE_HZ = {"netdev": 100.0, "bpf": 20.0}  # the bpf switch has its own record, packet by packet
DEFAULT_SAMPLE_HZ = 1000.0
SETTLE_S = 0.5
SAMPLING_LEAD_S = 0.1
LEAST_WATCH_S = 2.2
LEAST_TICK_S, TICK_FRAMES, MOST_TICK_S = 0.002, 3, 0.01


class Replay:
    """The workload of a session over its fabric, measured; what is seen goes into the session's outcome."""

    PREPARING = "connecting ranks"

    def __init__(self, session: Session, fabric: Fabric) -> None:
        self.session, self.fabric = session, fabric
        self.plan, self.progress = session.plan, session.progress

    def run(self) -> None:
        """Replay the workload while everything is measured."""
        plan, progress, fabric, delay = self.plan, self.progress, self.fabric, self.session.delay
        progress.stage(self.PREPARING)
        engine = self._engine()
        conductor: Conductor | None = None
        try:
            engine.connect(deadline_s=max(30.0, plan.deadline_s / 4))
            self.session.update(paths=self._paths(engine), return_paths=self._return_paths(engine))
            _wait_until_quiet(fabric)
            before = take_snapshot(fabric.ports, fabric.hosts)
            losses, books = self.session.switches.losses(), self.session.controller.state()
            grouped = {} if plan.events or books.scheduling else self.session.switches.group_packets()
            bit_errors, delayed = self.session.switches.bit_errors(), delay and delay.counters()
            if plan.events:
                conductor = Conductor(plan.events, fabric, self.session.switches, self.session.controller,
                                      engine)
            sampler = QueueSampler(fabric.ports, SAMPLE_HZ.get(fabric.datapath, DEFAULT_SAMPLE_HZ),
                                   plan.deadline_s + 60.0)
            progress.stage(f"traffic: {plan.workload.name}")
            record, watched_s = self._recorded(self.session.switches.record), time.monotonic()
            try:
                time.sleep(SAMPLING_LEAD_S)  # the window lies within the samples
                with captures(self.session, fabric):
                    self._replay(engine, conductor)
                # cores are read once a second: a shorter run waits for its second reading
                time.sleep(max(SAMPLING_LEAD_S, watched_s + LEAST_WATCH_S - time.monotonic()))
            finally:
                recording = sampler.stop()
                packets = self._recorded(record.stop) if record else None
                self.session.update(recording=recording, packets=packets)
            seen = self.session.outcome.engine
            if self.session.outcome.interrupted or seen.stuck or seen.background_open:
                engine.close()  # what its buffers still hold would go on for many seconds
            progress.stage("reading counters and queues")
            _wait_until_quiet(fabric)
            after = take_snapshot(fabric.ports, fabric.hosts)
            if conductor:
                self.session.update(events=conductor.record())
            self.session.update(impossible_windows=self.session.congestion_control.impossible_windows)
            failure = self.session.switches.failure()
            if failure:
                self.session.update(switch_failure=failure)
            errors_after = self.session.switches.bit_errors()
            lost = {port: count - bit_errors[port] for port, count in errors_after.items()}
            # an event may have left the run without a controller
            books_after = self.session.controller.state() if self.session.controller.running else books
            moved = (conductor and conductor.scheduling) or (books_after.scheduling,)
            self.session.update(
                delay=delay and delay.since(delayed), bit_errors=lost,
                group_packets={port: count - grouped[port] for port, count in
                               (self.session.switches.group_packets() if grouped else {}).items()},
                between=without_drops(difference(before, after), lost), shaped_bps=shaped_rates_bps(fabric),
                link_faults=(*self.session.outcome.link_faults, *self.session.switches.link_faults()),
                offloads=dict(_offloads(fabric)),
                datapath_losses={what: count - losses[what] for what, count in
                                 (self._recorded(self.session.switches.losses) or losses).items()},
                packet_ins=(conductor.packet_ins if conductor else books_after.packet_ins) - books.packet_ins,
                scheduling=(books.scheduling, moved) if books.scheduling else None)
            progress.done()
        finally:
            engine.close()
            if conductor:
                conductor.close()

    def _recorded(self, act: Callable[[], T]) -> T | None:
        """What `act` gives; None where the switch has gone or a queue was taken away under it, which the
        verdict then tells.
        """
        try:
            return act()
        except Interrupted:
            raise
        except EmulatorError as fault:
            self.session.update(link_faults=(*self.session.outcome.link_faults, str(fault)))
            return None

    def _engine(self) -> Engine:
        plan = self.plan
        sites = [self.fabric.site[plan.graph.hosts[index].name] for index in plan.workload.endpoints]
        transport = TcpTransport([Endpoint(site.ip, site.netns) for site in sites],
                                 self.session.congestion_control.name, plan.experiment.seed, netns.entered,
                                 plan.dscp_of)
        frames_s = TICK_FRAMES * 8 * plan.wire.frame_bytes / plan.wire.rate_bps
        tick_s = min(max(LEAST_TICK_S, frames_s), MOST_TICK_S)
        options = EngineOptions(plan.deadline_s, tick_s, verify=plan.experiment.verify,
                                seed=plan.experiment.seed, only=plan.only)
        return Engine(plan.workload, transport, options, self.progress.update)

    def _replay(self, engine: Engine, conductor: Conductor | None) -> None:
        """Run to the end; an interrupt keeps what was seen until then."""
        started = time.monotonic()
        try:
            if conductor:
                conductor.start()
            result = engine.run()
        except Interrupted:
            result = engine.seen()
            self.session.update(interrupted=True)
        self.session.update(engine=result, started_s=started, ended_s=time.monotonic())
        if conductor:
            conductor.finish()

    def _paths(self, engine: Engine) -> dict[ConnectionKey, tuple[str, ...]]:
        """The interfaces that send the data of each connection, asked of the switches."""
        return {key: self._path(key.src, key.dst, engine.ports(number))
                for number, key in enumerate(engine.keys)}

    def _return_paths(self, engine: Engine) -> dict[ConnectionKey, tuple[str, ...]]:
        """The interfaces that send the acknowledgements of each connection."""
        return {key: self._path(key.dst, key.src, engine.ports(number)[::-1])
                for number, key in enumerate(engine.keys)}

    def _path(self, source: int, destination: int, ports: tuple[int, int]) -> tuple[str, ...]:
        if scheduling_of(self.plan.experiment.routing):
            return ()  # the controller moves flows while they run
        hosts, placement = self.plan.graph.hosts, self.plan.workload.endpoints
        a, b = hosts[placement[source]].name, hosts[placement[destination]].name
        return self.session.switches.path(a, b, "tcp", *ports)


@contextmanager
def captures(session: Session, fabric: Fabric) -> Iterator[None]:
    """Packets of the ports that were asked for, into the bundle's folder, while the block runs."""
    captures = pcap.capture(fabric, session.plan.experiment.pcap, session.folder)
    try:
        yield
    finally:
        session.update(captures=tuple(pcap.stop(captures)))


def _wait_until_quiet(fabric: Fabric) -> None:
    """Until no port has sent anything for SETTLE_S; bounded, because counters are compared afterwards."""
    last: Snapshot | None = None
    for _ in range(20):
        now = take_snapshot(fabric.ports, ())
        if last and all(now.links[name] == counters for name, counters in last.links.items()):
            return
        last = now
        time.sleep(SETTLE_S)


def _offloads(fabric: Fabric) -> Iterator[tuple[str, tuple[str, ...]]]:
    """(interface, its offloads that are on) of each port that has any."""
    for port in fabric.ports:
        with netns.entered(port.netns) if port.netns else nullcontext():
            on = offloads_on(port.name)
        if on:
            yield port.name, on
