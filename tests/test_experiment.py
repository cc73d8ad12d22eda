"""Experiment files: the names of the command line, all combinations of a matrix, a schema that is true."""
from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.beside import placed
from emulator.bundle import folder_names
from emulator.crosstable import reference_runs
from emulator.errors import BadInput
from emulator.experiment import Experiment, ExperimentFile, dump, make, read_file, schema
from emulator.matrix import expand, names
from emulator.programs.spec import words

DOCUMENT = Path(__file__).resolve().parent.parent / "docs" / "experiment.schema.json"
WORDS = st.text(
    st.characters(blacklist_categories=("Cs", "Cc"), blacklist_characters="\x85\u2028\u2029\ufeff"), max_size=15)
EXPERIMENTS = st.builds(
    Experiment, topology=WORDS, switch=WORDS, routing=WORDS, workload=WORDS, rate=WORDS, buffer=WORDS,
    cc=WORDS, deadline=WORDS, mtu=st.integers(576, 9000), seed=st.integers(0, 2**32 - 1), repeat=st.integers(1, 1000),
    dilation=st.floats(1, 1e9), byte_scale=st.floats(1, 1e9), verify=st.booleans(),
    pcap=st.lists(WORDS, max_size=3).map(tuple))


@settings(max_examples=50, deadline=None)
@given(EXPERIMENTS)
def test_a_dumped_experiment_is_the_same_when_read_again(tmp_path_factory: pytest.TempPathFactory,
                                                         experiment: Experiment) -> None:
    file = tmp_path_factory.mktemp("dump") / "e.yaml"
    file.write_text(dump(experiment))
    assert make(read_file(str(file))) == experiment


@settings(max_examples=25, deadline=None)
@given(st.dictionaries(st.sampled_from(["mtu", "seed", "cc", "routing", "byte-scale"]),
                       st.lists(st.integers(600, 700), min_size=1, max_size=3, unique=True)))
def test_a_matrix_runs_every_combination_once(matrix: dict[str, list[int]]) -> None:
    runs = expand({"matrix": matrix})
    count = 1
    for listed in matrix.values():
        count *= len(listed)
    assert len(runs) == count == len({run.label for run in runs})
    for run in runs:
        values = run.experiment.model_dump(by_alias=True)
        assert run.label == " ".join(f"{name}={value}" for name, value in run.varied.items())
        assert set(run.varied) == set(matrix)
        for name, value in run.varied.items():
            assert float(values[name]) == float(value) and int(value) in matrix[name]


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 1000), st.integers(0, 2**32 - 1000))
def test_repeats_take_the_seeds_that_follow(repeat: int, seed: int) -> None:
    runs = expand({"repeat": repeat, "seed": seed})
    assert [run.experiment.seed for run in runs] == list(range(seed, seed + repeat))
    assert {run.experiment.repeat for run in runs} == {1}


def test_files_are_found_beside_the_experiment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inside = tmp_path / "lab"
    inside.mkdir()
    for name in ("own.cm", "my.py", "star", "pairs"):
        (inside / name).write_text("x")
    (inside / "e.yaml").write_text("topology: my.py:Fabric:k=4\nworkload: own.cm\n"
                                   "matrix: {workload: [own.cm, 'hedera:pairs', 'pattern:stride=1', none.cm,\n"
                                   "                    'own.cm,map=pack,iterations=2', 'simai:pairs,map=first']}\n")
    monkeypatch.chdir(tmp_path)
    values = read_file("lab/e.yaml")
    assert values["topology"] == "lab/my.py:Fabric:k=4"
    assert values["workload"] == "lab/own.cm"
    assert values["matrix"]["workload"] == [
        "lab/own.cm", "hedera:lab/pairs", "pattern:stride=1", "none.cm", "lab/own.cm,map=pack,iterations=2",
        "simai:lab/pairs,map=first"]
    (inside / "e.yaml").write_text("topology: star\n")
    assert read_file("lab/e.yaml")["topology"] == "star", "a name of the catalogue, not the file beside it"


