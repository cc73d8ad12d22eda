"""One run inside its sandbox, stage by stage: fabric, switches under their controller, gate, traffic, reading.

Called by `emulator.inside` only. Every stage is bounded in time; what was measured before a stage failed
is still brought back.
"""
from __future__ import annotations

import platform
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from controllers.probes import ProbePlan, plan_probes
from controllers.process import start_controller
from controllers.routing import plan_tables
from emulator import __version__, machine, netns
from emulator.asic import switches as asic
from emulator.asic.cc import BPF_ALGORITHMS, CongestionControl, provide
from emulator.asic.napi import thread_receive
from emulator.errors import EmulatorError, Interrupted, MachineLacks
from emulator.fabric import build as fabric_build
from emulator.fabric import ovs as openvswitch
from emulator.fabric import pcap
from emulator.fabric.build import Fabric
from emulator.fabric.ethtool import offloads_on
from emulator.fabric.gate import Probe, prove
from emulator.fabric.switches import Switches
from emulator.fabric.verify import shaped_rates_bps
from emulator.outcome import Outcome, Setup
from emulator.plan import Plan
from emulator.progress import Progress
from emulator.telemetry.counters import Snapshot, difference, take_snapshot
from emulator.telemetry.sampler import QueueSampler
from traffic.engine import Engine, EngineOptions
from traffic.records import ConnectionKey
from traffic.transport import Endpoint, TcpTransport

T = TypeVar("T")

RUN_DIR = Path("/run/emulator")
CONTROLLER_PORT = 6653
READY_TIMEOUT_S = 120.0
SAMPLE_HZ = {"netdev": 100.0, "bpf": 20.0}  # the bpf switch has its own record, packet by packet
DEFAULT_SAMPLE_HZ = 1000.0
SETTLE_S = 0.5
SAMPLING_LEAD_S = 0.1
LEAST_WATCH_S = 2.2
LEAST_TICK_S, TICK_FRAMES, MOST_TICK_S = 0.002, 3, 0.01
PROBE_PORTS = 10000


