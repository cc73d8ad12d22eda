"""How our tables and figures look, and their way to the terminal."""
from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from emulator.matrix import label_of
from emulator.report.fit import FittedTable
from emulator.units import show_time

LEAST_COLUMNS = 60


def percent(fraction: float | None, digits: int = 1) -> str:
    """'87.5 %', or a dash where there is no value."""
    return "-" if fraction is None else f"{100 * fraction:.{digits}f} %"


def table(title: str, *columns: str) -> Table:
    """A table as all of ours look: first column left, the rest right."""
    made = FittedTable(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD,
                       pad_edge=False, min_width=len(title))
    for number, column in enumerate(columns):
        made.add_column(column, justify="left" if number == 0 else "right", overflow="fold")
    return made


def short_labels(labels: Sequence[str], longest: int = 36) -> list[str]:
    """Labels of runs for a column: where one is long, only the words in which they differ."""
    if max(map(len, labels), default=0) <= longest:
        return list(labels)
    words = [re.split("[ ,]", label) for label in labels]
    common = set(words[0]).intersection(*words)
    return [" ".join(word for word in each if word not in common) or label
            for each, label in zip(words, labels)]


def label_without(summary: Mapping[str, Any], option: str) -> str:
    """The label of a run without one of the options that vary: alike for runs that differ in it alone."""
    e = summary["experiment"]
    return label_of({key: value for key, value in e["varied"].items() if key != option}, e["reference"])


def seconds(time_s: float | None) -> str:
    return "-" if time_s is None else show_time(time_s)


def number(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return "-" if value is None else str(value)


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Leave it to the caller, where rich would end the program."""
        raise  # noqa: PLE0704, called where the BrokenPipeError is handled


def show(renderable: Any, stream: Any = None) -> None:
    """Print to a terminal in its own width (60 columns at least); to a pipe or file in that of COLUMNS, else
    in 120.
    """
    # without markup and emoji: a file called [x] or :100: is printed as it is called
    plain = {"file": stream, "highlight": False, "markup": False, "emoji": False}
    console = _Console(**plain)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console = _Console(**plain, width=max(console.width, 120))
    elif console.width < LEAST_COLUMNS:
        console = _Console(**plain, width=LEAST_COLUMNS)
    console.print(renderable)
