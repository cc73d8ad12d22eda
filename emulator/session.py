"""One run inside its sandbox, by stages: fabric, switches under their controller, gate, traffic, reading.

Called by `emulator.inside` only. Every stage is bounded in time; what was measured before a stage failed
is still brought back.
"""
from __future__ import annotations

import platform
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from controllers.external import ExternalController, start_relay
from controllers.probes import ProbePlan, plan_probes
from controllers.process import RUN_DIR, ControllerProcess, start_controller
from controllers.routing import plan_tables
from emulator import __version__, machine, memory
from emulator.asic import switches as asic
from emulator.asic.cc import BPF_ALGORITHMS, CongestionControl, provide
from emulator.asic.napi import thread_receive
from emulator.delay import way as delay_way
from emulator.delay.netem import Netem
from emulator.delay.record import WAYS
from emulator.delay.relay import Relay
from emulator.errors import EmulatorError, Interrupted, MachineLacks, Unfinished
from emulator.fabric import build as fabric_build
from emulator.fabric import ovs as openvswitch
from emulator.fabric.build import Fabric
from emulator.fabric.gate import Probe, prove
from emulator.fabric.switches import Switches
from emulator.outcome import Outcome, Setup
from emulator.plan import Plan
from emulator.programs.replay import ProgramReplay
from emulator.progress import Progress
from emulator.replay import Replay, captures
from emulator.report.setup import line as setup_line
from emulator.runlog import compose


CONTROLLER_PORT = 6653
READY_TIMEOUT_S = 120.0
EXTERNAL_DEADLINE_S = 30.0
PROBE_PORTS = 10000


class Session:
    """The running fabric of one plan and what has been brought together so far (`outcome`)."""

    def __init__(self, plan: Plan, progress: Progress, folder: Path, outside: int) -> None:
        self.plan, self.progress, self.folder, self._outside = plan, progress, folder, outside
        self.outcome = Outcome()
        self.delay: Netem | Relay | None = None
        self.delay_way: delay_way.Way | None = None
        self.broken_off = ""
        self._logs: dict[str, str] = {}

    @contextmanager
    def fabric(self) -> Iterator[Fabric]:
        """A fabric that stands, whose switches hold their tables, and whose every path was proven."""
        plan, began, kernel_bytes = self.plan, time.monotonic(), memory.kernel()
        graph = plan.graph
        self.progress.stage(f"building {len(graph.hosts)} hosts, {len(graph.switches)} switches, "
                            f"{len(graph.links)} links")
        RUN_DIR.mkdir(parents=True, exist_ok=True)
        self.controller = self._controller()
        try:
            fabric = fabric_build.build(plan.fabric)
            if plan.wire.delay_s:
                self.delay_way = delay_way.choose()
                self.delay = delay_way.start(self.delay_way, fabric.spec, fabric.ports)
            self.switches = self._switches(fabric)
            self.congestion_control = self._congestion_control(fabric)
            up = time.monotonic()
            self.progress.stage("controller: tables into every switch, read back")
            self.controller.wait_ready(READY_TIMEOUT_S)
            self.progress.stage("gate: a probe over every link")
            self._prove(fabric)
            if plan.bit_error_rate:
                self.switches.set_bit_error_rate(plan.bit_error_rate)
            self.progress.done()
            setup = Setup(up - began, time.monotonic() - began, memory=self._memory(kernel_bytes))
            self.update(setup=setup, ports=fabric.ports, environment=self._environment(fabric))
            yield fabric
        finally:
            down = time.monotonic()
            self._logs["the controller"] = _text(self.controller.log)
            if hasattr(self, "congestion_control"):
                self.congestion_control.close()
            if hasattr(self, "switches"):
                self._logs["the switches"] = self.switches.log_tail()
                self.switches.stop()
            if self.delay:
                ended = self.delay.failure() or "It ran to the end."
                self._logs[f"--delay, by {WAYS[self.delay.WAY]}"] = ended
                self.delay.stop()
            self.controller.stop()
            if self.outcome.setup:
                self.update(setup=replace(self.outcome.setup, down_s=time.monotonic() - down))

    def _controller(self) -> ControllerProcess | ExternalController:
        plan = self.plan
        if plan.external:
            return start_relay(plan.external, self._outside, RUN_DIR, CONTROLLER_PORT)
        return start_controller(plan.graph, plan.experiment.routing, plan.experiment.seed, RUN_DIR,
                                CONTROLLER_PORT, plan.wire.rate_bps)

    def _prove(self, fabric: Fabric) -> None:
        """Probes over every link; under a controller whose tables nobody knows between every two racks, and
        again until its deadline."""
        plan, experiment = self.plan, self.plan.experiment
        if not plan.external:
            tables = plan_tables(plan.graph, experiment.routing, experiment.seed)
            prove(fabric, _probes(plan_probes(plan.graph, tables)))
            return
        pairs = _probes(plan_probes(plan.graph, plan_tables(plan.graph, "single", experiment.seed)))
        end_s = time.monotonic() + EXTERNAL_DEADLINE_S
        while True:
            try:
                prove(fabric, pairs)
                return
            except Unfinished as not_yet:
                if time.monotonic() > end_s:
                    raise Unfinished(f"The controller at {experiment.routing.partition(':')[2]} had not made "
                                     f"all paths after {EXTERNAL_DEADLINE_S:g} s. {not_yet}") from None

    def _memory(self, kernel_before: int) -> memory.Memory:
        """What this run takes; of the kernel's memory, what came since the start."""
        taken = memory.read()
        return replace(taken, kernel=taken.kernel - kernel_before)

    def _switches(self, fabric: Fabric) -> Switches:
        if self.plan.switch == "bpf":
            return asic.start(fabric, self.plan.queueing, self.plan.experiment.routing, CONTROLLER_PORT,
                              RUN_DIR, self.plan.classes)
        return openvswitch.start(fabric, CONTROLLER_PORT)

    def _congestion_control(self, fabric: Fabric) -> CongestionControl:
        """The kernel's, or ours as a BPF program; hosts then receive in threads, so no call is missed."""
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

    def _environment(self, fabric: Fabric) -> dict[str, object]:
        found = {**machine.versions(), "emulator": __version__}
        versions = {what: version for what, version in found.items() if what != "machine"}
        return {**found, "versions": versions, "link_delay": self.delay_way and str(self.delay_way),
                "switch": self.plan.switch, "datapath": fabric.datapath,
                "congestion_control": f"{self.congestion_control.name} ({self.congestion_control.source})",
                "reordering": ("tolerated: tcp_min_rtt_wlen=0" if fabric.spec.reorders
                               else "as the kernel does"), "clock": "real", "cpus": machine.cpus(),
                "system": platform.platform()}

    @property
    def log(self) -> str:
        """The text of log.txt."""
        notes = (self.broken_off, self.outcome.switch_failure, *self.outcome.link_faults)
        return compose(self.progress.stages, "\n".join(filter(None, notes)), self._logs)

    def update(self, **values: object) -> None:
        self.outcome = replace(self.outcome, **values)


