"""`--run KIND COMMAND…`: from words to a Program, checked and placed. Pure but for looking up files.

KIND is `each`, `torchrun` or `mpi`, with parameters as every SPEC has them: `torchrun:ranks=8,connections=4`.
"""
from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from emulator.errors import BadInput, nearest
from emulator.programs.placeholders import NAMES, check_placeholders
from emulator.sandbox.mounts import EMPTY
from emulator.specs import parse_spec, take, whole
from topologies.graph import Host
from traffic.patterns import flows
from traffic.placement import place
from traffic.schedule import Workload

MASTER_PORT = 29500  # torchrun's default
MOST_CONNECTIONS = 64
NAME_LENGTH = 80


@dataclass(frozen=True)
class Kind:
    """One way to start a program. `parameters` are (key, meaning with unit, default)."""

    name: str
    about: str
    parameters: tuple[tuple[str, str, str], ...]


_PLACED = (("ranks", "number of processes, one a host", "all hosts"),
           ("placement", "linear: rank r on host r; random: seeded by --seed", "linear"))
_PORT = ("port", "MASTER_PORT", str(MASTER_PORT))
_CONNECTIONS = ("connections", "of gloo between two ranks: how often GLOO_SOCKET_IFNAME names the "
                "interface", "1")
_ALL = (
    Kind("each", f"the command on every rank's host; {' '.join(f'{{{name}}}' for name in NAMES)} in its "
                 "words are filled in", (*_PLACED, _CONNECTIONS, _PORT)),
    Kind("torchrun", "a Python script with torchrun's environment",
         (*_PLACED, _CONNECTIONS, _PORT, ("python", "the interpreter", "the emulator's own"))),
    Kind("mpi", "an MPI program under Open MPI's mpirun",
         (*_PLACED, ("connections", "of MPI between two ranks", "1"))))
KINDS: dict[str, Kind] = {kind.name: kind for kind in _ALL}


@dataclass(frozen=True)
class Program:
    """What runs. placement[r] is the index of the host of rank r; `command` is argv without the launcher.

    connections: how many a pair of ranks shall have, where the program's library leaves that open.
    """

    kind: str
    command: tuple[str, ...]
    placement: tuple[int, ...]
    connections: int = 1
    port: int = MASTER_PORT
    python: str = ""

    @property
    def name(self) -> str:
        """'torchrun train.py --epochs 3', as a person reads it: one line, not too long."""
        line = " ".join(f"{self.kind} {shlex.join(self.command)}".split())
        return line if len(line) <= NAME_LENGTH else f"{line[:NAME_LENGTH - 1]}…"

    @property
    def folders(self) -> tuple[Path, ...]:
        """What the program needs to find of the user's files: where its script lies and what its words name.

        A file that lies directly in a folder that a run makes its own (/tmp) comes alone.
        """
        there = [Path(word).resolve() for word in self.command if os.path.exists(word)]
        alone = [*map(Path, EMPTY), Path("/")]
        return tuple(dict.fromkeys(path if path.is_dir() or path.parent in alone else path.parent
                                   for path in there))


def words(value: object) -> tuple[str, ...]:
    """The words of `run:` in a file: a list, or one line as a shell would split it."""
    if isinstance(value, str):
        try:
            return tuple(shlex.split(value))
        except ValueError as error:
            raise ValueError(f"cannot be split into words: {error}") from None
    if isinstance(value, (list, tuple)) and all(
            isinstance(word, (str, int, float)) and not isinstance(word, bool) for word in value):
        return tuple(str(word) for word in value)
    raise ValueError("is neither a line nor a list of words")


def with_files(listed: Sequence[str], found: Callable[[str], str | None]) -> tuple[str, ...]:
    """The words, those after the first that look like a file as found(word), where that is not None."""
    return tuple(word if not number or not (set("./") & set(word)) else found(word) or word
                 for number, word in enumerate(listed))


def resolve_program(listed: Sequence[str], hosts: Sequence[Host], seed: int) -> Program:
    """Check `--run` on a fabric of these hosts; every slip is a BadInput of one sentence."""
    spec = parse_spec(listed[0], "--run")
    if spec.name not in KINDS:
        raise BadInput(f'--run "{spec.name}" is not a way to start a program{nearest(spec.name, KINDS)}; '
                       "write --run KIND COMMAND….")
    command = tuple(listed[1:])
    if not command or not command[0]:
        raise BadInput(f"--run {listed[0]} names no command; write, for instance: "
                       f"--run {spec.name} ./program.")
    if any("\0" in word for word in command):
        raise BadInput("--run: a word of the command holds a zero byte.")
    check_placeholders(spec.name, command, filled=spec.name != "mpi")
    parsers: Mapping[str, Callable[[str], object]] = {
        "ranks": whole(1, 100_000), "placement": str, "connections": whole(1, MOST_CONNECTIONS),
        "port": whole(1, 65535), "python": str}
    known = {key: parsers[key] for key, _, _ in KINDS[spec.name].parameters}
    given = take(spec, "--run", known)
    placement = place(given.pop("placement", "linear"), given.pop("ranks", len(hosts)), hosts, seed)
    if spec.name == "torchrun":
        python = _executable(given.pop("python", sys.executable), "--run torchrun: python")
        if not command[0].startswith("-") and not os.path.isfile(command[0]):
            raise BadInput(f'--run torchrun: there is no script "{command[0]}"; torchrun takes a '
                           'Python file.')
        return Program(spec.name, command, placement, python=python, **given)
    _executable(command[0], f"--run {spec.name}")
    return Program(spec.name, command, placement, **given)


def stand_in(program: Program) -> Workload:
    """A load that a program hardly exceeds: each rank sends all the time to the one half-way round."""
    placement, ranks = program.placement, len(program.placement)
    pairs = [(placement[r], placement[(r + ranks // 2) % ranks]) for r in range(ranks)] if ranks > 1 else []
    return Workload(program.name, *flows(program.kind, pairs, [1_000_000] * len(pairs)))


def _executable(name: str, what: str) -> str:
    """`name`, if there is such a program."""
    if "{" not in name and shutil.which(name) is None:
        if os.path.isdir(name):
            raise BadInput(f'{what}: "{name}" is a directory; name a program in it.')
        if os.path.isfile(name):
            raise BadInput(f'{what}: "{name}" is not executable; chmod +x it, or name its interpreter first.')
        where = f"it is not in PATH={os.environ.get('PATH', '')}" if os.sep not in name else "no such file"
        raise BadInput(f'{what}: there is no program "{name}" ({where}).')
    return name
