"""One table out of many runs: `table:` and `reference:` of an experiment file.

    reference: {topology: "star:hosts=16", routing: single}
    table: {rows: workload, columns: routing, figure: host_links_share, published: published/hedera.csv}

A cell is the mean and spread, over all seeds, of a figure of the workload block of summary.json. With a
reference, each row has a run of its own with those options changed, and cells are fractions of its figure.
`published` names a CSV file (beside the experiment file) whose first column has the rows' values and whose
others are figures that somebody else has published, in the same unit as the cells.
"""
from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from emulator.beside import in_folder, placed
from emulator.errors import BadInput, nearest
from emulator.experiment import option_name
from emulator.matrix import SEED, Run, expand
from traffic.importers.strict_yaml import written
from traffic.importers.text import read_lines

SHARE = "network_share"
FIGURES = ("host_links_share", "efficiency", "completion_s", "goodput_bps", "busbw_bps", "algbw_bps", SHARE)
KEYS = ("rows", "columns", "figure", "published", "notes")


@dataclass(frozen=True)
class CrossTable:
    """What is compared: the matrix's keys for rows and columns ('' for no columns: one cell a row), the
    figure, published figures as row -> column -> value, and sentences to print below.
    """

    rows: str
    columns: str
    figure: str
    referred: bool
    published: Mapping[str, Mapping[str, float]]
    notes: tuple[str, ...]


def table_of(values: Mapping[str, Any], where: str) -> CrossTable | None:
    """The table that an experiment file asks for; None without one. BadInput with one sentence for a slip."""
    asked, reference = values.get("table"), values.get("reference")
    if not asked:
        if reference:
            raise BadInput(f"{where}: reference: is there without a table: that it would be used in.")
        return None
    for key, value in asked.items():
        if key not in KEYS:
            raise BadInput(f'{where}: table has no key "{key}"{nearest(str(key), KEYS)}.')
        if not isinstance(value, str) and not (key == "notes" and _lines(value)):
            kind = "text" if key == "notes" else "a name"
            raise BadInput(f"{where}: table: {key}: {written(value)} is not {kind}.")
    matrix = values.get("matrix") or {}
    for key in ("rows", "columns"):
        if (key == "rows" or asked.get(key)) and option_name(str(asked.get(key))) not in matrix:
            raise BadInput(f'{where}: table: {key} "{asked.get(key)}" is not varied by the matrix, which has '
                           f'{", ".join(matrix) or "nothing"}.')
    if option_name(asked["rows"]) == option_name(asked.get("columns", "")):
        raise BadInput(f'{where}: table: rows and columns are both "{asked["rows"]}"; leave columns out for '
                       "one cell a row.")
    _check_all_shown(matrix, {option_name(asked["rows"]), option_name(asked.get("columns", ""))}, where)
    figure = asked.get("figure", "efficiency")
    if figure not in FIGURES:
        raise BadInput(f'{where}: table: there is no figure "{figure}"{nearest(figure, FIGURES)}.')
    notes = asked.get("notes", [])
    return CrossTable(
        option_name(str(asked["rows"])), option_name(str(asked.get("columns") or "")), figure,
        bool(reference),
        _published(str(Path(where).parent / asked["published"])) if asked.get("published") else {},
        tuple(map(str, [notes] if isinstance(notes, str) else notes)))


def _check_all_shown(matrix: Mapping[str, Any], shown: set[str], where: str) -> None:
    """Raise BadInput where a cell would be a mean over runs that differ in more than their seed."""
    hidden = [key for key, listed in matrix.items() if len(listed) > 1 and key not in {*shown, SEED}]
    if hidden:
        raise BadInput(f"{where}: table: the matrix varies {hidden[0]} too, and a cell is a mean over seeds "
                       f"alone; make {hidden[0]} rows or columns, or run the file once for each of its "
                       "values.")


def _lines(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(line, str) for line in value)


def reference_runs(values: Mapping[str, Any], where: str) -> list[Run]:
    """The runs that rows are measured against: one for each row and seed, without the matrix's columns."""
    given = {option_name(str(key)): value for key, value in (values.get("reference") or {}).items()}
    if not given:
        return []
    try:
        reference = {key: placed(key, value, in_folder(Path(where).parent)) for key, value in given.items()}
    except ValueError as error:
        raise BadInput(f"{where}: reference: run {error}.") from None
    columns = option_name(str(values["table"].get("columns") or ""))
    matrix = {key: listed for key, listed in (values.get("matrix") or {}).items()
              if key not in reference and key != columns}
    plain = {key: value for key, value in values.items() if key not in ("table", "reference", "matrix")}
    runs = expand({**plain, **reference, "matrix": matrix}, f"{where}: reference")
    return [replace(run, reference=True) for run in runs]


