"""Spoilt files for every importer: `python -m tests.traffic.fuzz [CASES] [FORMAT …]`.

Each case mutates a valid file (bits, numbers, lines, whole pieces) and imports it. It must be read with
as many ranks as the file says, or refused in a sentence; no other exception, no hang, no explosion.
"""
from __future__ import annotations

import random
import re
import resource
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from emulator.errors import BadInput
from tests.traffic import samples
from topologies.graph import Graph, Host, Link, Switch
from topologies.hpcc_topo import read_hpcc_topo
from topologies.htsim_topo import read_topo
from traffic.importers.aicb import read_aicb
from traffic.importers.cdf import read_points
from traffic.importers.chakra import read_chakra
from traffic.importers.goal import read_goal
from traffic.importers.hpcc import read_flows
from traffic.importers.htsim import read_cm
from traffic.importers.simai import read_simai
from traffic.importers.torch_trace import read_torch
from traffic.importers.hedera import read_hedera
from traffic.setting import Setting
from traffic.specs import resolve_workload

LONGEST_S = 60
MOST_MEMORY_BYTES = 4 << 30
HOSTS = 4
Files = dict[str, bytes]
"""name -> content; a single file has the name of its format"""
NUMBERS = (b"0", b"-1", b"nan", b"inf", b"1e309", b"1e18", b"4294967296", b"99999999999999999999", b"1_000", b"0x10",
           b"4095", b"", "٣".encode(), b"1.5", b"18446744073709551615", b"9" * 5000)


@dataclass(frozen=True)
class Format:
    """How files of a format are read. `ranks` reads the count back from a success; `expected` finds it
    in the file by itself, None where it cannot tell."""

    bases: list[Files]
    read: Callable[[str], object]
    ranks: Callable[[object], int] | None = None
    expected: Callable[[Files], int | None] | None = None
    workload: str = ""


def star() -> Graph:
    """Four hosts on a switch."""
    hosts = tuple(Host(f"h{i + 1}", i, f"10.0.0.{i + 1}", f"02:00:00:00:00:{i:02x}", "s1") for i in range(HOSTS))
    links = tuple(Link(i, f"h{i + 1}", 0, "s1", i + 1, 1.0, "host-switch") for i in range(HOSTS))
    return Graph("star", hosts, (Switch("s1", 1, 0, "edge", 0),), links)


def _said(pattern: bytes, add: int = 0) -> Callable[[Files], int | None]:
    def find(files: Files) -> int | None:
        match = re.search(pattern, next(iter(files.values())))
        return int(match[1]) + add if match else None

    return find


def _nodes(trace: object) -> int:
    flows = getattr(trace, "flows", trace)
    return len({node for flow in flows for node in (flow.source, flow.destination)})


def _nodes_said(pattern: bytes) -> Callable[[Files], int | None]:
    def find(files: Files) -> int:
        lines = re.sub(rb"(?m)^\s*#.*$", b"", next(iter(files.values())))
        return len({int(node) for pair in re.findall(pattern, lines) for node in pair})

    return find


def _simai_said(files: Files) -> int:
    match = re.search(rb"all_gpus:?\s+0*([1-9][0-9]*)", next(iter(files.values())))
    return int(match[1]) if match else HOSTS


def _count(trace: object) -> int:
    return len(trace.ranks)


def formats() -> dict[str, Format]:
    """All of them, with the public files where they are there."""
    def text(name: str, content: str, *patterns: str) -> list[Files]:
        public = [file for pattern in patterns for file in sorted(samples.DATA.glob(pattern))]
        return [{name: content.encode()}] + [{name: file.read_bytes()} for file in public]

    runs = [{file.name: file.read_bytes() for file in sorted(run.glob("*.et"))}
            for run in sorted(samples.DATA.glob("chakra/*"))]
    return {
        "cm": Format(text("cm", samples.CM, "htsim/*.cm"), read_cm, _nodes, _nodes_said(
            rb"(?m)^\s*([0-9]+)->([0-9]+)\s"), "cm:{},map=pack"),
        "goal": Format(text("goal", samples.GOAL, "goal/*"), read_goal, _count, _said(rb"num_ranks\s+([0-9]+)"),
                       "goal:{},map=first"),
        "simai": Format(text("simai", samples.SIMAI, "simai/*"), lambda path: read_simai(path, None, HOSTS), _count,
                        _simai_said, "simai:{},map=first"),
        "aicb": Format(text("aicb", samples.AICB, "aicb/*"), lambda path: read_aicb(path, None), _count,
                       _said(rb"^\s*\[rank0+ ~ rank([0-9]+)\]", 1), "aicb:{},map=first"),
        "chakra": Format([samples.chakra(), *runs], read_chakra, _count,
                         lambda files: sum(name.endswith(".et") for name in files), "chakra:{},map=first"),
        "torch": Format([{f"trace_{rank}.json": make(rank) for rank in range(4)} for make in (
            samples.torch_trace, samples.timeline, lambda rank: samples.torch_trace(rank, messages=True))],
            read_torch, _count, len, "torch:{},map=first"),
        "torch-file": Format([{"torch-file": samples.torch_trace()}], read_torch, workload="torch:{},map=pack"),
        "hpcc": Format(text("hpcc", samples.FLOWS), read_flows, _nodes, _nodes_said(
            rb"(?m)^[ \t]*([0-9]+)[ \t]+([0-9]+)[ \t]+[0-9]+[ \t]+[0-9]+[ \t]+[0-9]+"), "hpcc:{},map=pack"),
        "cdf": Format(text("cdf", samples.CDF), read_points),
        "hedera": Format(text("hedera", "10.0.0.2 10.1.1.2 12345 TCP 1 0.0 60.0 100000 random\n", "hedera/inputs/*"),
                         read_hedera),
        "topo": Format(text("topo", samples.TOPO, "htsim/*.topo", "uec/*.topo"), lambda path: read_topo(Path(path)),
                       lambda fabric: len(fabric.graph.hosts), _said(rb"(?mi)^\s*nodes\s+([0-9]+)")),
        "hpcc-topo": Format(text("hpcc-topo", samples.TOPOLOGY), read_hpcc_topo),
    }