def test_every_file_that_an_experiment_names_lies_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lab, other = tmp_path / "lab", tmp_path / "other"
    for folder in (lab, other):
        folder.mkdir()
        for name in ("sizes.txt", "hosts.txt", "two.cm"):
            (folder / name).touch()
    other.joinpath("only-here.txt").touch()
    monkeypatch.chdir(other)
    (lab / "e.yaml").write_text(
        "background: cdf:sizes.txt,load=0.2\n"
        "matrix:\n"
        "  workload: [alltoall, 'allreduce:placement=file:hosts.txt,bytes=1MB', 'cm:two.cm,placement=file:hosts.txt']\n"
        "  background: [cdf:websearch, 'cdf:sizes.txt,hosts=h1+h2', cdf:only-here.txt, off-line]\n"
        "  run: ['each:placement=file:hosts.txt cat ./two.cm']\n"
        "reference: {workload: 'alltoall:placement=file:hosts.txt', background: cdf:sizes.txt}\n"
        "table: {rows: mtu}\n")
    values = read_file("../lab/e.yaml")
    assert values["background"] == "cdf:../lab/sizes.txt,load=0.2"
    assert values["matrix"] == {
        "workload": ["alltoall", "allreduce:placement=file:../lab/hosts.txt,bytes=1MB",
                     "cm:../lab/two.cm,placement=file:../lab/hosts.txt"],
        "background": ["cdf:websearch", "cdf:../lab/sizes.txt,hosts=h1+h2", "cdf:only-here.txt", "off-line"],
        "run": [("each:placement=file:../lab/hosts.txt", "cat", "../lab/two.cm")]}
    (lab / "j.yaml").write_text("jobs: ['two.cm; name=a', {workload: 'alltoall:placement=file:hosts.txt'}]\n")
    assert read_file("../lab/j.yaml")["jobs"] == (
        "../lab/two.cm; name=a", {"workload": "alltoall:placement=file:../lab/hosts.txt"})
    reference, = reference_runs({**values, "matrix": {"mtu": [1500, 4000]}}, "../lab/e.yaml")[:1]
    assert reference.experiment.workload == "alltoall:placement=file:../lab/hosts.txt"
    assert reference.experiment.background == "cdf:../lab/sizes.txt"


@given(st.sampled_from(["workload", "topology", "classes", "background", "jobs", "run", "rate"]),
       st.text(max_size=300) | st.none() | st.integers())
def test_what_names_no_file_stays_as_it_is(option: str, value: object) -> None:
    try:
        made = placed(option, value, lambda name: f"/nowhere/{name}")
    except ValueError as error:
        assert option == "run" and str(error)
        return
    assert made == (words(value) if option == "run" else value)


def test_the_schema_in_the_documents_is_the_one_in_force() -> None:
    document, made = json.loads(DOCUMENT.read_text()), schema()
    assert document["$schema"] == made["$schema"] and not document["additionalProperties"]
    assert list(document["properties"]) == list(made["properties"]), "run: python -m emulator.run --schema"
    for name, described in made["properties"].items():
        for key in ("type", "default", "description", "minimum", "maximum", "exclusiveMaximum"):
            assert document["properties"][name].get(key) == described.get(key), (name, key)


def test_the_schema_has_every_option_of_a_file_by_its_written_name() -> None:
    names = {field.alias or key for key, field in ExperimentFile.model_fields.items()}
    assert set(schema()["properties"]) == names and "byte-scale" in names


def test_values_are_not_guessed() -> None:
    for values in ({"topology": ["a"]}, {"rate": None}, {"cc": True}, {"mtu": True}, {"pcap": "h1-eth0"}):
        with pytest.raises(BadInput, match=next(iter(values))):
            make(values)


TABLES = [{"gradients": {"weight": a}, "storage": {"weight": b}} for a, b in ((8, 1), (1, 8))]


def test_different_values_never_read_alike(tmp_path: Path) -> None:
    tables = expand({"matrix": {"classes": TABLES}})
    assert [run.label for run in tables] == ["classes=gradients+storage", "classes=gradients+storage #2"]
    assert [run.experiment.classes for run in tables] == TABLES
    programs = [tmp_path / folder / "allreduce" for folder in ("old", "new")]
    for program in programs:
        program.parent.mkdir()
        program.touch()
    (tmp_path / "m.yaml").write_text("matrix: {run: [mpi old/allreduce, mpi new/allreduce, each true]}\n")
    assert [run.varied["run"] for run in expand(read_file(str(tmp_path / "m.yaml")))] == [
        f"mpi {programs[0]}", f"mpi {programs[1]}", "each true"]


@given(st.lists(st.sampled_from(["a", "a #2", {"a": 1}, {"a": 2}, ("a",), False, "off"]), unique_by=repr))
def test_names_are_as_many_as_values(listed: list[object]) -> None:
    assert len(set(names(listed))) == len(listed)


@given(st.lists(st.text(max_size=200), unique=True, max_size=8))
def test_every_run_has_a_folder_of_its_own(labels: list[str]) -> None:
    made = folder_names([*labels, "routing=ecmp seed=1"])
    assert len({name.lower() for name in made}) == len(made)
    assert all(len(name) <= 140 and "/" not in name and name.isascii() for name in made)
    assert made[-1].startswith("routing=ecmp_seed=1")
