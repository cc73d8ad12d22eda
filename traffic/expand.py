"""A trace as a Schedule: collectives become the messages of an algorithm, times and sizes are scaled."""
from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace

from emulator.errors import BadInput, nearest
from traffic.collective_specs import ALGORITHMS
from traffic.collectives import pairwise
from traffic.embed import Embedder
from traffic.program import MOST_OPERATIONS, Program
from traffic.schedule import Kind, Op, Schedule
from traffic.trace import Does, Step, Trace

SlicesFor = Callable[[int, int], int]
"""(bytes of a message, most slices) -> slices"""


@dataclass(frozen=True)
class Scale:
    """Times are multiplied by `dilation`, sizes divided by `byte_scale`; a message keeps one byte."""

    dilation: float = 1.0
    byte_scale: float = 1.0

    def size(self, size_bytes: int) -> int:
        return max(1, round(size_bytes / self.byte_scale))


def check_algorithm(what: str, algorithm: str) -> None:
    """BadInput unless some collective has an algorithm of this name that needs only ranks and bytes."""
    known = {name for each in ALGORITHMS.values() for name, entry in each.items() if entry.build}
    if algorithm not in known:
        raise BadInput(f'{what} has no algorithm "{algorithm}"{nearest(algorithm, known)}.')


def expand(trace: Trace, scale: Scale, algorithm: str = "ring",
           slices_for: SlicesFor = lambda message_bytes, most: 1) -> Schedule:
    """The schedule of a trace. Collectives that have no `algorithm` use their default one.

    The k-th collective of a group is the k-th at each of its members; BadInput, with the place in the
    file, where members disagree, where a message has no other end, and for zero bytes.
    """
    _check_messages(trace)
    program = Program(len(trace.ranks))
    embedder = Embedder(program)
    ends: list[list[int]] = [[-1] * len(steps) for steps in trace.ranks]
    made: dict[tuple[str, int, int], Schedule] = {}
    pending: list[tuple[int, int, tuple[int, ...]]] = []  # (rank, operation, steps that it waits for)
    operations = 0
    for rank, steps in enumerate(trace.ranks):
        for index, step in enumerate(steps):
            if step.does is not Does.COLLECTIVE:
                ends[rank][index] = op = program.append(rank, _plain(step, scale))
                pending.append((rank, op, step.deps))
    for place in _instances(trace):
        first = trace.ranks[place[0][0]][place[0][1]]
        entries = []
        for rank, index in place:
            entry = program.compute(rank, 0.0, (), first.phase, 0)
            pending.append((rank, entry, trace.ranks[rank][index].deps))
            entries.append(entry)
        if len(place) == 1:  # alone in its group: nothing to send
            ends[place[0][0]][place[0][1]] = entries[0]
            continue
        members = [rank for rank, _ in place]
        if first.root >= 0:  # the algorithms start at their rank 0
            turn = members.index(first.root)
            members, entries = members[turn:] + members[:turn], entries[turn:] + entries[:turn]
            place = place[turn:] + place[:turn]
        key = (first.collective, len(members), scale.size(first.size_bytes))
        if key not in made:
            made[key] = _build(*key, algorithm, slices_for)
        operations += sum(len(ops) for ops in made[key].ranks)
        if operations > MOST_OPERATIONS:
            raise trace.slip(place[0][0], first, f"the trace needs more than {MOST_OPERATIONS} operations; "
                                                 "use "
                                                 "fewer ranks (map=first on a smaller fabric).")
        through = embedder.embed(made[key], members, entries, first.phase or first.collective,
                                 first.traffic_class)
        for (rank, index), end in zip(place, through):
            ends[rank][index] = end
    for rank, op, deps in pending:
        if deps:
            waits = tuple(dict.fromkeys(ends[rank][dep] for dep in deps))
            program.ops[rank][op] = replace(program.ops[rank][op], deps=waits)
    schedule = program.schedule(trace.path)
    if not schedule.bytes_sent:
        raise BadInput(f"{trace.path} makes no rank send anything to another; nothing would be emulated.")
    return schedule


def _plain(step: Step, scale: Scale) -> Op:
    """A compute, send or receive as an operation, its dependencies still to come."""
    if step.does is Does.COMPUTE:
        return Op(Kind.COMPUTE, duration_s=step.duration_s * scale.dilation, phase=step.phase)
    kind = Kind.SEND if step.does is Does.SEND else Kind.RECV
    return Op(kind, (), step.peer, scale.size(step.size_bytes), 2 * step.tag + 1, 0, phase=step.phase,
              traffic_class=step.traffic_class if kind is Kind.SEND else "")


