"""The table of an experiment file that asks for one, as text and as a picture (SVG, a bar a cell)."""
from __future__ import annotations

from collections.abc import Sequence
from html import escape

from rich.console import Group
from rich.table import Table

from emulator.crosstable import Cell, Filled
from emulator.report.tables import short_labels, table

BAR_CHARACTERS, CELL_CHARACTERS = 40, 9
BAR_PX, HEIGHT_PX, LEFT_PX, TEXT_PX = 26, 220, 46, 12
COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#bbbbbb", "#222222")


def cross(filled: Filled) -> Group:
    """The table; below it bars where there is a single column, and what published figures resemble."""
    t = filled.table
    published = list(dict.fromkeys(name for row in t.published.values() for name in row))
    columns = _heads([column or t.figure for column in filled.columns])
    labels = dict(zip(filled.rows, _rows(filled.rows)))
    made = table(f"{_figure(filled)}, mean ± sd over the seeds", t.rows, *(["reference"] if t.referred else []),
                 *columns, *(f"publ.\n{name}" for name in published))
    for column in made.columns[1:len(made.columns) - len(published)]:
        column.min_width = CELL_CHARACTERS  # the heading folds, not the figure
    for row in filled.rows:
        one = filled.reference.get(row) or filled.reference.get("")
        made.add_row(labels[row], *([_show(one)] if t.referred else []),
                     *(_show(filled.cells.get((row, column))) for column in filled.columns),
                     *(f"{value:.2f}" if (value := filled.published(row).get(name)) is not None else "-"
                       for name in published))
    return Group(made, *_doubts(filled), *_without(filled), *_bars(filled), *_resemblance(filled),
                 *(f"Note: {note}" for note in t.notes))


def _figure(filled: Filled) -> str:
    return f"{filled.table.figure}{' as a fraction of the reference' if filled.table.referred else ''}"


def _rows(rows: Sequence[str]) -> list[str]:
    """What differs: neither a kind that all share ('pattern:') nor parameters that all have."""
    short = short_labels(rows, longest=20)
    kinds = {label.partition(":")[0] for label in short}
    return [label.partition(":")[2] for label in short] if len(kinds) == 1 and all(
        ":" in label for label in short) else short


def _heads(columns: list[str]) -> list[str]:
    """Names without their parameters, where they still differ, else what differs in them."""
    short = [column.partition(":")[0] for column in columns]
    return short if len(set(short)) == len(short) else short_labels(columns)


def _show(cell: Cell | None) -> str:
    if cell is None:
        return "-"
    doubt = "" if cell.trusted == cell.count else "*"
    mean, sd = (f"{v:.2f}" if abs(cell.mean) < 1000 else f"{v:.3g}" for v in (cell.mean, cell.sd))
    return f"{mean}±{sd.removeprefix('0')}{doubt}" if cell.count > 1 else f"{mean}{doubt}"


def _doubts(filled: Filled) -> list[str]:
    cells = [*filled.cells.values(), *filled.reference.values()]
    failed = sum(cell.count - cell.trusted for cell in cells)
    return [f"*: {failed} of {sum(cell.count for cell in cells)} runs have the verdict fail and are not to "
            "be trusted; run them again on a quieter machine or at a lower --rate."] if failed else []


def _without(filled: Filled) -> list[str]:
    """Why rows are missing whose reference is zero."""
    return [f"{row} has no cell: the {filled.table.figure} of its reference is 0, and nothing is a fraction "
            "of that." for row in filled.without]


def _bars(filled: Filled) -> list[Table]:
    if len(filled.columns) != 1 or len(filled.rows) < 2:
        return []
    made = table("", "", "")
    made.columns[1].justify = "left"
    most = max(cell.mean for cell in filled.cells.values()) or 1.0
    for row in filled.rows:
        cell = filled.cells[row, filled.columns[0]]
        made.add_row(row, f"{'█' * round(BAR_CHARACTERS * cell.mean / most)} {cell.mean:.2f}")
    return [made]


def _resemblance(filled: Filled) -> list[str]:
    """Which measured column each published one lies nearest to, and how far the others are."""
    lines = []
    for name, apart in filled.resemblance().items():
        near = min(apart, key=apart.__getitem__)
        others = ", ".join(f"{column} {distance:.2f}" for column, distance in apart.items() if column != near)
        lines.append(f"Published {name} lies nearest to measured {near} (mean distance {apart[near]:.2f}; "
                     f"{others}).")
    return lines


def svg(filled: Filled) -> str:
    """The cells as grouped bars with their spread, from zero; rows and columns by what differs in them."""
    columns, rows = filled.columns, filled.rows
    group_px = BAR_PX * len(columns) + BAR_PX
    width = LEFT_PX + group_px * len(rows) + 10
    top = max((cell.mean + cell.sd for cell in filled.cells.values()), default=1.0) or 1.0
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{HEIGHT_PX + 90}" '
             f'font-family="sans-serif" font-size="{TEXT_PX}">',
             '<rect width="100%" height="100%" fill="white"/>',
             f'<text x="{LEFT_PX}" y="14">{escape(_figure(filled))}</text>']

    def y(value: float) -> float:
        return 20 + HEIGHT_PX * (1 - value / top)

    for tick in range(5):
        value = top * tick / 4
        height = f"{y(value):.1f}"
        parts.append(f'<line x1="{LEFT_PX}" x2="{width}" y1="{height}" y2="{height}" stroke="#ddd"/>'
                     f'<text x="4" y="{y(value) + 4:.1f}">{value:.3g}</text>')
    for i, (row, name) in enumerate(zip(rows, _rows(rows))):
        left = LEFT_PX + i * group_px + BAR_PX // 2
        for j, column in enumerate(columns):
            cell = filled.cells.get((row, column))
            if cell is None:
                continue
            x, middle = left + j * BAR_PX, left + (j + 0.5) * BAR_PX
            parts.append(f'<rect x="{x}" y="{y(cell.mean):.1f}" width="{BAR_PX - 4}" '
                         f'height="{HEIGHT_PX * cell.mean / top:.1f}" fill="{COLOURS[j % len(COLOURS)]}">'
                         f'<title>{escape(row)} {escape(column)} {cell.mean:.3g} ± {cell.sd:.2g}</title>'
                         '</rect>'
                         f'<line x1="{middle}" x2="{middle}" y1="{y(cell.mean - cell.sd):.1f}" '
                         f'y2="{y(cell.mean + cell.sd):.1f}" stroke="black"/>')
        parts.append(f'<text x="{left}" y="{HEIGHT_PX + 36 + 14 * (i % 2)}">{escape(name)}</text>')
    for j, column in enumerate(_heads(list(columns)) if len(columns) > 1 else ()):
        x, colour = LEFT_PX + j * 110, COLOURS[j % len(COLOURS)]
        parts.append(f'<rect x="{x}" y="{HEIGHT_PX + 66}" width="10" height="10" fill="{colour}"/>'
                     f'<text x="{x + 14}" y="{HEIGHT_PX + 76}">{escape(column)}</text>')
    return "\n".join([*parts, "</svg>", ""])
