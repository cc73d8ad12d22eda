"""Files of other tools as workloads: `simai:FILE`, `FILE.cm`, `chakra:DIR,map=pack`, …

A form is a name and a path, or a path with a suffix that tells, then options as `,key=value`.
"""
from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from emulator.errors import BadInput
from emulator.specs import Spec
from emulator.units import show_size
from traffic.expand import Scale, check_algorithm, expand
from traffic.importers.aicb import read_aicb
from traffic.importers.chakra import read_chakra
from traffic.importers.flows import flows_workload
from traffic.importers.goal import read_goal
from traffic.importers.hpcc import read_flows
from traffic.importers.htsim import read_cm
from traffic.importers.htsim_flows import cm_workload
from traffic.importers.simai import read_simai
from traffic.importers.torch_trace import read_torch
from traffic.mapping import check_map, pack, too_many
from traffic.schedule import Workload
from traffic.setting import Setting, count, values
from traffic.sizing import slices_for
from traffic.trace import MOST_RANKS, Trace, first_ranks

Values = dict[str, object]
FORMS = ("simai", "aicb", "chakra", "torch", "goal", "hpcc", "cm")
SUFFIXES = {".cm": "cm", ".goal": "goal"}
_OPTIONS = re.compile(r",(?=[a-z][a-z-]*=)")


@dataclass(frozen=True)
class FileSpec:
    """'simai:a.txt,map=pack' taken apart."""

    form: str
    path: str
    options: dict[str, str]


def file_spec(text: str) -> FileSpec | None:
    """The parts of a workload that names a file of another tool; None for any other workload."""
    whole, *items = _OPTIONS.split(text)
    form, colon, path = whole.partition(":")
    if not colon or form not in FORMS:
        suffix = next((suffix for suffix in SUFFIXES if whole.endswith(suffix)), None)
        if suffix is None:
            return None
        form, path = SUFFIXES[suffix], whole
    if not path:
        raise BadInput(f"workload {form} needs a file: {form}:FILE.")
    options: dict[str, str] = {}
    for item in items:
        key, _, value = item.partition("=")
        if key in options or not value:
            raise BadInput(f'workload "{text}": {key} is given twice or has no value.')
        options[key] = value
    return FileSpec(form, path, options)


def file_workload(spec: FileSpec, setting: Setting) -> Workload:
    """The workload in a file, scaled and placed on the hosts of the fabric."""
    what = f"workload {spec.form}"
    known: dict[str, Callable[[str], object]] = {"map": lambda text: check_map(what, text)}
    if spec.form not in ("cm", "hpcc", "goal"):
        known["algorithm"] = str
    if spec.form in ("simai", "aicb"):
        known["ranks"] = count(f"{what}: ranks", 2, MOST_RANKS)
    if spec.form == "chakra":
        known["groups"] = str
    v = values(Spec(spec.form, spec.options), known, {"warmup": 0, "algorithm": "ring"})
    scale = Scale(setting.dilation, setting.byte_scale)
    if spec.form == "cm":
        made = cm_workload(read_cm(spec.path), setting.hosts, setting.dilation, setting.byte_scale, v["map"],
                           setting.graph)
    elif spec.form == "hpcc":
        made = flows_workload(spec.path, read_flows(spec.path), setting.hosts, scale, v["map"])
    else:
        check_algorithm(what, v["algorithm"])
        made = _traced(_read(spec, v, setting), v, scale, setting)
    notes = (*made.notes, *_scaling(spec.path, setting, made))
    return Workload(spec.path, made.schedule, made.placement, v["iterations"], v["warmup"], notes=notes)


def _read(spec: FileSpec, v: Values, setting: Setting) -> Trace:
    if spec.form == "simai":
        return read_simai(spec.path, v["ranks"], setting.hosts)
    if spec.form == "aicb":
        return read_aicb(spec.path, v["ranks"])
    if spec.form == "chakra":
        return read_chakra(spec.path, v["groups"])
    return read_torch(spec.path) if spec.form == "torch" else read_goal(spec.path)


def _traced(trace: Trace, v: Values, scale: Scale, setting: Setting) -> Workload:
    """A trace on the hosts: rank r on host r, or as `map` says where there are more ranks than hosts."""
    ranks, hosts = len(trace.ranks), setting.hosts
    if ranks > hosts and v["map"] is None:
        raise too_many(trace.path, ranks, hosts)
    if ranks > hosts and v["map"] == "first":
        trace = first_ranks(trace, hosts)
        ranks = len(trace.ranks)
    schedule = expand(trace, scale, v["algorithm"],
                      lambda message_bytes, most: slices_for(message_bytes, most, setting))
    if ranks <= hosts:
        return Workload(trace.path, schedule, tuple(range(ranks)), notes=trace.notes)
    each = -(-ranks // hosts)
    packed, placement = pack(schedule, [rank // each for rank in range(ranks)])
    note = (f"{trace.path}: map=pack puts {each} ranks on each of {len(placement)} hosts; a rank of the "
            "result is such "
            f"a host, and {show_size(schedule.bytes_sent - packed.bytes_sent)} that its ranks send one "
            "another cost "
            "nothing.")
    return Workload(trace.path, packed, placement, notes=(*trace.notes, note))


def _scaling(path: str, setting: Setting, made: Workload) -> list[str]:
    """What became of sizes and times, in one sentence."""
    sent = show_size(made.schedule.bytes_sent)
    sizes = ("sizes are those of the file" if setting.byte_scale == 1 else
             f"sizes are divided by {setting.byte_scale:g} (a message keeps at least 1 byte)")
    times = ("times are those of the file" if setting.dilation == 1 else
             f"times are multiplied by {setting.dilation:g}")
    return [f"{path}: {sizes}, {times}; {sent} cross the fabric in an iteration."]