def _build(collective: str, ranks: int, size_bytes: int, algorithm: str, slices_for: SlicesFor) -> Schedule:
    if collective == "barrier":
        return pairwise.barrier(ranks)
    algorithms = ALGORITHMS[collective]
    chosen = algorithms.get(algorithm) or next(iter(algorithms.values()))
    chosen = chosen if chosen.build else next(iter(algorithms.values()))
    if ranks * ranks > MOST_OPERATIONS // 2 and collective not in ("broadcast", "reduce"):
        raise BadInput(f"a {collective} over {ranks} ranks needs more than {MOST_OPERATIONS} operations; use "
                       "fewer ranks (map=first on a smaller fabric).")
    slices = slices_for(size_bytes // chosen.parts(ranks), min(4, chosen.most_slices))
    return chosen.build(ranks, size_bytes, slices, 1)


def _instances(trace: Trace) -> list[list[tuple[int, int]]]:
    """The (rank, index of the step) of each member, in the group's order, of every collective."""
    count: dict[tuple[int, tuple[int, ...]], int] = defaultdict(int)
    found: dict[tuple[tuple[int, ...], int], dict[int, int]] = {}
    for rank, steps in enumerate(trace.ranks):
        for index, step in enumerate(steps):
            if step.does is not Does.COLLECTIVE:
                continue
            if rank not in step.group:
                raise trace.slip(rank, step, f"rank {rank} takes part in a {step.collective} of a group that "
                                             "it does not belong to.")
            number = count[rank, step.group]
            count[rank, step.group] = number + 1
            found.setdefault((step.group, number), {})[rank] = index
    places = []
    for (group, number), index_of in found.items():
        place = [(rank, index_of[rank]) for rank in group if rank in index_of]
        rank, index = place[0]
        first = trace.ranks[rank][index]
        missing = next((member for member in group if member not in index_of), None)
        if missing is not None:
            raise trace.slip(rank, first, f"rank {missing} never joins this {first.collective}, the group's "
                                          f"number {number + 1}; all of its {len(group)} ranks have to.")
        for other, at in place:
            step = trace.ranks[other][at]
            if ((step.collective, step.size_bytes, step.root)
                    != (first.collective, first.size_bytes, first.root)):
                raise trace.slip(other, step, f"rank {other} has a {step.collective} of {step.size_bytes} "
                                              "bytes "
                                              f"where rank {rank} has a {first.collective} of "
                                              f"{first.size_bytes}.")
        if first.size_bytes < 1 and first.collective != "barrier":
            raise trace.slip(rank, first, f"a {first.collective} of 0 bytes sends nothing.")
        places.append(place)
    return places


def _check_messages(trace: Trace) -> None:
    """Every send has its receive, of the same size; the k-th of a tag matches the k-th."""
    ends: dict[tuple[int, int, int], tuple[list[Step], list[Step]]] = defaultdict(lambda: ([], []))
    for rank, steps in enumerate(trace.ranks):
        for step in steps:
            if step.does not in (Does.SEND, Does.RECV):
                continue
            sends = step.does is Does.SEND
            word = "to" if sends else "from"
            if not 0 <= step.peer < len(trace.ranks):
                raise trace.slip(rank, step, f"a {step.does.value} {word} rank {step.peer}, but the trace "
                                             "has "
                                             f"{len(trace.ranks)} ranks.")
            if step.peer == rank:
                raise trace.slip(rank, step, f"rank {rank} sends to itself.")
            key = (rank, step.peer, step.tag) if sends else (step.peer, rank, step.tag)
            ends[key][0 if sends else 1].append(step)
    for (source, destination, tag), (sends, recvs) in ends.items():
        if len(sends) > len(recvs):
            raise trace.slip(source, sends[len(recvs)], f"no receive at rank {destination} matches this send "
                                                        f"(tag {tag}).")
        if len(recvs) > len(sends):
            raise trace.slip(destination, recvs[len(sends)], f"no send at rank {source} matches this receive "
                                                             f"(tag {tag}).")
        for send, recv in zip(sends, recvs):
            if send.size_bytes != recv.size_bytes:
                raise trace.slip(destination, recv, f"it expects {recv.size_bytes} bytes, but the send at "
                                                    "rank "
                                                    f"{source} carries {send.size_bytes}.")