def mutate(content: bytes, rng: random.Random) -> bytes:
    """One to three random changes."""
    for _ in range(rng.choice((1, 1, 2, 3))):
        content = _change(content, rng)
    return content


def _change(content: bytes, rng: random.Random) -> bytes:
    if not content:
        return content
    at = rng.randrange(len(content))
    kind = rng.randrange(9)
    if kind == 0:  # a bit
        return content[:at] + bytes([content[at] ^ 1 << rng.randrange(8)]) + content[at + 1:]
    if kind == 1:  # a byte
        return content[:at] + bytes([rng.randrange(256)]) + content[at + 1:]
    if kind == 2:  # a piece goes
        return content[:at] + content[at + rng.choice((1, 1, 3, 20)):]
    if kind == 3:  # a piece comes again
        return content[:at] + content[at:at + rng.choice((1, 5, 40))] * 2 + content[at:]
    if kind == 4:  # the rest is gone
        return content[:at]
    if kind in (5, 6):  # a number becomes another one
        found = [match.span() for match in re.finditer(rb"[0-9]+", content)]
        if not found:
            return content
        start, end = rng.choice(found)
        return content[:start] + rng.choice(NUMBERS) + content[end:]
    lines = content.split(b"\n")
    one, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    if kind == 7:  # two lines change places
        lines[one], lines[other] = lines[other], lines[one]
    else:  # a line is copied elsewhere or goes
        lines[one:one + 1] = [] if rng.random() < 0.5 else [lines[one], lines[other]]
    return b"\n".join(lines)


class TooLong(BaseException):
    """The case took longer than anybody waits; no `except Exception` may catch it."""


def _alarm(*_: object) -> None:
    raise TooLong


def attempt(form: Format, files: Files, folder: Path, setting: Setting) -> str:
    """'read', 'refused' or what went wrong."""
    for name, content in files.items():
        (folder / name).write_bytes(content)
    path = str(folder if len(files) > 1 else folder / next(iter(files)))
    signal.signal(signal.SIGALRM, _alarm)
    signal.alarm(LONGEST_S)
    try:
        made = form.read(path)
        if form.ranks and form.expected:
            expected = form.expected(files)
            if expected is not None and form.ranks(made) != expected:
                return f"{form.ranks(made)} ranks where the file has {expected}"
        if form.workload:
            resolve_workload(form.workload.format(path), setting)
    except BadInput as error:
        said = str(error)
        sentence = said.endswith(".") and "\n" not in said and len(said) < 1000
        return "refused" if sentence else f"no sentence: {said[:300]}"
    except TooLong:
        return f"longer than {LONGEST_S} s"
    except Exception as error:  # noqa: BLE001  this is what the test looks for
        return f"{type(error).__name__}: {str(error)[:200]}"
    finally:
        signal.alarm(0)
    return "read"


def fuzz(name: str, form: Format, cases: int, keep: Path | None = None) -> Counter[str]:
    """How often each outcome came; files of a bad one are kept in `keep`."""
    setting, outcomes = Setting(star(), 10e6, 1500, 1), Counter()
    for case in range(cases):
        rng = random.Random(f"{name} {case}")
        files = dict(form.bases[case % len(form.bases)])
        spoilt = rng.choice(sorted(files))
        files[spoilt] = mutate(files[spoilt], rng)
        with tempfile.TemporaryDirectory(prefix="fuzz") as folder:
            outcome = attempt(form, files, Path(folder), setting)
        if outcome not in ("read", "refused"):
            outcome = f"case {case}: {outcome}"
            if keep:
                (keep / f"{name}-{case}-{spoilt}").write_bytes(files[spoilt])
        outcomes[outcome] += 1
    return outcomes


def main(arguments: list[str]) -> int:
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY_BYTES, MOST_MEMORY_BYTES))
    cases = int(arguments[0]) if arguments else 1000
    known = formats()
    keep = Path(tempfile.mkdtemp(prefix="fuzz-kept"))
    bad = 0
    for name in arguments[1:] or known:
        outcomes = fuzz(name, known[name], cases, keep)
        faults = {what: count for what, count in outcomes.items() if what not in ("read", "refused")}
        bad += sum(faults.values())
        print(f"{name}: {cases} cases, {outcomes['refused']} refused in a sentence, {outcomes['read']} read, "
              f"{sum(faults.values())} faults", flush=True)
        for what in list(faults)[:10]:
            print(f"    {what}")
    if bad:
        print(f"the files of the faults are in {keep}")
    else:
        keep.rmdir()
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
