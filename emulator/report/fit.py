"""Tables that fit: in a narrow terminal text is folded, and figures with their units stay whole."""
from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Column, Table

MOST_FIGURE = 14  # columns that a figure with its unit takes; what is longer is text


class FittedTable(Table):
    """A table whose columns give way by what they hold, not by how wide they are."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        needs = [(_least(column), _most(column)) for column in self.columns]
        room = options.max_width - 3 * len(self.columns) + 1  # with the blanks around columns of box.SIMPLE_HEAD
        if sum(least for least, _ in needs) > room:
            self.padding = (0, 1, 0, 0)
            room += len(self.columns) - 1
        for column, width in zip(self.columns, widths(needs, room)):
            column.width = width
        yield from super().__rich_console__(console, options)


def widths(needs: Sequence[tuple[int, int]], room: int) -> list[int]:
    """The width of each column of (least, most) in `room` altogether: what all would like, or less of what
    has most to give; never under its least, even where that is too much.
    """
    given = [most for _, most in needs]
    while sum(given) > room:
        slack = [(width > least) * width for (least, _), width in zip(needs, given)]
        if not any(slack):
            break
        given[slack.index(max(slack))] -= 1
    return given


def _lines(column: Column) -> list[str]:
    return [line for cell in column.cells for line in str(cell).split("\n")]


def _words(column: Column) -> int:
    """The longest word of the head."""
    return max(map(len, str(column.header).split()), default=0)


def _most(column: Column) -> int:
    return max([len(str(column.header)), *map(len, _lines(column))])


def _least(column: Column) -> int:
    """Whole figures in a right column, whole words in a left one, up to a length that no figure has."""
    parts = _lines(column) if column.justify == "right" else [word for line in _lines(column) for word in line.split()]
    return min(_most(column), max([_words(column), *(min(len(part), MOST_FIGURE) for part in parts)]))
