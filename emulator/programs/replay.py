"""A program in place of the traffic engine: the same fabric, the same measuring, other traffic."""
from __future__ import annotations

import os
import time
from pathlib import Path

from emulator.bundle import RANKS
from emulator.errors import Interrupted
from emulator.programs.connections import Direction, connection, directions, messages
from emulator.programs.environment import base
from emulator.programs.hosts import name_hosts, use_congestion_control
from emulator.programs.marks import boundaries, iterations, notes
from emulator.programs.processes import Processes, user
from emulator.programs.records import ProgramResult
from emulator.programs.supervise import Supervisor
from emulator.replay import Replay
from emulator.sandbox.enter import ROOT
from emulator.units import show_size
from traffic.records import ConnectionKey, EngineResult

WORK = Path("/run/emulator-program")  # in the sandbox, so it goes with it


class ProgramSource:
    """The program of a plan as a source of traffic. Connections are known once it has run."""

    def __init__(self, replay: Replay) -> None:
        self._replay = replay
        plan, fabric, session = replay.plan, replay.fabric, replay.session
        self.sites = [fabric.site[plan.graph.hosts[index].name] for index in plan.program.placement]
        self._rank_of = {site.name: rank for rank, site in enumerate(self.sites)}
        self._processes = Processes(user())
        self._directions: list[Direction] = []
        ranks = len(self.sites)
        self._supervisor = Supervisor(
            plan.program, self.sites, session.folder / RANKS, WORK, plan.deadline_s,
            base(os.environ, str(ROOT), self._processes.user), self._processes,
            lambda running, received: replay.progress.update(
                f"{running} of {ranks} processes run, {show_size(received)} received"))

    @property
    def keys(self) -> list[ConnectionKey]:
        return [one.key for one in self._directions]

    def ports(self, number: int) -> tuple[int, int]:
        last = self._directions[number].account.last
        return last.local[1], last.remote[1]

    def connect(self, deadline_s: float) -> None:
        """Make hosts what programs expect; programs connect themselves."""
        WORK.mkdir(exist_ok=True)
        WORK.chmod(0o755)  # whatever root's umask is, the user's processes come here
        name_hosts(self._replay.fabric.hosts, WORK)
        use_congestion_control(self._replay.fabric, self._replay.session.congestion_control.name)

    def run(self) -> EngineResult:
        """The program to its end; never raises for a rank that fails or hangs."""
        self._supervisor.run()
        return self.seen()

    def seen(self) -> EngineResult:
        """What has happened so far; after a run, or one that was broken off."""
        watched = self._supervisor.seen
        self._directions = directions(watched.ledger, self._rank_of)
        return EngineResult(
            messages=messages(self._directions), connections=[connection(one) for one in self._directions],
            iterations=[] if watched.stuck else iterations(self._supervisor.marks.times_s, watched.started_s,
                                                           watched.ended_s),
            stuck=watched.stuck, received=watched.received,
            bytes_expected=sum(one.expected_bytes for one in self._directions),
            bytes_received=sum(one.arrived_bytes for one in self._directions))

    def window(self) -> tuple[float, float]:
        """When the measured part began and ended: from the first mark to the last, else all of the run."""
        watched, at = self._supervisor.seen, boundaries(self._supervisor.marks.times_s)
        if not at:
            return watched.started_s, watched.ended_s
        return at[0], at[-1] if len(at) > 1 else watched.ended_s

    def result(self) -> ProgramResult:
        """All but the traffic."""
        ledger = self._supervisor.seen.ledger
        return ProgramResult(
            tuple(self._supervisor.ends()), self._processes.user.name,
            self._cpu_s(), -(-len(ledger.between_hosts) // 2),
            ledger.local_connections(), ledger.congestion_controls(), self._supervisor.poll_s,
            self._supervisor.missed, len(boundaries(self._supervisor.marks.times_s)), self._notes())

    def _cpu_s(self) -> float:
        """Of all processes; those of an MPI program are no children of ours, but note their times."""
        ours = sum(child.cpu_s for child in self._processes.children)
        ranks = (end.cpu_s or 0.0 for end in self._supervisor.ends())
        return ours + (sum(ranks) if self._replay.plan.program.kind == "mpi" else 0.0)

    def _notes(self) -> tuple[str, ...]:
        asked = self._replay.session.congestion_control.name
        others = {name: count for name, count in self._supervisor.seen.ledger.congestion_controls().items()
                  if name != asked}
        said = (*self._supervisor.notes, *notes(self._supervisor.marks.times_s))
        if not others:
            return said
        listed = ", ".join(f"{count} with {name}" for name, count in others.items())
        chosen = (f"The program chose another congestion control than {asked} for some of its sockets: "
                  f"{listed}.")
        return (*said, chosen)

    def close(self) -> None:
        self._supervisor.close()


class ProgramReplay(Replay):
    """Runs the plan's program instead of replaying its workload."""

    PREPARING = "preparing hosts"

    def _engine(self) -> ProgramSource:
        return ProgramSource(self)

    def _replay(self, engine: ProgramSource, conductor: None) -> None:
        started = time.monotonic()
        try:
            result = engine.run()
        except Interrupted:
            result = engine.seen()
            self.session.update(interrupted=True)
        started, ended = engine.window() if result.iterations else (started, time.monotonic())
        self.session.update(engine=result, started_s=started, ended_s=ended, program=engine.result(),
                            paths=self._paths(engine), return_paths=self._return_paths(engine))
