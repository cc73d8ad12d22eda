"""The command line: options by group, and nothing else. Errors are one sentence, never the usage text."""
from __future__ import annotations

import argparse
import json
import re
import shutil
import sys
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NoReturn

from controllers.routing import EXTERNAL, ROUTINGS
from emulator import __version__
from emulator.crosstable import CrossTable, reference_runs, table_of
from emulator.errors import BadInput
from emulator.events.spec import ABOUT as EVENTS_ABOUT
from emulator.experiment import Experiment, make, option_name, read_file, schema
from emulator.matrix import Run, expand
from emulator.programs.spec import KINDS
from emulator.stdout import printing
from topologies.catalog import FILE_ABOUT, FILE_SPEC, HPCC_ABOUT, HPCC_SPEC, TOPO_ABOUT, TOPO_SPEC, TOPOLOGIES
from traffic.catalogue import WORKLOADS

DEFAULT_OUT = "results"
LEAST_HELP_COLUMNS = 40


@dataclass(frozen=True)
class Invocation:
    """What was asked on the command line: at least one run. dated: `out` is not the user's, but the time."""

    runs: list[Run]
    table: CrossTable | None
    out: str
    dated: bool
    force: bool
    dry_run: bool
    cli: bool
    quiet: bool


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f'"{text}" is not a whole number') from None


def _number_or_auto(text: str) -> float | str:
    try:
        return text if text == "auto" else float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f'"{text}" is neither a number nor auto') from None


class _Schema(argparse.Action):
    """--schema: print and leave, as --version does."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> NoReturn:
        parser._print_message(f"{json.dumps(schema(), indent=1)}\n", sys.stdout)
        parser.exit()


class _Parser(argparse.ArgumentParser):
    def _print_message(self, message: str, file: Any = None) -> None:
        with printing():
            super()._print_message(message, file)

    def error(self, message: str) -> NoReturn:
        raise BadInput(f"{message[0].upper()}{message[1:]}; --help lists the options.")


def _lines(rows: Iterable[tuple[str, str]]) -> str:
    """Two columns for the help text, folded at the terminal's width; a long first one gets its own line."""
    room = max(LEAST_HELP_COLUMNS, shutil.get_terminal_size().columns - 36)
    listed = []
    for spec, about in rows:
        gap = f"\n{'':<34}" if len(spec) > 31 else " " * (32 - len(spec))
        folded = textwrap.wrap(about, room, break_long_words=False, break_on_hyphens=False)
        listed.append(f"  {spec}{gap}" + f"\n{'':<34}".join(folded))
    return "\n".join(listed)


def _parameters(listed: Iterable[tuple[str, str, str]]) -> list[tuple[str, str]]:
    return [(f"    {key}", f"{meaning} (default: {default})") for key, meaning, default in listed]


def _catalogue() -> str:
    """Topologies, routings and workloads, from the packages that make them."""
    topologies = [(t.spec, t.about) for t in TOPOLOGIES.values()] + [
        (FILE_SPEC, FILE_ABOUT), (TOPO_SPEC, TOPO_ABOUT), (HPCC_SPEC, HPCC_ABOUT)]
    routings = [(routing.spec, routing.about) for routing in (*ROUTINGS.values(), EXTERNAL)]
    workloads = []
    for w in WORKLOADS:
        workloads.append((w.example, w.meaning))
        workloads += _parameters(w.parameters)
    programs = []
    for kind in KINDS.values():
        programs.append((kind.name, kind.about))
        programs += _parameters(kind.parameters)
    return (f"topologies\n{_lines(topologies)}\n\nroutings\n{_lines(routings)}\n\n"
            f"workloads, by example, each with its parameters\n{_lines(workloads)}\n\n"
            f"programs (--run KIND:key=value,… COMMAND), each kind with its parameters\n{_lines(programs)}")


