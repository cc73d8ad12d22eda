"""Whatever is wrong with a command line: exit status 2, one line on stderr, nothing started."""
from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from emulator import options, run
from emulator.errors import BadInput

ROOT = Path(__file__).resolve().parent.parent
STAR = ("--topology", "star:hosts=4", "--workload", "pattern:stride=1")
Refused = Callable[..., str]


@pytest.fixture
def refused(capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Refused:
    """Runs a command that must be refused; gives its sentence. It stands in an empty folder."""
    started: list[object] = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("emulator.sandbox.enter.run_in_sandbox", lambda *a, **k: started.append(a))
    monkeypatch.setattr("emulator.requirements.require", lambda plans: None)

    def check(*arguments: str, where: Path = tmp_path) -> str:
        before = sorted(where.rglob("*"))
        status = run.main([*arguments])
        said = capsys.readouterr()
        assert status == 2, (status, said.out)
        assert said.out == "" and not started
        assert said.err.startswith("emulator: ") and said.err.endswith(".\n"), said.err
        assert said.err.count("\n") == 1 and "usage:" not in said.err and "Traceback" not in said.err
        assert sorted(where.rglob("*")) == before
        return said.err

    return check


@pytest.mark.parametrize("arguments, words", [
    (("--topology", "fat-tree:k=3"), "even k"),
    (("--topology", "fat-tree:k=0"), "0 is outside 2 to 16"),
    (("--topology", "star:hosts=1000000000"), "outside 2 to 1000"),
    (("--topology", "fat-tre:k=4"), 'did you mean "fat-tree"?'),
    (("--topology", "fat-tree:p=4"), 'no parameter "p"'),
    (("--topology", ""), "has no name"),
    (("--topology", "star\nhosts"), "star hosts"),
    (("--topology", "no.topo"), "does not exist"),
    (("--topology", "no.py:Fabric"), "does not exist"),
    (("--routing", "ecpm"), 'did you mean "ecmp"?'),
    (("--switch", "obs"), 'did you mean "ovs"?'),
    (("--workload", "alreduce"), 'did you mean "allreduce"?'),
    (("--workload", "allreduce:algorithm=rong"), 'did you mean "ring"?'),
    (("--workload", "allreduce:ranks=5"), "5 ranks do not fit on 4 hosts"),
    (("--workload", "allreduce:bytes=0B"), "more than zero"),
    (("--workload", "pipeline:stages=9"), "9 ranks do not fit"),
    (("--workload", "pattern:pair=0-9"), "no host 9"),
    (("--workload", "pattern"), "one of stride, pair, incast, random-bijection, staggered, not none"),
    (("--workload", "pattern:stride=1,incast=2"), "not stride and incast"),
    (("--workload", "no.cm"), "does not exist"),
    (("--workload", "hedera:"), "needs a file"),
    (("--workload", "simai:no.txt,map=pack"), "no.txt does not exist"),
    (("--workload", "chakra:no"), "no is not a folder"),
    (("--workload", "no.goal,mop=pack"), 'did you mean "map"?'),
    (("--topology", "hpcc:no"), "does not exist"),
    (("--rate", "-5mbit"), '"-5mbit" is negative'),
    (("--rate", "5"), "no unit"),
    (("--rate", "0"), "more than zero, such as 10mbit"),
    (("--rate", "0mbit"), "more than zero"),
    (("--rate", "10furlong"), "unknown unit"),
    (("--rate", "10mb"), 'did you mean "mbit"?'),
    (("--cc", ""), "not the name"),
    (("--cc", "dctpc"), 'did you mean "dctcp"?'),
    (("--topology", "hpcc:"), "needs a file"),
    (("--dilation", "fast"), '"fast" is neither a number nor auto'),
    (("--background", "cdf:websearch,load=0.3,load=0.4"), "gives load twice"),
    (("--buffer", "1513B"), "not even one frame of 1514 bytes"),
    (("--buffer", "1us"), "not even one frame"),
    (("--buffer", "1e300s"), '--buffer "1e300s" is too large.'),
    (("--buffer", "1e300MB"), '--buffer "1e300MB" is too large.'),
    (("--buffer", "1e17ms"), "is more than 2 GiB a port"),
    (("--buffer", "-1ms"), '--buffer "-1ms" is negative.'),
    (("--buffer", "5mbit"), "unknown unit"),
    (("--ecn", "1e9GB", "--switch", "bpf"), '--ecn "1e9GB" is too large: a queue of 151400 bytes'),
    (("--ecn", "151400B", "--switch", "bpf"), "so none would be marked"),
    (("--ecn", "60kB", "--buffer", "61500B", "--switch", "bpf"), "so none would be marked"),
    (("--ecn", "1B", "--switch", "bpf"), "less than one frame"),
    (("--mtu", "68"), "576"),
    (("--mtu", "many"), "not a whole number"),
    (("--seed", "-1"), "a whole number from 0 to 4294967295"),
    (("--seed", "4294967295", "--repeat", "2"), "no room"),
    (("--repeat", "0"), "a whole number from 1 to 1000"),
    (("--deadline", "0s"), "more than zero"),
    (("--deadline", "-1s"), "negative"),
    (("--deadline", "1e9s"), '"1e9s" is more than 7 days'),
    (("--rate", "10kbit", "--workload", "allreduce:bytes=100MB"), "2.564e+05 s (2.97 days)"),
    (("--dilation", "nan"), "dilation=nan is not a number from 1 to 1000000000, or auto."),
    (("--delay", "5"), "no unit"),
    (("--delay", "-1ms"), "negative"),
    (("--delay", "1s"), "more than 0.1s"),
    (("--delay", "100ms", "--rate", "100gbit"), "GB under way"),
    (("--loss", "nan"), "not a chance"),
    (("--loss", "some"), "not a bit error rate"),
    (("--loss", "-1e-9"), "not a chance"),
    (("--loss", "1e-7", "--switch", "ovs"), "needs --switch bpf"),
    (("--byte-scale", "0.5"), "byte-scale"),
    (("--pcap", "h1-eth9"), 'no port "h1-eth9"'),
    (("--pcap", "h1-eth0,"), 'no port ""'),
    (("--topology", "fat-tree:k=4", "--pcap", "nope"), "and 84 more)"),
    (("--pcap", ""), "empty"),
    (("--out", ""), "empty"),
    (("--out", "x" * 300), "too long"),
    (("--out", "/dev/null"), "not a directory"),
    (("--out", "/dev/null/x"), "cannot be written"),
    (("--out", "/proc/x"), "cannot be written"),
    (("--out", "/run"), "private"),
    (("--workload", "ALLREDUCE"), 'did you mean "allreduce"?'),
    (("--workload", "pattern:stride=1,time=0s"), "above zero"),
    (("--routing", "sa:period=-1s"), 'the routing sa: period "-1s" is negative.'),
    (("--workload", "llm:params=1e9,layers=4,hidden=64,compression=topk:0"), 'workload llm: compression "topk:0": the'),
    (("--workload", "pattern:stride=1,class=nonsense"), 'there is no class "nonsense" (known: best-effort, '),
    (("--workload", "pattern:stride=1,class=gradient"), 'did you mean "gradients"?'),
    (("--workload", "pattern:stride=1,class=gold+glod", "--classes", "gold=weight:2"), 'did you mean "gold"?'),
    (("--frobnicate",), "Unrecognized arguments: --frobnicate"),
    (("--seed",), "expected one argument"),
    (("--cli", "--repeat", "2"), "several runs"),
    (("--verify=yes",), "explicit argument"),
])
def test_bad_options(refused: Refused, arguments: tuple[str, ...], words: str) -> None:
    given_names = set(arguments[::2])
    rest = [word for pair in zip(STAR[::2], STAR[1::2]) if pair[0] not in given_names for word in pair]
    assert words in refused(*rest, *arguments)


CM = "Nodes 4\nConnections 1\n"


@pytest.mark.parametrize("text, words", [
    ("Nodes 4\nConnections 2\n0->1 start 0 size 100\n", ":2: the header declares 2"),
    (CM + "0->1 id 0 start 0 size 100\n", ':3:9: id "0"'),
    (CM + "0->1 id 1 trigger 9 size 100\n", ":3: trigger 9 is not defined"),
    (CM + "0->1 start 0 size 0\n", ":3: size 0"),
    (CM + "0->0 start 0 size 9\n", ":3: node 0 sends to itself"),
    ("Nodes 9\nConnections 1\n0->8 start 0 size 100\n", ":3: node 8 needs a host"),
    (CM + "0->1 start 0 size 100 colour 3\n", 'unknown word "colour"'),
    ("", "is empty"),
    (b"\xff\xfe\x00", "is not text"),
])
def test_bad_connection_matrices(refused: Refused, tmp_path: Path, text: str | bytes, words: str) -> None:
    (tmp_path / "bad.cm").write_bytes(text if isinstance(text, bytes) else text.encode())
    assert words in refused("--topology", "star:hosts=4", "--workload", "bad.cm")


@pytest.mark.parametrize("text, words", [
    ("", "is empty"),
    (b"\x00\x01\x02", "is not text"),
    (b"\xff\xfe", "is not text"),
    ("a: [1\nb: }", "not valid YAML"),
    ("- topology", "is a mapping"),
    ("topolgy: star:hosts=4", 'did you mean "topology"?'),
    ("topology: star:hosts=4\ntopology: star:hosts=2", '"topology" is given twice'),
    ("topology: " + "[" * 5000, "too deep"),
    ("topology:", "is not a single value"),
    ("seed: yes", "seed=true is not a number."),
    ("seed: 2020-13-01", "not valid YAML"),
    ("byte-scale: 2\nbyte_scale: 3", '"byte-scale" is given twice'),
    ("jobs: [1]", "jobs.0=1 is neither a line"),
    ("jobs: [{name: a}]", "jobs.0.workload is missing."),
    ("matrix: {run: [3]}", "bad.yaml: run=3 is neither a line nor a list of words."),
    ("classes: {a: null}", 'class "a": null is not a mapping'),
    ("classes: {a: {weight: null}}", 'class "a": weight: null is not a single value.'),
    ("classes: {a: {weight: yes}}", 'class "a": weight=true is not'),
    ("matrix: {seed: [1, 2]}\ntable: {rows: seed, columns: seed}", 'rows and columns are both "seed"'),
    ("matrix: {seed: [1, 2]}\ntable: {rows: seed, notes: 3}", "table: notes: 3 is not text."),
    ("matrix: {seed: [1, 2]}\ntable: {rows: seed, published: [x]}", "table: published: [x] is not a name."),
    ("matrix: 5", "matrix"),
    ("matrix: {seed: []}", "lists no values"),
    ("matrix: {sede: [1]}", 'did you mean "seed"?'),
    ("matrix: {seed: [1, 1]}", "lists 1 twice"),
    ("matrix: {seed: [[1]]}", "seed"),
    ("repeat: 2\nmatrix: {seed: [1, 2]}", "leave one of them out"),
    ("matrix: {seed: %s, mtu: %s, cc: %s}" % ((list(range(600, 1000)),) * 3), "64000000 runs are more"),
    ("workload: pattern:stride=16", "would send to itself"),
])
def test_bad_experiment_files(refused: Refused, tmp_path: Path, text: str | bytes, words: str) -> None:
    (tmp_path / "bad.yaml").write_bytes(text if isinstance(text, bytes) else text.encode())
    assert words in refused("bad.yaml")


def test_a_class_that_is_given_twice(refused: Refused, tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("a: {weight: 2}\na: {weight: 3}\n")
    assert 'c.yaml:2:1: not valid YAML: "a" is given twice' in refused(*STAR, "--classes", "c.yaml")


def test_paths_that_are_no_files(refused: Refused, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    assert "does not exist" in refused("missing.yaml")
    assert "is a directory" in refused("folder")
    assert "not a regular file" in refused("/dev/zero")
    assert "empty" in refused("")


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
def test_a_file_that_may_not_be_read(refused: Refused, tmp_path: Path) -> None:
    (tmp_path / "secret.yaml").write_text("seed: 1")
    (tmp_path / "secret.yaml").chmod(0)
    assert "Permission denied" in refused("secret.yaml")


def test_an_option_of_the_matrix_is_not_overridden(refused: Refused, tmp_path: Path) -> None:
    (tmp_path / "m.yaml").write_text("matrix: {byte-scale: [1, 2]}")
    assert "also in the matrix" in refused("m.yaml", "--byte-scale", "4")


def test_earlier_results_and_other_files_are_not_overwritten(refused: Refused, tmp_path: Path) -> None:
    for name, words in (("summary.json", "an earlier result"), ("experiment.yaml", "would be overwritten")):
        (tmp_path / name).write_text("{}")
        assert words in refused(*STAR, "--out", str(tmp_path))
        (tmp_path / name).unlink()
    old = tmp_path / "seed=2"
    old.mkdir()
    (old / "summary.json").write_text("{}")
    assert "seed=2" in refused(*STAR, "--repeat", "2", "--out", str(tmp_path)), "before the first of the runs"


WORDS = st.text(st.characters(blacklist_categories=("Cs",), blacklist_characters="\0"), max_size=20)


@given(st.lists(WORDS, max_size=4))
@example(["--rate", "-1"])
@example(["--topology=\n"])
def test_no_arguments_make_a_traceback(words: list[str]) -> None:
    try:
        options.parse(words, "missing.yaml", "now")
    except BadInput as error:
        assert str(error).strip()
    except SystemExit as end:
        assert end.code == 0, "only --help, --version and --schema leave that way"


def test_options_override_a_file(tmp_path: Path) -> None:
    file = tmp_path / "e.yaml"
    file.write_text("topology: star:hosts=4\nbyte_scale: 3\nseed: 5\n")
    asked = options.parse([str(file), "--seed", "9", "--byte-scale", "2"], "none", "now")
    only, = asked.runs
    made = only.experiment
    assert (only.label, made.seed, made.byte_scale, made.topology) == ("", 9, 2.0, "star:hosts=4")
    assert asked.out == "results/now" and asked.dated


@pytest.mark.parametrize("word, shown", [("--help", "Exit status"), ("--version", "emulator "),
                                         ("--schema", '"$schema"')])
def test_words_that_only_print(capsys: pytest.CaptureFixture, word: str, shown: str) -> None:
    with pytest.raises(SystemExit) as end:
        run.main([word])
    assert end.value.code == 0 and shown in capsys.readouterr().out


@pytest.mark.parametrize("word", ["--help", "--schema", "--dry-run"])
def test_a_reader_that_leaves_or_a_full_disk_makes_no_traceback(word: str) -> None:
    command = [sys.executable, "-m", "emulator.run", *STAR, word]
    for redirected in ("| head -c 1", "> /dev/full", ">&-"):
        shell = f"{shlex.join(command)} {redirected}; exit ${{PIPESTATUS[0]}}"
        ended = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, timeout=60, cwd=ROOT)
        assert ended.returncode == 0 and "Traceback" not in ended.stderr, (redirected, ended.stderr)
        if redirected != ">&-":  # then argparse takes stderr
            assert ended.stderr.count("\n") == ("full" in redirected), (redirected, ended.stderr)


def test_the_help_fits_a_terminal_of_80_columns(capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit):
        run.main(["--help"])
    long = [line for line in capsys.readouterr().out.split("\n") if len(line) > 80 and " " in line.strip()]
    assert long == []