class Session:
    """The running fabric of one plan and what has been brought together so far (`outcome`)."""

    def __init__(self, plan: Plan, progress: Progress, folder: Path) -> None:
        self.plan, self.progress, self.folder = plan, progress, folder
        self.outcome = Outcome()

    @contextmanager
    def fabric(self) -> Iterator[Fabric]:
        """A fabric that stands, whose switches hold their tables, and whose every path was proven."""
        plan, began = self.plan, time.monotonic()
        graph = plan.graph
        self.progress.stage(f"building {len(graph.hosts)} hosts, {len(graph.switches)} switches, "
                            f"{len(graph.links)} links")
        RUN_DIR.mkdir(parents=True, exist_ok=True)
        self.controller = start_controller(graph, plan.experiment.routing, plan.experiment.seed, RUN_DIR,
                                           CONTROLLER_PORT)
        try:
            fabric = fabric_build.build(plan.fabric)
            self.switches = self._switches(fabric)
            self.congestion_control = self._congestion_control(fabric)
            up = time.monotonic()
            self.progress.stage("controller: tables into every switch, read back")
            self.controller.wait_ready(READY_TIMEOUT_S)
            self.progress.stage("gate: a probe over every link")
            tables = plan_tables(graph, plan.experiment.routing, plan.experiment.seed)
            prove(fabric, _probes(plan_probes(graph, tables)))
            self.progress.done()
            self._update(setup=Setup(up - began, time.monotonic() - began), ports=fabric.ports,
                         environment=self._environment(fabric))
            yield fabric
        finally:
            down = time.monotonic()
            self._update(log=_tail(self.controller.log))
            if hasattr(self, "congestion_control"):
                self.congestion_control.close()
            if hasattr(self, "switches"):
                self.switches.stop()
            self.controller.stop()
            if self.outcome.setup:
                self._update(setup=replace(self.outcome.setup, down_s=time.monotonic() - down))

    def _switches(self, fabric: Fabric) -> Switches:
        if self.plan.switch == "bpf":
            return asic.start(fabric, self.plan.queueing, self.plan.experiment.routing, CONTROLLER_PORT, RUN_DIR)
        return openvswitch.start(fabric, CONTROLLER_PORT)

    def _congestion_control(self, fabric: Fabric) -> CongestionControl:
        """The kernel's, or ours as a BPF program; hosts then receive in threads, so that no call is skipped."""
        name = self.plan.experiment.cc
        try:
            machine.require_congestion_control(name)
            return CongestionControl(name, "kernel")
        except MachineLacks:
            if name not in BPF_ALGORITHMS:
                raise
        made = provide(name, uuid.uuid4().hex[:8], self.plan.swift)
        if made.source == "bpf":
            thread_receive(port for port in fabric.ports if port.netns)
        return made

    def traffic(self, fabric: Fabric) -> None:
        """Replay the workload while everything is measured."""
        plan, progress = self.plan, self.progress
        progress.stage("connecting ranks")
        engine = self._engine(fabric)
        try:
            engine.connect(deadline_s=max(30.0, plan.deadline_s / 4))
            self._update(paths=self._paths(fabric, engine), return_paths=self._return_paths(fabric, engine))
            _wait_until_quiet(fabric)
            before = take_snapshot(fabric.ports, fabric.hosts)
            losses, packet_ins = self.switches.losses(), self.controller.state().packet_ins
            sampler = QueueSampler(fabric.ports, SAMPLE_HZ.get(fabric.datapath, DEFAULT_SAMPLE_HZ),
                                   plan.deadline_s + 60.0)
            progress.stage(f"traffic: {plan.workload.name}")
            record, watched_s = self._recorded(self.switches.record), time.monotonic()
            try:
                time.sleep(SAMPLING_LEAD_S)  # the window lies within the samples
                with self._captures(fabric):
                    self._replay(engine)
                # cores are read once a second: a shorter run waits for its second reading
                time.sleep(max(SAMPLING_LEAD_S, watched_s + LEAST_WATCH_S - time.monotonic()))
            finally:
                self._update(recording=sampler.stop(), packets=self._recorded(record.stop) if record else None)
            if self.outcome.interrupted or self.outcome.engine.stuck:
                engine.transport.close()  # what its buffers still hold would go on for many seconds
            progress.stage("reading counters and queues")
            _wait_until_quiet(fabric)
            after = take_snapshot(fabric.ports, fabric.hosts)
            self._update(impossible_windows=self.congestion_control.impossible_windows)
            failure = self.switches.failure()
            if failure:
                self._update(switch_failure=failure)
            self._update(between=difference(before, after), shaped_bps=shaped_rates_bps(fabric),
                         link_faults=(*self.outcome.link_faults, *self.switches.link_faults()), offloads=dict(_offloads(fabric)),
                         datapath_losses={what: count - losses[what]
                                          for what, count in self.switches.losses().items()},
                         packet_ins=self.controller.state().packet_ins - packet_ins)
            progress.done()
        finally:
            engine.transport.close()

    def _recorded(self, act: Callable[[], T]) -> T | None:
        """What `act` gives; None where a queue was taken away under the switch, which the verdict then tells."""
        try:
            return act()
        except Interrupted:
            raise
        except EmulatorError as fault:
            self._update(link_faults=(*self.outcome.link_faults, str(fault)))
            return None

    @contextmanager
    def _captures(self, fabric: Fabric) -> Iterator[None]:
        """Packets of the ports that were asked for, into the bundle's folder, while the block runs."""
        captures = pcap.capture(fabric, self.plan.experiment.pcap, self.folder)
        try:
            yield
        finally:
            self._update(captures=tuple(pcap.stop(captures)))

    def _engine(self, fabric: Fabric) -> Engine:
        plan = self.plan
        sites = [fabric.site[plan.graph.hosts[index].name] for index in plan.workload.placement]
        transport = TcpTransport([Endpoint(site.ip, site.netns) for site in sites], self.congestion_control.name,
                                 plan.experiment.seed, netns.entered)
        tick_s = min(max(LEAST_TICK_S, TICK_FRAMES * 8 * plan.wire.frame_bytes / plan.wire.rate_bps), MOST_TICK_S)
        options = EngineOptions(plan.deadline_s, tick_s, verify=plan.experiment.verify, seed=plan.experiment.seed)
        total = plan.iterations

        def report(iteration: int, done: int, operations: int) -> None:
            self.progress.update(f"iteration {iteration + 1} of {total}, {100 * done // max(operations, 1)} %")

        return Engine(plan.workload, transport, options, report)

    def _replay(self, engine: Engine) -> None:
        """Run to the end; an interrupt keeps what was seen until then."""
        started = time.monotonic()
        try:
            result = engine.run()
        except Interrupted:
            result = engine.seen()
            self._update(interrupted=True)
        self._update(engine=result, started_s=started, ended_s=time.monotonic())

    def _paths(self, fabric: Fabric, engine: Engine) -> dict[ConnectionKey, tuple[str, ...]]:
        """The nodes that the data of each connection crosses, asked of the switches."""
        return {key: self._nodes(fabric, key.src, key.dst, engine.transport.ports(number))
                for number, key in enumerate(engine.keys)}

    def _return_paths(self, fabric: Fabric, engine: Engine) -> dict[ConnectionKey, tuple[str, ...]]:
        """The nodes that the acknowledgements of each connection cross."""
        return {key: self._nodes(fabric, key.dst, key.src, engine.transport.ports(number)[::-1])
                for number, key in enumerate(engine.keys)}

    def _nodes(self, fabric: Fabric, source: int, destination: int, ports: tuple[int, int]) -> tuple[str, ...]:
        hosts, placement = self.plan.graph.hosts, self.plan.workload.placement
        a, b = hosts[placement[source]].name, hosts[placement[destination]].name
        sent = self.switches.path(a, b, "tcp", *ports)
        return (*(fabric.port[name].node for name in sent), b) if sent else ()

    def _environment(self, fabric: Fabric) -> dict[str, object]:
        return {**machine.versions(), "emulator": __version__, "switch": self.plan.switch,
                "datapath": fabric.datapath,
                "congestion_control": f"{self.congestion_control.name} ({self.congestion_control.source})", "clock": "real", "cpus": machine.cpus(),
                "system": platform.platform()}

    def _update(self, **values: object) -> None:
        self.outcome = replace(self.outcome, **values)