def parser() -> argparse.ArgumentParser:
    """The parser; options left out are absent from its result, so a file's values hold."""
    made = _Parser(
        prog="python -m emulator.run", argument_default=argparse.SUPPRESS, allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Run a training job's traffic on an emulated fabric and say whether to\n"
                    "trust the numbers.",
        epilog=f"{_catalogue()}\n\n"
               "Sizes: kB MB GB, KiB MiB GiB. Rates: kbit mbit gbit. Times: ns us ms s.\n"
               "Exit status: 0 done and trusted, 2 bad input, 3 the machine lacks something,\n"
               "4 the workload did not finish, 5 the fidelity verdict is fail, 130 interrupted.")
    made.add_argument("experiment", nargs="?", metavar="EXPERIMENT.yaml",
                      help="an experiment file; options override it (default: a k=4 fat-tree, see below)")
    fields = Experiment.model_fields

    def add(group: Any, name: str, metavar: str, kind: Any = str, text: str = "") -> None:
        field = fields[name.replace("-", "_")]
        group.add_argument(f"--{name}", metavar=metavar, type=kind,
                           help=f"{text or field.description} (default: {field.default})".replace("%", "%%"))

    what = made.add_argument_group("what runs")
    add(what, "topology", "SPEC")
    add(what, "routing", "NAME")
    add(what, "workload", "SPEC")
    add(what, "switch", "KIND")
    what.add_argument("--job", metavar="SPEC", action="append", dest="jobs",
                      help="one of several jobs (give it again for each): a workload, then '; name=… ; "
                           "start=TIME ; after=JOB ; hosts=h1-h4 ; class=NAME ; share=yes'")
    add(what, "only", "JOB")
    add(what, "background", "SPEC")
    what.add_argument("--run", nargs=argparse.REMAINDER, metavar="KIND COMMAND",
                      help="a real program on every host instead of a workload: all words that follow; KIND "
                           f"is {', '.join(KINDS)}, see below")
    link = made.add_argument_group("links and hosts")
    add(link, "rate", "RATE")
    add(link, "buffer", "SIZE|TIME")
    add(link, "ecn", "SIZE")
    add(link, "delay", "TIME")
    add(link, "loss", "RATE")
    add(link, "classes", "TABLE")
    add(link, "mtu", "N", _whole, "IP packet size in bytes")
    add(link, "cc", "NAME")
    scale = made.add_argument_group("scale")
    add(scale, "target-rate", "RATE")
    add(scale, "dilation", "K", _number_or_auto)
    add(scale, "byte-scale", "S", _number_or_auto)
    how = made.add_argument_group("how it runs")
    add(how, "seed", "N", _whole)
    add(how, "repeat", "N", _whole)
    add(how, "deadline", "TIME")
    how.add_argument("--event", metavar="EVENT", action="append", dest="events",
                     help=f'"{EVENTS_ABOUT}"; may be given several times'.replace("%", "%%"))
    how.add_argument("--verify", action="store_true", help="real sums and checksums on the payload")
    how.add_argument("--pcap", metavar="PORT[,PORT]", help="capture these ports into DIR/PORT.pcap")
    how.add_argument("--cli", action="store_true",
                     help="Mininet's command line on the fabric instead of the workload")
    how.add_argument("--dry-run", action="store_true",
                     help="print the plan and check all input; needs no root")
    result = made.add_argument_group("results")
    result.add_argument("--out", metavar="DIR",
                        help=f"where the result bundle goes (default: {DEFAULT_OUT}/DATE-TIME)")
    result.add_argument("--force", action="store_true", help="replace an earlier bundle in DIR")
    result.add_argument("--quiet", action="store_true", help="no progress, only the result")
    made.add_argument("--schema", action=_Schema, nargs=0,
                      help="print the JSON schema of experiment files and exit")
    made.add_argument("--version", action="version", version=f"emulator {__version__}")
    return made


def parse(argv: list[str], default_file: str, now: str) -> Invocation:
    """From arguments to an Invocation; BadInput with one sentence for anything wrong.

    default_file is the experiment that runs when neither file nor topology nor workload is named;
    `now` names the default result folder.
    """
    given = vars(parser().parse_args(joined(argv)))
    for name in ("out", "pcap", "experiment"):
        if given.get(name) == "":
            raise BadInput(f"{name if name == 'experiment' else f'--{name}'} is an empty name.")
    invocation = {key: given.pop(key, default) for key, default in
                  (("out", ""), ("force", False), ("dry_run", False), ("cli", False), ("quiet", False))}
    file = given.pop("experiment", None)
    if file is None and not {"topology", "workload", "jobs", "run"} & set(given):
        file = default_file
    if given.get("run") == []:
        raise BadInput("--run names no program; write: --run each COMMAND….")
    if "pcap" in given:
        given["pcap"] = tuple(name.strip() for name in given["pcap"].split(","))
    if "jobs" in given:
        given["jobs"] = tuple(given["jobs"])
    given = {option_name(key): value for key, value in given.items()}
    values = read_file(file) if file else {}
    overridden = set(given) & set(values.get("matrix") or {})
    if overridden:
        raise BadInput(f"--{overridden.pop()} is also in the matrix of {file}; leave one of them out.")
    make(given)  # so that a slip in an option is not blamed on the file
    values.update(given)
    where = file or "the options"
    table, runs = table_of(values, where), reference_runs(values, where) + expand(values, where)
    named = invocation.pop("out")
    if invocation["cli"] and len(runs) > 1:
        raise BadInput("--cli works on one fabric, but the experiment has several runs.")
    if invocation["cli"] and not sys.stdin:
        raise BadInput("--cli needs standard input.")
    return Invocation(runs=runs, table=table, out=named or f"{DEFAULT_OUT}/{now}", dated=not named,
                      **invocation)


def joined(argv: list[str]) -> list[str]:
    """'--rate -5mbit' as '--rate=-5mbit': argparse would take a negative value for an option."""
    made: list[str] = []
    for place, word in enumerate(argv):
        if word == "--run":  # what follows is a program's
            return made + argv[place:]
        if made and re.match(r"-[0-9.]", word) and re.fullmatch(r"--[a-z-]+", made[-1]):
            made[-1] += f"={word}"
        else:
            made.append(word)
    return made
