"""All runs of an invocation as plans: each for itself, but for the rate, which they are compared at."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from emulator.matrix import Run
from emulator.plan import Plan
from emulator.resolve import resolve
from emulator.units import show_rate

AUTO = "auto"


def plan_all(runs: Sequence[Run], choose_switch: Callable[[str], tuple[str, str]]) -> list[Plan]:
    """The plan of each run. choose_switch: what --switch says -> (switch, datapath) that will be used.

    `rate: auto` is one rate for all runs and references, the smallest that one of them would choose: what
    they are compared by would else hang on it. Only where the matrix varies the rate each chooses its own.
    Raises BadInput with one sentence for anything that cannot be.
    """
    plans = [_plan(run, choose_switch) for run in runs]
    chosen = [plan.wire.rate_bps for plan, run in zip(plans, runs) if _follows(run)]
    if len(set(chosen)) < 2:
        return plans
    rate_bps = min(chosen)
    note = (f"--rate auto is {show_rate(rate_bps)} in every run, the smallest that one of them chooses (the "
            f"largest is {show_rate(max(chosen))}), so that they can be compared; name a --rate, or vary it "
            "in the matrix, for another")
    return [_at(run, plan, rate_bps, note, choose_switch) if _follows(run) else plan
            for run, plan in zip(runs, plans)]


def _plan(run: Run, choose_switch: Callable[[str], tuple[str, str]]) -> Plan:
    plan = resolve(run.label, run.experiment, *choose_switch(run.experiment.switch))
    return replace(plan, varied=run.varied, reference=run.reference)


def _follows(run: Run) -> bool:
    """Whether the run takes the rate that all take."""
    return run.experiment.rate == AUTO and "rate" not in run.varied


def _at(run: Run, plan: Plan, rate_bps: float, note: str,
        choose_switch: Callable[[str], tuple[str, str]]) -> Plan:
    """The plan at this rate; sizes may follow from it, so it is made anew where it had another."""
    if plan.wire.rate_bps != rate_bps:
        fixed = run.experiment.model_copy(update={"rate": f"{rate_bps:.17g}bit"})
        plan = _plan(replace(run, experiment=fixed), choose_switch)
    return replace(plan, remarks=(note,))
