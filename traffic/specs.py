"""The --workload option: from text to a Workload that is sized, placed and checked."""
from __future__ import annotations

from dataclasses import replace

from emulator.errors import BadInput, nearest
from emulator.specs import Spec, parse_spec
from topologies.graph import Graph
from traffic import crossrack, patterns
from traffic.catalogue import WORKLOADS
from traffic.check import check_schedule
from traffic.collective_specs import ALGORITHMS, barrier, collective, servers_of
from traffic.file_specs import file_spec, file_workload
from traffic.importers.hedera import hedera_pairs, hedera_workload, read_hedera
from traffic.llm.files import read_job
from traffic.llm.specs import llm
from traffic.offered import loads, sized, traffic_classes
from traffic.placement import place
from traffic.schedule import Workload
from traffic.setting import Setting, count, duration, size, values
from traffic.sizing import GOAL_S, Figures, job, pattern_bytes, slices_for
from traffic.sweep import is_sweep, sweep

IN_JOB_FILES = (*ALGORITHMS, "barrier", "pipeline", "training", "llm", "pattern")
"""What a job file can describe."""


def resolve_workload(text: str, setting: Setting) -> Workload:
    """The workload that `text` names, on this fabric; every slip is a BadInput of one sentence.

    What comes back has passed `check_schedule`. Sizes that are left out make one iteration's ideal
    time about ten seconds. The forms are in WORKLOADS.
    """
    if setting.dilation <= 0 or setting.byte_scale <= 0:
        raise BadInput(f"the dilation ({setting.dilation}) and the byte scale ({setting.byte_scale}) must be "
                       "more than zero.")
    workload = _resolve(text.strip(), setting)
    for part in workload.parts:
        check_schedule(part.workload.schedule, setting.hosts)
    return replace(workload, name=text.strip())


def _resolve(text: str, setting: Setting) -> Workload:
    name, _, rest = text.partition(":")
    if name == "hedera":
        return _hedera(rest, setting)
    if (file := file_spec(text)) is not None:
        return file_workload(file, setting)
    if name == "pattern":
        # the one key that needs no value
        rest = ",".join("random-bijection=yes" if item.strip() == "random-bijection" else item
                        for item in rest.split(","))
        return _spec(parse_spec(f"{name}:{rest}" if rest else name, "workload"), setting)
    if name in ("job", text) and text.startswith(("job:", "job ")):
        return _of_job_file(text[len("job "):].strip(), setting)
    return _spec(parse_spec(text, "workload"), setting)


def _spec(spec: Spec, setting: Setting) -> Workload:
    if spec.name in ALGORITHMS:
        return sweep(spec, lambda one: _noted(one, setting)) if is_sweep(spec) else _noted(spec, setting)
    if spec.name == "barrier":
        return barrier(spec, setting)
    if spec.name in ("pipeline", "training"):
        return _job(spec, setting)
    if spec.name == "llm":
        return llm(spec, setting)
    if spec.name == "pattern":
        return _pattern(spec, setting)
    example = {each.name: each.example for each in WORKLOADS}
    if spec.name in example:
        raise BadInput(f"workload {spec.name} needs a file: {example[spec.name]}.")
    raise BadInput(f'Unknown workload "{spec.name}"{nearest(spec.name, example)}.')


def _of_job_file(path: str, setting: Setting) -> Workload:
    """What a job file describes; a file of another tool is no description and is named by itself."""
    spec = read_job(path)
    if spec.name not in IN_JOB_FILES:
        direct = next((f"; name its file directly (--workload {each.example})" for each in WORKLOADS
                       if each.name == spec.name), "")
        raise BadInput(f'{path}: a job file describes no workload "{spec.name}"'
                       f"{direct or nearest(spec.name, IN_JOB_FILES)}.")
    return _spec(spec, setting)


def _noted(spec: Spec, setting: Setting) -> Workload:
    """A collective, and where its bytes go in its notes: between racks, to servers."""
    workload = collective(spec, setting)
    sentence = crossrack.note(workload, setting.graph)
    if spec.name == "parameterserver":
        ranks = len(workload.placement)
        sentence = crossrack.server_note(ranks, servers_of(spec.params, ranks))
    return replace(workload, notes=(*workload.notes, sentence)) if sentence else workload


