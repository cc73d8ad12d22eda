"""How our tables and figures look, and their way to the terminal."""
from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from emulator.units import show_time


def percent(fraction: float | None, digits: int = 1) -> str:
    """'87.5 %', or a dash where there is no value."""
    return "-" if fraction is None else f"{100 * fraction:.{digits}f} %"


def table(title: str, *columns: str) -> Table:
    """A table as all of ours look: first column left, the rest right."""
    made = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False,
                 min_width=len(title))
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


def seconds(time_s: float | None) -> str:
    return "-" if time_s is None else show_time(time_s)


def number(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return "-" if value is None else str(value)


def show(renderable: Any, stream: Any = None) -> None:
    """Print to the terminal; a pipe or a narrow window gets at least 100 columns, so no cell is cut."""
    # without markup and emoji: a file called [x] or :100: is printed as it is called
    plain = {"file": stream, "highlight": False, "markup": False, "emoji": False}
    console = Console(**plain)
    if console.width < 100 or not console.is_terminal:
        console = Console(**plain, width=max(console.width, 120))
    console.print(renderable)
