"""The one family of errors that a user may see. Each holds a finished sentence and its exit status.

Exit statuses are a contract: 0 done and trusted, 2 bad input, 3 the machine lacks something,
4 the workload did not finish, 5 the fidelity verdict is fail, 130 interrupted.
"""
from __future__ import annotations

import difflib
from collections.abc import Iterable


class EmulatorError(Exception):
    """A sentence for the user and the exit status of the process."""

    exit_status = 4


class BadInput(EmulatorError):
    """What the user asked for cannot be: nothing was started."""

    exit_status = 2


class MachineLacks(EmulatorError):
    """The machine lacks a program, a right or a kernel feature; the sentence says how to get it."""

    exit_status = 3


class Unfinished(EmulatorError):
    """The workload did not end (deadline, stuck rank); partial results were kept."""

    exit_status = 4


class Untrusted(EmulatorError):
    """The run finished, but its fidelity verdict is fail; results were kept and marked."""

    exit_status = 5


class Interrupted(EmulatorError):
    """The user stopped the run; it was cleaned up and partial results were kept."""

    exit_status = 130


MOST_NAMES = 12  # a sentence is not a list


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint ' (did you mean "ecmp"?)' for a misspelt name, or the list of what is known."""
    known = sorted(set(known) - {name})
    if not known:
        return ""
    small = {each.lower(): each for each in reversed(known)}
    close = difflib.get_close_matches(name.lower(), small, n=1, cutoff=0.6)
    if close:
        return f' (did you mean "{small[close[0]]}"?)'
    rest = f" and {len(known) - MOST_NAMES} more" if len(known) > MOST_NAMES else ""
    return f" (known: {', '.join(known[:MOST_NAMES])}{rest})"
