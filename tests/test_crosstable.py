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


def summary(share, verdict="pass"):
    return {"workload": {"host_links_share": share}, "fidelity": {"verdict": verdict}}


def test_each_row_and_seed_has_one_reference_that_comes_first(lab):
    asked = parse([lab], lab, "now")
    assert len(asked.runs) == 4 + 8
    references = [run for run in asked.runs if run[0].startswith("reference")]
    assert references == asked.runs[:4]
    assert {(e.topology, e.routing) for _, e in references} == {("star:hosts=16", "single")}
    assert [(e.workload, e.seed) for _, e in references] == [
        (w, seed) for w in ("pattern:stride=4", "pattern:stride=8,bytes=1MB") for seed in (1, 2)]
    assert {e.topology for _, e in asked.runs[4:]} == {"fat-tree:k=4"}


def test_cells_are_fractions_of_their_rows_reference(lab):
    values = read_file(lab)
    table = table_of(values, lab)
    shares = {"single": 0.2, "ecmp": 0.5}
    runs = [(label, summary(0.8)) for label, _ in reference_runs(values, lab)]
    runs += [(label, summary(shares[e.routing] + 0.1 * e.seed, "fail" if e.seed == 2 else "pass"))
             for label, e in expand(values, lab)]
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
    runs = [(f"routing={name} seed={seed}", {"workload": {"efficiency": value}, "fidelity": {"verdict": "pass"}})
            for name, value in (("ecmp", 0.4), ("gff", 0.8)) for seed in (1, 2)]
    runs.append(("routing=gff seed=3", {"workload": {"efficiency": None}, "fidelity": {"verdict": "fail"}}))
    filled = fill(table, runs)
    assert {row: cell.count for (row, _), cell in filled.cells.items()} == {"ecmp": 2, "gff": 2}
    said = io.StringIO()
    report.show(report.cross(filled), said)
    assert "█" * 40 + " 0.80" in said.getvalue() and "█" * 20 + " 0.40" in said.getvalue()


@pytest.mark.parametrize("change, words", [
    ({"table": {"rows": "mtu"}}, 'rows "mtu" is not varied by the matrix'),
    ({"table": {"rows": "workload", "figure": "speed"}}, 'there is no figure "speed"'),
    ({"table": {"rows": "workload", "colums": "routing"}}, 'table has no key "colums" .did you mean "columns"'),
    ({"table": {}}, "without a table"),
    ({"table": {"rows": "workload", "published": "none.csv"}}, "none.csv"),
    ({"reference": {"topolgy": "star"}}, "topolgy")])
def test_slips_are_one_sentence(lab, change, words):
    values = {**read_file(lab), **change}
    with pytest.raises(BadInput, match=words) as slip:
        table_of(values, lab)
        reference_runs(values, lab)
    assert str(slip.value).count("\n") == 0
