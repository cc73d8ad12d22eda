"""Several jobs on one fabric: whose hosts are whose, and all of them as one workload."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from emulator.errors import BadInput, nearest
from emulator.job_entry import JobEntry
from topologies.graph import Graph
from traffic.schedule import Job, Kind, Op, Schedule, Workload
from traffic.setting import Setting, check_class, duration

Resolve = Callable[[str, Setting], Workload]
"""(--workload's text, setting) -> workload"""


def resolve_jobs(entries: Sequence[JobEntry], setting: Setting, resolve: Resolve) -> Workload:
    """The workload of all jobs; BadInput with one sentence where they cannot be together.

    A job without hosts of its own takes those that are left, in the fabric's order. Jobs that follow
    one another (`after`) may have the same hosts, others only where the later one says `share`.
    """
    names = [entry.name or f"job{number + 1}" for number, entry in enumerate(entries)]
    if "all" in names:
        raise BadInput('jobs: none can be called "all", which is what --only calls all of them.')
    twice = next((name for number, name in enumerate(names) if name in names[:number]), None)
    if twice is not None:
        raise BadInput(f'jobs: two are called "{twice}"; name each differently.')
    after = [_after(name, entry.after, names[:number]) if entry.after else None
             for number, (name, entry) in enumerate(zip(names, entries))]
    wanted = [numbered_hosts(f"job {name}", entry.hosts, setting.graph)
              for name, entry in zip(names, entries)]
    jobs: list[Job] = []
    for number, (entry, name) in enumerate(zip(entries, names)):
        taken = {} if entry.share else {host: job.name for other, job in enumerate(jobs) if other not in
                                        _chain(number, after) for host in job.workload.placement}
        promised = {host for other in range(number + 1, len(names)) for host in wanted[other]
                    if not entries[other].share and number not in _chain(other, after)}
        both = next((host for host in wanted[number] if host in taken), None)
        if both is not None:
            raise BadInput(f"jobs {taken[both]} and {name} both want host {setting.graph.hosts[both].name}; "
                           "give them other hosts, or share: yes to the later one.")
        pool = wanted[number] or [host for host in range(setting.hosts)
                                  if host not in taken and host not in promised]
        workload = _on(pool, entry, name, setting, resolve)
        first = sum(job.ranks for job in jobs)
        jobs.append(Job(name, workload, first, _start_s(entry, name, workload, setting), after[number]))
    return together(jobs)


def together(jobs: Sequence[Job]) -> Workload:
    """One workload whose schedule has the ranks of all jobs, one job after the other."""
    ranks = [tuple(_shifted(op, job.first_rank) for op in ops)
             for job in jobs for ops in job.workload.schedule.ranks]
    name = f"{len(jobs)} jobs: {', '.join(job.name for job in jobs)}"
    placement = tuple(host for job in jobs for host in job.workload.placement)
    notes = tuple(f"Job {job.name}: {note}" for job in jobs for note in job.workload.notes)
    return Workload(name, Schedule(name, tuple(ranks)), placement, notes=notes, jobs=tuple(jobs))


def chosen(workload: Workload, only: str) -> frozenset[int] | None:
    """The numbers of the jobs that --only names; None for all of them."""
    if only == "all":
        return None
    names = [job.name for job in workload.parts]
    if not workload.jobs:
        raise BadInput(f'--only "{only}" chooses among several jobs, and there is one workload; leave it '
                       "out.")
    if only not in names:
        raise BadInput(f'--only "{only}" is not one of several jobs{nearest(only, ["all", *names])}.')
    return frozenset({names.index(only)})


def restricted(graph: Graph, pool: Sequence[int]) -> Graph:
    """The fabric with the hosts of `pool` alone, in that order; switches and links between them stay."""
    hosts = tuple(graph.hosts[number] for number in pool)
    absent = set(graph.host) - {host.name for host in hosts}
    links = tuple(link for link in graph.links if link.a not in absent and link.b not in absent)
    return replace(graph, hosts=hosts, links=links)


def numbered_hosts(what: str, names: Sequence[str], graph: Graph) -> list[int]:
    """The hosts of ['h1-h4', 'h9'] as indices, each once."""
    number = {host.name: index for index, host in enumerate(graph.hosts)}
    found: list[int] = []
    for name in names:
        low, dash, high = name.partition("-")
        ends = [name, name] if name in number or not dash else [low.strip(), high.strip()]
        for end in ends:
            if end not in number:
                raise BadInput(f'{what}: {graph.name} has no host "{end}"{nearest(end, number)}.')
        span = range(number[ends[0]], number[ends[1]] + 1)
        if not span:
            raise BadInput(f'{what}: hosts "{name}" end before they begin.')
        found += span
    twice = next((host for place, host in enumerate(found) if host in found[:place]), None)
    if twice is not None:
        raise BadInput(f"{what}: host {graph.hosts[twice].name} is named twice.")
    return found


def _chain(number: int, after: Sequence[int | None]) -> set[int]:
    """The jobs that have ended when this one begins, and itself."""
    found: set[int] = set()
    at: int | None = number
    while at is not None:
        found.add(at)
        at = after[at]
    return found


def _on(pool: Sequence[int], entry: JobEntry, name: str, setting: Setting, resolve: Resolve) -> Workload:
    """The job's workload on the hosts of `pool`, placed on the whole fabric."""
    if len(pool) < 2:
        raise BadInput(f"job {name}: of {setting.hosts} hosts {len(pool)} are left for it; give the jobs "
                       "before it fewer ranks (ranks=…), name hosts=…, or use a larger fabric.")
    try:
        workload = resolve(entry.workload, replace(setting, graph=restricted(setting.graph, pool)))
    except BadInput as error:
        raise BadInput(f"job {name}: {error}") from None
    check_class(f"job {name}", entry.traffic_class, setting)
    if entry.traffic_class:
        workload = _in_class(workload, entry.traffic_class)
    if workload.jobs:
        raise BadInput(f'job {name}: "{entry.workload}" is several jobs by itself; list them one by one.')
    return replace(workload, placement=tuple(pool[host] for host in workload.placement))


def _start_s(entry: JobEntry, name: str, workload: Workload, setting: Setting) -> float:
    """When it begins, in emulated seconds: a model's start is stretched as all of its times are."""
    stretched = replace(setting, dilation=workload.target.time_scale) if workload.target else setting
    return duration(f"job {name}: start", stretched)(entry.start) or 0.0


def _in_class(workload: Workload, name: str) -> Workload:
    """The workload with all its messages in one class."""
    def classed(op: Op) -> Op:
        return replace(op, traffic_class=name) if op.kind in (Kind.SEND, Kind.RECV) else op

    ranks = tuple(tuple(map(classed, ops)) for ops in workload.schedule.ranks)
    return replace(workload, schedule=replace(workload.schedule, ranks=ranks))


def _after(name: str, after: str, before: Sequence[str]) -> int:
    if after == "previous" and before:
        return len(before) - 1
    if after not in before:
        raise BadInput(f'job {name}: after "{after}" is not the name of a job listed before it'
                       f"{nearest(after, ['previous', *before])}.")
    return before.index(after)


def _shifted(op: Op, first: int) -> Op:
    """The operation of a job among the ranks of all jobs."""
    if not first:
        return op
    return replace(op, peer=op.peer + first if op.peer >= 0 else op.peer,
                   triggers=tuple((rank + first, index) for rank, index in op.triggers))
