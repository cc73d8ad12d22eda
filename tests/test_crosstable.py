"""`table:` and `reference:`: which runs there are, and what the table of their summaries says."""
from __future__ import annotations

import io
import xml.etree.ElementTree

import pytest

from emulator import report
from emulator.crosstable import fill, reference_runs, table_of
from emulator.errors import BadInput
from emulator.experiment import read_file
from emulator.matrix import expand
from emulator.options import parse

FILE = """
topology: fat-tree:k=4
repeat: 2
matrix:
  workload: ["pattern:stride=4", "pattern:stride=8,bytes=1MB"]
  routing: [single, ecmp]
reference: {topology: "star:hosts=16", routing: single}
table: {rows: workload, columns: routing, figure: host_links_share, published: p.csv, notes: mind the gap}
"""
PUBLISHED = "# from somewhere\nworkload,ecmp\npattern:stride=4,0.25\npattern:stride=8,0.3\n"


@pytest.fixture
def lab(tmp_path):
    (tmp_path / "lab.yaml").write_text(FILE)
    (tmp_path / "p.csv").write_text(PUBLISHED)
    return str(tmp_path / "lab.yaml")


def row(run, verdict="pass", **figures):
    """(label, summary) of a run that had these figures."""
    return run.label, {"experiment": {"varied": run.varied, "reference": run.reference}, "workload": figures,
                       "fidelity": {"verdict": verdict}}


def test_each_row_and_seed_has_one_reference_that_comes_first(lab):
    asked = parse([lab], lab, "now")
    assert len(asked.runs) == 4 + 8
    references = [run for run in asked.runs if run.reference]
    assert references == asked.runs[:4] and all(run.label.startswith("reference ") for run in references)
    assert {(run.experiment.topology, run.experiment.routing) for run in references} == {("star:hosts=16", "single")}
    assert [(run.experiment.workload, run.experiment.seed) for run in references] == [
        (w, seed) for w in ("pattern:stride=4", "pattern:stride=8,bytes=1MB") for seed in (1, 2)]
    assert {run.experiment.topology for run in asked.runs[4:]} == {"fat-tree:k=4"}


def test_cells_are_fractions_of_their_rows_reference(lab):
    values = read_file(lab)
    table = table_of(values, lab)
    shares = {"single": 0.2, "ecmp": 0.5}
    runs = [row(run, host_links_share=0.8) for run in reference_runs(values, lab)]
    runs += [row(run, "fail" if run.experiment.seed == 2 else "pass",
                 host_links_share=shares[run.experiment.routing] + 0.1 * run.experiment.seed)
             for run in expand(values, lab)]
    filled = fill(table, runs)
    cell = filled.cells["pattern:stride=8,bytes=1MB", "ecmp"]
    assert (cell.mean, cell.count, cell.trusted) == (pytest.approx(0.65 / 0.8), 2, 1)
    assert cell.sd == pytest.approx(0.1 / 0.8 / 2 ** 0.5)
    assert filled.reference["pattern:stride=4"].mean == pytest.approx(0.8)
    apart = filled.resemblance()["ecmp"]
    assert apart["single"] == pytest.approx(0.35 / 0.8 - 0.275) and min(apart, key=apart.get) == "single"
    said = io.StringIO()
    report.show(report.cross(filled), said)
    for words in ("Published ecmp lies nearest to measured single", "mind the gap", "0.81±.09*",
                  "4 of 12 runs have the verdict fail", "publ.", "0.25"):
        assert words in said.getvalue(), said.getvalue()
    assert filled.as_json()["cells"][0]["row"] == "pattern:stride=4"
    bars = xml.etree.ElementTree.fromstring(report.svg(filled)).findall("{*}rect/{*}title")
    assert len(bars) == 4