def _probes(plan: ProbePlan) -> list[Probe]:
    """Each pair from as many source ports as it takes to see every link."""
    return [Probe(source, destination, PROBE_PORTS + number if plan.ports > 1 else 0)
            for source, destination in plan.pairs for number in range(plan.ports)]


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


def _tail(path: Path, limit: int = 20000) -> str:
    try:
        return path.read_text(errors="replace")[-limit:]
    except FileNotFoundError:
        return ""


def run(plan: Plan, progress: Progress, folder: Path) -> Outcome:
    """Everything from building to reading; errors become part of the outcome. Captures go to `folder`."""
    return _guarded(Session(plan, progress, folder), Session.traffic)


def command_line(plan: Plan, progress: Progress, folder: Path) -> Outcome:
    """Build the fabric and give the terminal to Mininet's command line instead of the workload."""
    # imported here: Mininet's nodes bring setuptools in, half a second of a core that no other run needs
    from emulator.fabric.command_line import run_command_line
    from emulator.fabric.mininet_api import open_network

    def interact(session: Session, fabric: Fabric) -> None:
        print(f"{len(fabric.hosts)} hosts: {fabric.hosts[0].name} to {fabric.hosts[-1].name}. Try: nodes, links, "
              f"pingall, {fabric.hosts[0].name} ping -c 3 {fabric.hosts[-1].name}, dpctl dump-groups; exit ends the run.",
              flush=True)
        with session._captures(fabric):
            run_command_line(open_network(fabric))

    return _guarded(Session(plan, progress, folder), interact)


def _guarded(session: Session, act: Callable[[Session, Fabric], None]) -> Outcome:
    try:
        with session.fabric() as fabric:
            act(session, fabric)
    except EmulatorError as error:
        session.progress.done()
        session.outcome = replace(session.outcome, error=(error.exit_status, str(error)),
                                  interrupted=isinstance(error, Interrupted))
    return session.outcome
