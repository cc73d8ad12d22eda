"""MPI programs: Open MPI's mpirun on rank 0's host, which starts its daemons on the others through `agent`.

mpirun believes that it starts daemons by ssh (plm_rsh_agent); the agent asks us to do it, because we may
enter namespaces. Control connections and messages are TCP over the fabric (oob_tcp, btl_tcp), and the
shared memory of what is one machine stays unused (btl self,tcp). Parameters: `ompi_info --all`, Open MPI 4.
"""
from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from emulator.errors import MachineLacks
from emulator.fabric.build import NETWORK, PREFIX
from emulator.fabric.spec import HostSite
from emulator.programs.placeholders import fill
from emulator.programs.processes import Child
from emulator.programs.spec import Program

_AGENT, _POLITE = Path(__file__).with_name("agent.py"), Path(__file__).with_name("polite.c")
_MOST_BYTES = 1 << 17
_VERSION_S = _COMPILE_S = 20.0
_COMPILERS = ("cc", "gcc", "clang")
# each rank notes its output, its exit status and its CPU times where we find them; $1 is the directory,
# $2 what to preload
_WRAPPER = ('d=$1; p=$2; shift 2; r=$OMPI_COMM_WORLD_RANK; export RANK="$r" '
            'WORLD_SIZE="$OMPI_COMM_WORLD_SIZE" LOCAL_RANK=0 FABRIC_MARKS="$d/../marks/rank$r"; '
            'LD_PRELOAD="$p" "$@" >"$d/rank$r.out" 2>"$d/rank$r.err" </dev/null; '
            's=$?; { echo $s; times; } >"$d/rank$r.part"; mv "$d/rank$r.part" "$d/rank$r.status"; exit $s')


def require() -> None:
    """Raise MachineLacks unless mpirun is Open MPI 4."""
    if shutil.which("mpirun") is None:
        raise MachineLacks("--run mpi needs Open MPI; install it with: sudo apt-get install openmpi-bin")
    said = subprocess.run(["mpirun", "--version"], capture_output=True, text=True, timeout=_VERSION_S,
                          env={**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1",
                               "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"})
    found = re.search(r"\(Open MPI\) (\d+)\.", said.stdout)
    if not found or found[1] != "4":
        first = (said.stdout or said.stderr).strip().partition("\n")[0]
        raise MachineLacks(f'--run mpi works with Open MPI 4, but mpirun here is "{first}"; install it with: '
                           "sudo apt-get install openmpi-bin, or choose it by: "
                           "sudo update-alternatives --config mpirun")


def polite(directory: Path) -> Path | None:
    """A library that lets idle ranks sleep instead of poll (polite.c), made in `directory`.

    None without a compiler.
    """
    compiler = next((found for name in _COMPILERS if (found := shutil.which(name))), None)
    if compiler is None:
        return None
    made = directory / "polite.so"
    done = subprocess.run([compiler, "-O2", "-shared", "-fPIC", "-o", str(made), str(_POLITE)],
                          capture_output=True, text=True, timeout=_COMPILE_S)
    if done.returncode:
        return None
    made.chmod(0o755)
    return made


def command(program: Program, sites: Sequence[HostSite], agent: Path, ranks: Path,
            preload: Path | None) -> list[str]:
    """mpirun's argv; `ranks` is where each rank's output and status go."""
    fabric = f"{NETWORK}/{PREFIX}"
    parameters = {
        "plm": "rsh", "plm_rsh_agent": str(agent), "plm_rsh_no_tree_spawn": "1", "pml": "ob1",
        "btl": "self,tcp",
        "btl_tcp_if_include": fabric, "oob_tcp_if_include": fabric, "btl_tcp_links": str(program.connections),
        "mpi_yield_when_idle": "1", "rmaps_base_oversubscribe": "1"}
    listed = [word for key, value in parameters.items() for word in ("--mca", key, value)]
    own = [fill(word, {}) for word in program.command]
    root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    return ["mpirun", *root, "-np", str(len(sites)), "--host", ",".join(f"{site.name}:1" for site in sites),
            "--map-by", "node", "--bind-to", "none", *listed,
            "sh", "-c", _WRAPPER, "rank", str(ranks), str(preload or ""), *own]


class AgentServer:
    """Where agents ask for a process on a host, and hear how it ended."""

    def __init__(self, directory: Path, start: Callable[[str, str, tuple[int, int, int]], Child]) -> None:
        """start(host, command, standard files) starts a shell's command on a host."""
        self._start, where = start, directory / "agent.sock"
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._listener.bind(str(where))
        where.chmod(0o666)
        self._listener.listen(1024)
        self._listener.setblocking(False)
        self._waiting: list[tuple[socket.socket, Child]] = []
        self.agent = directory / "agent"  # a script: mpirun splits its agent at blanks
        self.agent.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -S "{_AGENT}" "{where}" "$@"\n')
        self.agent.chmod(0o755)

    @property
    def descriptors(self) -> list[int]:
        """To wait on."""
        return [self._listener.fileno()]

    def serve(self) -> None:
        """Start what is asked for now, and tell those who wait for a process that has ended."""
        while True:
            try:
                line, _ = self._listener.accept()
            except BlockingIOError:
                break
            line.settimeout(5.0)
            data, files, _, _ = socket.recv_fds(line, _MOST_BYTES, 3)
            host, text = json.loads(data)
            try:
                self._waiting.append((line, self._start(host, text, tuple(files))))
            finally:
                for descriptor in files:
                    os.close(descriptor)
        for line, child in [entry for entry in self._waiting if entry[1].reap()]:
            self._waiting.remove((line, child))
            try:
                line.send(str(child.status if child.status >= 0 else 128 - child.status).encode())
            except (BrokenPipeError, ConnectionResetError):  # the agent was ended meanwhile
                pass
            line.close()

    def close(self) -> None:
        for line, _ in self._waiting:
            line.close()
        self._listener.close()


def statuses(directory: Path, ranks: int) -> Mapping[int, tuple[int, float]]:
    """(exit status, as a shell says it, CPU seconds) of the ranks that ended by themselves.

    In order of their ends.
    """
    found = [(path.stat().st_mtime_ns, rank, path.read_text()) for rank in range(ranks)
             if (path := directory / f"rank{rank}.status").exists()]
    return {rank: parse_status(text) for _, rank, text in sorted(found)}


def parse_status(text: str) -> tuple[int, float]:
    """What the wrapper wrote: the status, the shell's own times, its children's ('0m1.25s', POSIX times)."""
    status, *times = text.split()
    spent = (re.fullmatch(r"(\d+)m([\d.]+)s", word) for word in times)
    return int(status), sum(60 * int(one[1]) + float(one[2]) for one in spent if one)