def test_without_columns_and_reference_a_row_is_one_bar():
    table = table_of({"matrix": {"routing": ["ecmp", "gff"]}, "table": {"rows": "routing"}}, "lab.yaml")
    matrix = {"routing": ["ecmp", "gff"]}
    runs = [row(run, efficiency={"ecmp": 0.4, "gff": 0.8}[run.experiment.routing])
            for run in expand({"matrix": matrix, "repeat": 2})]
    runs.append(row(expand({"matrix": matrix, "repeat": 3})[-1], "fail", efficiency=None))
    filled = fill(table, runs)
    assert {row: cell.count for (row, _), cell in filled.cells.items()} == {"ecmp": 2, "gff": 2}
    said = io.StringIO()
    report.show(report.cross(filled), said)
    assert "█" * 40 + " 0.80" in said.getvalue() and "█" * 20 + " 0.40" in said.getvalue()


@pytest.mark.parametrize("change, words", [
    ({"table": {"rows": "mtu"}}, 'rows "mtu" is not varied by the matrix'),
    ({"table": {"rows": "workload", "columns": "routing", "figure": "speed"}}, 'there is no figure "speed"'),
    ({"table": {"rows": "workload"}}, "the matrix varies routing too, and a cell is a mean over seeds alone; make"),
    ({"table": {"rows": "workload", "colums": "routing"}}, 'table has no key "colums" .did you mean "columns"'),
    ({"table": {}}, "without a table"),
    ({"table": {"rows": "workload", "columns": "routing", "published": "none.csv"}}, "none.csv"),
    ({"reference": {"topolgy": "star"}}, "topolgy")])
def test_slips_are_one_sentence(lab, change, words):
    values = {**read_file(lab), **change}
    with pytest.raises(BadInput, match=words) as slip:
        table_of(values, lab)
        reference_runs(values, lab)
    assert str(slip.value).count("\n") == 0


def test_seeds_and_options_of_one_value_are_not_hidden_axes(lab):
    values = {**read_file(lab), "repeat": 1, "matrix": {"workload": ["a", "b"], "seed": [1, 2], "mtu": [1500]}}
    assert table_of({**values, "table": {"rows": "workload"}}, lab).rows == "workload"


def test_rows_are_the_values_of_the_matrix_not_words_of_a_label():
    values = {"matrix": {"workload": ["/tmp/my labs/a.goal", "/tmp/my labs/b.goal"]}, "repeat": 2,
              "table": {"rows": "workload"}}
    runs = [row(run, efficiency=0.5 if "a.goal" in run.experiment.workload else 0.9) for run in expand(values)]
    filled = fill(table_of(values, "lab.yaml"), runs)
    assert {name: (cell.mean, cell.count) for (name, _), cell in filled.cells.items()} == {
        "/tmp/my labs/a.goal": (0.5, 2), "/tmp/my labs/b.goal": (0.9, 2)}


def test_nothing_is_a_fraction_of_nothing(lab):
    values = {**read_file(lab), "repeat": 1}
    values["table"] = {"rows": "workload", "columns": "routing", "figure": "network_share"}
    table, share = table_of(values, lab), [{"network_share": 0.5}]
    runs = [row(run, iterations=[{"network_share": 0.0 if run.experiment.workload.endswith("4") else 0.25}])
            for run in reference_runs(values, lab)]
    runs += [row(run, iterations=share) for run in expand(values, lab)]
    filled = fill(table, runs)
    assert {name for name, _ in filled.cells} == {"pattern:stride=8,bytes=1MB"}
    assert {cell.mean for cell in filled.cells.values()} == {2.0}
    said = io.StringIO()
    report.show(report.cross(filled), said)
    assert "pattern:stride=4 has no cell: the network_share of its reference is 0" in " ".join(said.getvalue().split())
    assert filled.as_json()["rows_without_cells"] == ["pattern:stride=4"]
    for none in (fill(table, runs[:1] + runs[2:4]), fill(table, [])):  # not one cell is left
        assert not none.cells
        report.show(report.cross(none), io.StringIO())
        xml.etree.ElementTree.fromstring(report.svg(none))
