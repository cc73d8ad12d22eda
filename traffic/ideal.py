"""The time that a workload would need if the fabric were perfect: what efficiency is measured against."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from traffic import formulas
from traffic.load import Busiest, busiest, link_bytes, pairs
from traffic.paths import Paths
from traffic.schedule import Workload
from traffic.simulate import Simulated, simulate
from traffic.wire import Wire


ClosedForm = Callable[[int, float, float, float], float]


@dataclass(frozen=True)
class Ideal:
    """Seconds of one iteration: the larger of `formula_s` (the simulation where there is none) and
    the time of the busiest link.

    A closed form knows nothing of slices; a sliced schedule hides delays behind data, so that
    `simulated.delivered_s` can lie below `formula_s`.
    """

    ideal_s: float
    formula_s: float | None
    simulated: Simulated
    busiest: Busiest | None


def ideal(workload: Workload, paths: Paths, wire: Wire) -> Ideal:
    """The ideal time of a checked workload on this fabric, with all that went into it."""
    simulated = simulate(workload.schedule, workload.placement, paths, wire)
    formula_s = formula(workload, paths, wire)
    worst = busiest(link_bytes(workload.schedule, workload.placement, paths), paths.graph, wire)
    base_s = simulated.delivered_s if formula_s is None else formula_s
    return Ideal(max(base_s, worst.time_s if worst else 0.0), formula_s, simulated, worst)


def bounds_s(workload: Workload, paths: Paths, wire: Wire) -> tuple[float, float]:
    """(formula, or simulation where there is none; busiest link): the ideal time is the larger one."""
    base_s = formula(workload, paths, wire)
    if base_s is None:
        base_s = simulate(workload.schedule, workload.placement, paths, wire).delivered_s
    worst = busiest(link_bytes(workload.schedule, workload.placement, paths), paths.graph, wire)
    return base_s, worst.time_s if worst else 0.0


def formula(workload: Workload, paths: Paths, wire: Wire) -> float | None:
    """The closed form of a collective, with the mean base delay of its connections; None without one.

    Every rank of these collectives sends as much as it receives, so data shares its links with
    acknowledgements.
    """
    if workload.collective is None:
        return None
    return formula_at(workload, workload.collective.size_bytes, paths, wire)


def formula_at(workload: Workload, size_bytes: int, paths: Paths, wire: Wire) -> float | None:
    """The same for another size: the pairs that talk are those of `workload`."""
    closed_form = closed_form_of(workload.schedule.name, len(workload.schedule.ranks))
    if closed_form is None or workload.collective is None:
        return None
    return closed_form(len(workload.schedule.ranks), size_bytes,
                       mean_alpha_s(workload, paths, wire), wire.beta_s(shared=True))


def message_ideal_s(workload: Workload, paths: Paths, wire: Wire, source: int, destination: int,
                    size_bytes: int) -> float:
    """Ideal FCT of one message between two ranks, alone on its path: to the last byte's acknowledgement."""
    a, b = (paths.graph.hosts[workload.placement[rank]].name for rank in (source, destination))
    return wire.ideal_fct_s(paths.first_links(a, b), size_bytes)


def closed_form_of(algorithm: str, ranks: int) -> ClosedForm | None:
    """(ranks, size_bytes, alpha_s, beta_s) -> seconds, for the name of a collective's schedule."""
    if algorithm == "halving-doubling all-reduce" and ranks & (ranks - 1):
        return None  # the fold of the extra ranks is not in the formula
    return _CLOSED_FORMS.get(algorithm)


def mean_alpha_s(workload: Workload, paths: Paths, wire: Wire) -> float:
    """Base one-way delay, averaged over the pairs of ranks that talk: data that goes round a ring
    passes each pair as often as any other."""
    hosts = [paths.graph.hosts[host].name for host in workload.placement]
    talking = {(source, destination) for source, destination, _ in pairs(workload.schedule)}
    if not talking:
        return 0.0
    alphas = [wire.alpha_s(paths.first_links(hosts[a], hosts[b])) for a, b in sorted(talking)]
    return sum(alphas) / len(alphas)


_CLOSED_FORMS: dict[str, ClosedForm] = {
    "ring all-reduce": formulas.ring_all_reduce_s,
    "ring reduce-scatter": formulas.ring_half_s,
    "ring all-gather": formulas.ring_half_s,
    "halving-doubling all-reduce": formulas.halving_doubling_s,
    "double-binary-tree all-reduce": formulas.double_binary_tree_s,
    "pairwise all-to-all": formulas.all_to_all_s,
}
