"""A program's run from its start to its end: ranks started, watched, ended when one fails or time is up."""
from __future__ import annotations

import os
import select
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from emulator.errors import EmulatorError
from emulator.fabric.spec import HostSite
from emulator.programs import environment as told
from emulator.programs import mpi
from emulator.programs.connections import Ledger
from emulator.programs.diagnosis import Situation, crashed, signal_name
from emulator.programs.marks import Marks
from emulator.programs.processes import Child, Processes
from emulator.programs.records import RankEnd
from emulator.programs.spec import Program
from emulator.telemetry.counters import protocol_counters
from emulator.telemetry.tcp_sockets import SocketWatch

POLL_S = 0.1
POLL_PER_HOST_S = 0.003  # a dump costs some 50 us, so watching costs less than 2 % of a core
LINGER_S = 2.0  # for what the kernel still has to deliver once all processes have ended
_TAIL_BYTES = 4096


@dataclass
class Watched:
    """What has been seen so far. received: (time, payload bytes received over the fabric) at each poll."""

    ledger: Ledger
    received: list[tuple[float, int]] = field(default_factory=list)
    stuck: list[str] = field(default_factory=list)
    started_s: float = 0.0
    ended_s: float = 0.0


class Supervisor:
    """Runs `program` on sites[r] for rank r. `output`: where rank0.out, rank0.err, … go; `work`: a
    directory of the sandbox's own. `report` hears (ranks that run, payload bytes received)."""

    def __init__(self, program: Program, sites: Sequence[HostSite], output: Path, work: Path,
                 deadline_s: float, base: dict[str, str], processes: Processes,
                 report: Callable[[int, int], None]) -> None:
        self.program, self.sites, self.output, self.work = program, sites, output, work
        self.deadline_s, self.base, self.processes, self._report = deadline_s, base, processes, report
        self.poll_s = max(POLL_S, POLL_PER_HOST_S * len(sites))
        self.seen = Watched(Ledger({site.ip: site.name for site in sites}))
        self.notes: list[str] = []
        self._watches: dict[str, SocketWatch] = {}
        output.mkdir(exist_ok=True)
        self.marks = Marks(work / "marks", len(sites))
        self._server: mpi.AgentServer | None = None
        self._due_s = 0.0

    @property
    def missed(self) -> int:
        """Ends of sockets that the kernel could not tell us of."""
        return sum(watch.missed for watch in self._watches.values())

    def run(self) -> None:
        """To the end: of all ranks, of the first that fails, or of the time. Nothing runs afterwards."""
        self._watches = {site.name: SocketWatch(site.netns) for site in self.sites}
        self._before = self._refusals()
        self.seen.started_s = time.monotonic()
        try:
            self._start()
            self._watch(self.seen.started_s + self.deadline_s)
        finally:
            self.seen.ended_s = time.monotonic()
            self.processes.end()
            self._linger()
            self._collect_mpi()

    def close(self) -> None:
        """Let go of everything; ends what may still run."""
        self.processes.end()
        if self._server:
            self._server.close()
        for watch in self._watches.values():
            watch.close()
        self.marks.close()

    def ends(self) -> list[RankEnd]:
        """How each rank ended, in order of rank."""
        if self.program.kind == "mpi":
            by_rank = mpi.statuses(self._mpi_ranks, len(self.sites))
            return [self._end(rank, *by_rank.get(rank, (None, None))) for rank in range(len(self.sites))]
        children = {child.rank: child for child in self.processes.children}
        return [self._end_of(children[rank]) if rank in children else self._end(rank, None, None)
                for rank in range(len(self.sites))]

    # ---------------------------------------------------------------- start

    def _start(self) -> None:
        if self.program.kind == "mpi":
            self._start_mpi()
            return
        for rank, site in enumerate(self.sites):
            environment = {**self.base, **told.of_rank(self.program, self.sites, rank),
                           "FABRIC_MARKS": str(self.marks.path(rank))}
            self._child(rank, site, told.filled(self.program, self.sites, rank), environment, f"rank{rank}")

    def _start_mpi(self) -> None:
        self._mpi_ranks.mkdir()
        self._mpi_ranks.chmod(0o777)
        self._server = mpi.AgentServer(self.work, self._start_on)
        preload = mpi.polite(self.work)
        if preload is None:
            self.notes.append("No C compiler makes idle MPI ranks sleep (sudo apt-get install gcc): they "
                              "poll and take whole cores, so the check idle fails.")
        argv = mpi.command(self.program, self.sites, self._server.agent, self._mpi_ranks, preload)
        self._child(None, self.sites[0], argv, self._host_environment(self.sites[0]), "mpirun")

    def _start_on(self, host: str, command: str, files: tuple[int, int, int]) -> Child:
        """A daemon of mpirun on its host, as its agent asks for it."""
        site = next(site for site in self.sites if site.name == host)
        return self.processes.start(None, site, ["sh", "-c", command], self._host_environment(site), files)

    def _host_environment(self, site: HostSite) -> dict[str, str]:
        return {**self.base, **told.of_host(self.program, site), "MASTER_ADDR": self.sites[0].ip,
                "HOSTS": ",".join(site.ip for site in self.sites)}

    def _child(self, rank: int | None, site: HostSite, argv: Sequence[str], environment: dict[str, str],
               name: str) -> None:
        with open(os.devnull, "rb") as nothing, open(self.output / f"{name}.out", "wb") as out, \
                open(self.output / f"{name}.err", "wb") as err:
            self.processes.start(rank, site, argv, environment,
                                 (nothing.fileno(), out.fileno(), err.fileno()))

    @property
    def _mpi_ranks(self) -> Path:
        return self.work / "ranks"

    # ---------------------------------------------------------------- watch

    def _watch(self, end_s: float) -> None:
        # what the launcher of an MPI program starts ends with it; of all others every process counts
        ours = list(self.processes.children)
        while any(not child.reap() for child in ours):
            now_s = time.monotonic()
            if now_s >= end_s:
                self.seen.stuck = self._late(now_s - self.seen.started_s)
                return
            self._wait(ours, min(end_s, max(self._due_s, now_s + 0.001)) - now_s)
            if time.monotonic() >= self._due_s:
                self._poll()
                self._report(sum(child.status is None for child in ours), self.seen.ledger.received_bytes)
            if any(child.reap() and child.status for child in ours):
                break
        failed = [child for child in ours if child.status]
        if failed:
            self.seen.stuck = [self._failure(failed), *self._situation().unreachable()]

    def _wait(self, ours: Sequence[Child], timeout_s: float) -> None:
        """Until a process ends, a mark or an agent comes, or time is over; marks and agents are served."""
        poller = select.poll()
        pidfds = [child.pidfd for child in ours if child.status is None]
        served = self._server.descriptors if self._server else []
        for descriptor in (*pidfds, *self.marks.descriptors, *served):
            poller.register(descriptor, select.POLLIN)
        for descriptor, _ in poller.poll(1000 * timeout_s):
            if descriptor in self.marks.descriptors:
                self.marks.read(descriptor)
        if self._server:
            self._server.serve()

    def _poll(self) -> None:
        """Look at all sockets; first at those that went, whose last word is final."""
        now_s = time.monotonic()
        for host, watch in self._watches.items():
            self.seen.ledger.seen(host, watch.now(), now_s)
            for one in watch.gone():
                self.seen.ledger.gone(host, one, now_s)
        self.seen.received.append((now_s, self.seen.ledger.received_bytes))
        self._due_s = now_s + self.poll_s

    def _linger(self) -> None:
        """Sockets outlive their processes until their data is delivered."""
        for descriptor in self.marks.descriptors:
            self.marks.read(descriptor)
        end_s = time.monotonic() + LINGER_S
        self._poll()
        while not self.seen.ledger.settled and time.monotonic() < end_s:
            time.sleep(self.poll_s)
            self._poll()

    # ---------------------------------------------------------------- judge

    def _refusals(self) -> dict[str, tuple[int, int]]:
        """host -> (connections that were refused to it, resets that it sent), by its stack's counters."""
        found = {}
        for site in self.sites:
            counters = protocol_counters(site.netns)
            found[site.name] = counters["Tcp.AttemptFails"], counters["Tcp.OutRsts"]
        return found

    def _situation(self) -> Situation:
        """How everything stands now."""
        self._poll()
        self.seen.ledger.refused = {host: (fails - self._before[host][0], resets - self._before[host][1])
                                    for host, (fails, resets) in self._refusals().items()}
        return Situation(self.sites, self.seen.ledger)

    def _late(self, elapsed_s: float) -> list[str]:
        situation = self._situation()
        if self.program.kind == "mpi":
            ended = mpi.statuses(self._mpi_ranks, len(self.sites))
        else:
            ended = {child.rank for child in self.processes.children if child.status is not None}
        still = [situation.running(rank, elapsed_s) for rank in range(len(self.sites)) if rank not in ended]
        return [*still, *situation.unreachable()] or [f"mpirun still ran after {elapsed_s:.1f} s"]

    def _failure(self, failed: Sequence[Child]) -> str:
        """About the first rank that failed."""
        if self.program.kind != "mpi":
            return crashed(self._end_of(failed[0]))
        by_rank = mpi.statuses(self._mpi_ranks, len(self.sites))
        first = next((rank for rank, (status, _) in by_rank.items() if status), None)
        if first is not None:
            return crashed(self._end(first, *by_rank[first]))
        return (f"mpirun on {self.sites[0].name} ended with exit status {failed[0].status}: "
                f"{last_line(self.output / 'mpirun.err')}")

    def _end_of(self, child: Child) -> RankEnd:
        return self._end(child.rank, None if child.ended_by_us else child.status, child.cpu_s)

    def _end(self, rank: int, status: int | None, cpu_s: float | None) -> RankEnd:
        folder = self._mpi_ranks if self.program.kind == "mpi" else self.output
        name = "" if status is None else signal_name(status)
        said = last_line(folder / f"rank{rank}.err")
        return RankEnd(rank, self.sites[rank].name, status, name, cpu_s, said)

    def _collect_mpi(self) -> None:
        """Bring the output of MPI's ranks into the bundle."""
        if self.program.kind != "mpi":
            return
        for rank in range(len(self.sites)):
            for kind in ("out", "err"):
                made = self._mpi_ranks / f"rank{rank}.{kind}"
                if made.exists():
                    shutil.copyfile(made, self.output / made.name)


def last_line(path: Path) -> str:
    """The last line of a file that is not blank; '' where there is none."""
    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL_BYTES))
            lines = file.read().decode(errors="replace").split("\n")
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise EmulatorError(f"{path} cannot be read: {error.strerror}.") from error
    return next((line.strip() for line in reversed(lines) if line.strip()), "")