def _job(spec: Spec, setting: Setting) -> Workload:
    """A pipeline, or data-parallel replicas of one."""
    what, is_training = f"workload {spec.name}", spec.name == "training"
    known = {"stages": count(f"{what}: stages", 1), "microbatches": count(f"{what}: microbatches", 1, 10_000),
             "activation": size(f"{what}: activation", setting), "placement": str,
             "forward": duration(f"{what}: forward", setting),
             "backward": duration(f"{what}: backward", setting)}
    if is_training:
        known |= {"replicas": count(f"{what}: replicas", 1), "gradient": size(f"{what}: gradient", setting),
                  "slices": count(f"{what}: slices", 1, 1024), "channels": count(f"{what}: channels", 1, 64)}
    v = values(spec, known, {"stages": min(4, setting.hosts), "microbatches": 8, "warmup": 1,
                             "placement": "linear", "channels": 1})
    stages = v["stages"]
    replicas = (v["replicas"] or max(1, setting.hosts // stages)) if is_training else 1
    if stages * replicas < 2:
        raise BadInput(f"{what}: one rank has nobody to send to; give it more stages or replicas.")
    placement = place(v["placement"], stages * replicas, setting.graph.hosts, setting.seed)
    figures = Figures(v["activation"], v.get("gradient"), v["forward"], v["backward"])
    filled = job(stages, replicas, v["microbatches"], figures, is_training, placement, setting)
    slices = v.get("slices") or slices_for(filled.gradient_bytes // replicas // v["channels"], 4, setting)
    schedule = filled.schedule(slices, v["channels"])
    return Workload(spec.name, schedule, placement, v["iterations"], v["warmup"])


def _pattern(spec: Spec, setting: Setting) -> Workload:
    what, hosts = "workload pattern", setting.hosts
    kinds = ("stride", "pair", "incast", "random-bijection", "staggered")
    v = values(spec, {
        "stride": count(f"{what}: stride", 1), "pair": _pair, "incast": count(f"{what}: incast", 1),
        "random-bijection": _yes, "staggered": _staggered, "bytes": size(f"{what}: bytes", setting),
        "flows": count(f"{what}: flows", 1, 1024), "time": duration(f"{what}: time", setting),
        "class": traffic_classes(setting), "load": loads},
        {"flows": 1, "warmup": 0, "class": ("",), "load": (1.0,)})
    given = [kind for kind in kinds if v[kind] is not None]
    if len(given) != 1:
        found = " and ".join(given) or "none"
        raise BadInput(f'{what} "{spec}" must name one of {", ".join(kinds)}, not {found}; for example '
                       "pattern:stride=1.")
    kind = given[0]
    if kind == "stride":
        pairs = patterns.stride(hosts, v["stride"])
    elif kind == "pair":
        pairs = patterns.pair(hosts, *v["pair"])
    elif kind == "incast":
        pairs = patterns.incast(hosts, v["incast"])
    elif kind == "staggered":
        pairs = patterns.staggered(*_places(setting.graph), *v["staggered"], setting.seed)
    else:
        pairs = patterns.random_bijection(hosts, setting.seed)
    if v["time"] == 0:
        raise BadInput(f'{what} "{spec}": in no time nothing is sent; give a time above zero.')
    if v["bytes"] and v["time"]:
        raise BadInput(f'{what} "{spec}": bytes and time both say how much is sent; give one of them.')
    sizes, paces = sized(pairs, v["load"], v["bytes"], v["time"] or GOAL_S, setting)
    schedule, placement = patterns.flows(kind, pairs, sizes, v["flows"], None, v["class"], paces)
    return Workload(spec.name, schedule, placement, v["iterations"], v["warmup"])


def _pair(text: str) -> tuple[int, int]:
    source, dash, destination = text.partition("-")
    if not (dash and source.isdecimal() and destination.isdecimal()):
        raise BadInput(f'workload pattern: pair "{text}" is not two host numbers from 0, such as 0-2.')
    return int(source), int(destination)


def _staggered(text: str) -> tuple[float, float]:
    edge, dash, pod = text.partition("-")
    try:
        return float(edge), float(pod if dash else "")
    except ValueError:
        raise BadInput(f'workload pattern: staggered "{text}" is not two probabilities, of the same rack and '
                       f"of the same pod, such as 0.2-0.3.") from None


def _places(graph: Graph) -> tuple[list[str], list[object]]:
    """The rack and the pod of each host; a switch of no pod is a pod of its own."""
    racks = [host.rack for host in graph.hosts]
    pods = [graph.switch[rack].pod if graph.switch[rack].pod >= 0 else rack for rack in racks]
    return racks, pods


def _yes(text: str) -> bool:
    if text != "yes":
        raise BadInput(f'workload pattern: random-bijection takes no value, not "{text}".')
    return True


def _hedera(path: str, setting: Setting) -> Workload:
    if not path:
        raise BadInput("workload hedera needs a file: hedera:FILE.")
    lines = read_hedera(path)
    pairs = hedera_pairs(path, lines, setting.graph)
    return hedera_workload(path, lines, pairs, pattern_bytes(pairs, setting), setting.dilation)
