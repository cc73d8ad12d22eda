"""Tables that fit: in a narrow terminal text is folded, and figures with their units stay whole."""
from __future__ import annotations

from collections.abc import Sequence
from copy import copy

from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Column, Table

MOST_FIGURE = 14  # columns that a figure with its unit takes; what is longer is text
MOST_WORD = 26  # columns up to which a word of text stays whole: target-rate=1600gbit


class FittedTable(Table):
    """A table whose columns give way by what they hold, not by how wide they are; one that is too wide all
    the same comes in parts, each with the first column.
    """

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for part in self._parts(options.max_width):
            room = part._room(options.max_width)
            for column, width in zip(part.columns, widths(_needs(part.columns), room)):
                column.width = width
            yield from super(FittedTable, part).__rich_console__(console, options)

    def _room(self, width: int) -> int:
        """What lines of `width` leave for the columns, beside the blanks of box.SIMPLE_HEAD."""
        between = 1 + self.padding[1] + self.padding[3]
        return width - between * (len(self.columns) - 1) - (2 if self.show_edge else 0)

    def _parts(self, width: int) -> list[FittedTable]:
        """Itself, with less between its columns, or as many tables as it needs."""
        least = [need for need, _ in _needs(self.columns)]
        if sum(least) > self._room(width):
            self.padding, self.show_edge = (0, 1, 0, 0), False
        if sum(least) <= self._room(width) or len(self.columns) < 3:
            return [self]
        parts, shown = [], 1
        while shown < len(self.columns):
            part = copy(self)
            part.columns = [copy(self.columns[0])]
            while shown < len(self.columns):
                part.columns.append(copy(self.columns[shown]))
                wanted = sum(need for need, _ in _needs(part.columns))
                if wanted > part._room(width) and len(part.columns) > 2:
                    part.columns.pop()
                    break
                shown += 1
            for number, column in enumerate(part.columns):
                column._index = number
            part.title, part.min_width = None if parts else self.title, None
            parts.append(part)
        return parts


def _needs(columns: Sequence[Column]) -> list[tuple[int, int]]:
    return [(_least(column), _most(column)) for column in columns]


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
    """Whole figures in a right column, whole words in a left one, up to a length that few have."""
    parts, most = _lines(column), MOST_FIGURE
    if column.justify != "right":
        parts, most = [word for line in parts for word in line.split()], MOST_WORD
    return min(_most(column), max([_words(column), *(min(len(part), most) for part in parts)]))