def _published(path: str) -> dict[str, dict[str, float]]:
    lines = [line for line in read_lines(path, "a file of published figures") if not line.startswith("#")]
    found: dict[str, dict[str, float]] = {}
    for number, row in enumerate(csv.DictReader(lines), 2):
        key, *names = row
        try:
            found[row[key]] = {name: float(row[name]) for name in names if row[name]}
        except (TypeError, ValueError):
            raise BadInput(f"{path}: row {number} has a figure that is not a number.") from None
    if not found:
        raise BadInput(f"{path}: there is no row of published figures.")
    return found


@dataclass(frozen=True)
class Cell:
    """A figure over `count` seeds: its mean and standard deviation (0 for one seed); `trusted`: how many of
    the runs passed their fidelity checks.
    """

    mean: float
    sd: float
    count: int
    trusted: int


@dataclass(frozen=True)
class Filled:
    """A table with its numbers: cells by (row, column), each row's reference in the figure's own unit.

    without: the rows whose reference is 0, so that nothing is a fraction of it; they have no cells.
    """

    table: CrossTable
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: Mapping[tuple[str, str], Cell]
    reference: Mapping[str, Cell]
    without: tuple[str, ...] = ()

    def published(self, row: str) -> Mapping[str, float]:
        """What has been published for a row: of itself, or of the same without further parameters."""
        return next((values for key, values in self.table.published.items()
                     if row == key or row.startswith(f"{key},")), {})

    def resemblance(self) -> dict[str, dict[str, float]]:
        """published column -> measured column -> mean distance over the rows that have both."""
        distances: dict[str, dict[str, float]] = {}
        for name in dict.fromkeys(name for row in self.table.published.values() for name in row):
            for column in self.columns:
                apart = [abs(self.published(row)[name] - self.cells[row, column].mean) for row in self.rows
                         if (row, column) in self.cells and name in self.published(row)]
                if apart:
                    distances.setdefault(name, {})[column] = mean(apart)
        return distances

    def as_json(self) -> dict[str, Any]:
        """For summary.json of the whole."""
        t = self.table
        cells = [{"row": row, "column": column, **vars(cell)} for (row, column), cell in self.cells.items()]
        return {"rows": t.rows, "columns": t.columns, "figure": t.figure, "relative_to_reference": t.referred,
                "cells": cells,
                "reference": [{"row": row, **vars(cell)} for row, cell in self.reference.items()],
                "rows_without_cells": list(self.without),
                "published": {row: dict(values) for row, values in t.published.items()},
                "distance_of_published": self.resemblance()}


def _figure(workload: Mapping[str, Any], name: str) -> float | None:
    """Of the workload block; the network's share as the mean over its iterations."""
    if name != SHARE:
        return workload[name]
    shares = [each[SHARE] for each in workload["iterations"] if each[SHARE] is not None]
    return mean(shares) if shares else None


def fill(table: CrossTable, runs: Sequence[tuple[str, Mapping[str, Any]]]) -> Filled:
    """The table from (label, summary) of all runs; a run without the figure (it broke off) is left out.

    What a run is of the matrix its summary says, not its label, which is for people.
    """
    found: dict[tuple[str, str], list[tuple[float, bool]]] = {}
    against: dict[str, list[tuple[float, bool]]] = {}
    for _, summary in runs:
        value = _figure(summary["workload"], table.figure)
        if value is None:
            continue
        varied = summary["experiment"]["varied"]
        sample = (value, summary["fidelity"]["verdict"] == "pass")
        if summary["experiment"]["reference"]:  # one that does not vary with the rows serves them all
            against.setdefault(varied.get(table.rows, ""), []).append(sample)
        else:
            found.setdefault((varied[table.rows], varied.get(table.columns, "")), []).append(sample)
    reference = {row: _cell(samples, 1.0) for row, samples in against.items()}
    cells, without = {}, []
    for (row, column), samples in found.items():
        one = reference.get(row) or reference.get("")
        if one is None and table.referred:
            continue
        if one is not None and one.mean == 0:
            without.append(row)
        else:
            cells[row, column] = _cell(samples, one.mean if one else 1.0)
    return Filled(table, tuple(dict.fromkeys(row for row, _ in cells)),
                  tuple(dict.fromkeys(column for _, column in cells)), cells, reference,
                  tuple(dict.fromkeys(without)))


def _cell(samples: Sequence[tuple[float, bool]], unit: float) -> Cell:
    values = [value / unit for value, _ in samples]
    sd = stdev(values) if len(values) > 1 else 0.0
    return Cell(mean(values), sd, len(values), sum(ok for _, ok in samples))