def _probes(plan: ProbePlan) -> list[Probe]:
    """Each pair from as many source ports as it takes to see every link."""
    return [Probe(source, destination, PROBE_PORTS + number if plan.ports > 1 else 0)
            for source, destination in plan.pairs for number in range(plan.ports)]


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except FileNotFoundError:
        return ""


def run(plan: Plan, progress: Progress, folder: Path, outside: int) -> Outcome:
    """Everything from building to reading; errors become part of the outcome. Captures go to `folder`."""
    return _guarded(Session(plan, progress, folder, outside), _work)


def _work(session: Session, fabric: Fabric) -> None:
    """The plan's program or, where it has none, the replay of its workload."""
    if session.plan.program:
        ProgramReplay(session, fabric).run()
    else:
        Replay(session, fabric).run()


def command_line(plan: Plan, progress: Progress, folder: Path, outside: int) -> Outcome:
    """Build the fabric and give the terminal to Mininet's command line instead of the workload."""
    # imported here: Mininet's nodes bring setuptools in, half a second of a core that no other run needs
    from emulator.fabric.command_line import run_command_line
    from emulator.fabric.mininet_api import open_network

    def interact(session: Session, fabric: Fabric) -> None:
        first, last = fabric.hosts[0].name, fabric.hosts[-1].name
        print(f"{len(fabric.hosts)} hosts: {first} to {last}. Try: nodes, links, pingall, {first} ping -c 3 "
              f"{last}, dpctl dump-groups; exit ends the run.", flush=True)
        if plan.events:
            print("Nothing is replayed here, so none of the events that were asked for happens; link A B "
                  "down and link A B up do it by hand.", flush=True)
        s = session.outcome.setup
        used = s.memory
        print(setup_line(s.up_s, s.ready_s, used.processes, used.largest, used.kernel), flush=True)
        with captures(session, fabric):
            run_command_line(open_network(fabric), switches=session.switches)

    return _guarded(Session(plan, progress, folder, outside), interact)


def _guarded(session: Session, act: Callable[[Session, Fabric], None]) -> Outcome:
    try:
        with session.fabric() as fabric:
            act(session, fabric)
    except EmulatorError as error:
        session.broken_off = str(error)
        session.update(log=session.log, error=(error.exit_status, str(error)),
                       interrupted=isinstance(error, Interrupted))
        session.progress.done()
    else:
        session.update(log=session.log)
    return session.outcome
