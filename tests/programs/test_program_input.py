"""`--run`: words to a Program, what a rank is told, and the sentences for what cannot be."""
from __future__ import annotations

import sys
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from emulator.errors import BadInput
from emulator.experiment import dump, make, read_file
from emulator.matrix import expand
from emulator.fabric.spec import HostSite
from emulator.options import parse
from emulator.programs.environment import User, base, filled, of_rank
from emulator.programs.mpi import parse_status
from emulator.programs.spec import resolve_program
from tests.outcomes import plan
from topologies.catalog import resolve_topology
from topologies.graph import Host

SITES = [HostSite(f"h{n}", f"h{n}", f"10.0.0.{n}", f"h{n}-eth0") for n in (1, 2, 3)]


def on(hosts: int) -> tuple[Host, ...]:
    return resolve_topology(f"star:hosts={hosts}").hosts


def refusal(*words: str, hosts: int = 4) -> str:
    with pytest.raises(BadInput) as caught:
        resolve_program(words, on(hosts), 1)
    return str(caught.value)


def test_everything_after_run_belongs_to_the_program() -> None:
    asked = parse(["--rate", "5mbit", "--run", "each:ranks=2", sys.executable, "-x", "--rate", "-5"], "", "now")
    experiment = asked.runs[0].experiment
    assert experiment.run == ("each:ranks=2", sys.executable, "-x", "--rate", "-5")
    assert experiment.rate == "5mbit" and experiment.workload == "program"
    again = yaml.safe_load(dump(experiment))
    assert make(again) == experiment


@pytest.mark.parametrize("words, said", [
    (("eech", "true"), 'did you mean "each"'), (("each",), "names no command"), (("each:ranks=9", "true"), "9 ranks"),
    (("each:ranks=0", "true"), "ranks"), (("each:colour=red", "true"), "colour"),
    (("each", "true", "{foo}"), '{foo} is no placeholder (known: address, '),
    (("each", "true", "--id={rnak}"), 'did you mean "rank"?'), (("each", "awk", "{print}"), "write {{print}}"),
    (("mpi", "true", "{rank}"), "fills in no {rank}"), (("each", "/tmp"), "is a directory"),
    (("each", "no-such-program"), "no program"), (("each", __file__), "not executable"),
    (("torchrun", "/no/train.py"), "no script"), (("torchrun:python=/no/python", "-m", "x"), "no program"),
    (("mpi:port=3", "true"), "port"), (("each:connections=65", "true"), "65"), (("each", "true", "a\0b"), "zero byte")])
def test_what_cannot_be_is_one_sentence(words: tuple[str, ...], said: str) -> None:
    sentence = refusal(*words)
    assert said in sentence and "\n" not in sentence and sentence.endswith((".", "….")), sentence


def test_a_program_and_a_workload_exclude_each_other() -> None:
    with pytest.raises(BadInput, match="both given"):
        make({"run": "each true", "workload": "pattern:stride=1"})


@given(st.lists(st.text(max_size=12), max_size=4))
def test_any_words_give_a_program_or_a_sentence(words: list[str]) -> None:
    try:
        made = resolve_program(["each", *words], on(4), 1)
    except BadInput as error:
        assert str(error)
    else:
        assert list(made.command) == words and len(made.placement) == 4


def test_files_beside_an_experiment_file_are_found_from_anywhere(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("")
    (tmp_path / "x.yaml").write_text("run: torchrun:ranks=2 train.py --epochs 3\n")
    assert read_file(str(tmp_path / "x.yaml"))["run"] == (
        "torchrun:ranks=2", str(tmp_path / "train.py"), "--epochs", "3")
    (tmp_path / "m.yaml").write_text("matrix:\n  run: [each true, [torchrun, train.py]]\n")
    labels = [run.label for run in expand(read_file(str(tmp_path / "m.yaml")))]
    assert labels == ["run=each true", "run=torchrun train.py"]


def test_ranks_are_told_what_their_libraries_ask_for() -> None:
    made = resolve_program(["torchrun:ranks=3,connections=2", __file__, "{rank}", "{{a}}"], on(3), 1)
    told = of_rank(made, SITES, 1)
    assert {told[key] for key in ("RANK", "GROUP_RANK")} == {"1"} and told["WORLD_SIZE"] == "3"
    assert told["MASTER_ADDR"] == "10.0.0.1" and told["LOCAL_RANK"] == "0"
    assert told["GLOO_SOCKET_IFNAME"] == "h2-eth0,h2-eth0" and told["NCCL_SOCKET_IFNAME"] == "h2-eth0"
    assert filled(made, SITES, 1) == [sys.executable, "-u", __file__, "1", "{a}"]


@pytest.mark.parametrize("word, means", [
    ("{rank}/{world}:{host}", "1/3:h2"), ("{{rank}}", "{rank}"), ("{print $1}", "{print $1}"), ("${rank}", "${rank}"),
    ('{"a": {"rank": 1}}', '{"a": {"rank": 1}}'), ("{}", "{}"), ("{0}", "{0}"), ("{rank", "{rank"), ("{RANK}", "{RANK}"),
    ("x{peer}y{{z}}", "x10.0.0.3y{z}")])
def test_braces_are_placeholders_or_the_programs_own(word: str, means: str) -> None:
    made = resolve_program(["each:ranks=3", "true", word], on(3), 1)
    assert filled(made, SITES, 1) == ["true", means]


def test_a_program_finds_the_users_environment_without_ours() -> None:
    given_env = {"PYTHONPATH": "/clone:/mine", "EMULATOR_PAYLOAD_FD": "5", "HOME": "/root", "LANG": "C"}
    seen = base(given_env, "/clone", User(1000, 1000, (1000,), "ann", "/home/ann"))
    assert seen == {"PYTHONPATH": "/mine", "LANG": "C", "HOME": "/home/ann", "USER": "ann", "LOGNAME": "ann"}
    assert "PYTHONPATH" not in base({"PYTHONPATH": "/clone"}, "/clone", User(0, 0, (), "root", "/root"))


def test_a_plan_of_a_program_promises_nothing() -> None:
    made = plan(workload="program", run=["each:ranks=3,placement=random", "true"])
    assert made.ideal is None and made.expected is None and not made.workload.schedule.bytes_sent
    assert len(set(made.program.placement)) == 3 and made.deadline_s == 600
    assert made.capacity.packet_hops_per_s > 0


def test_the_status_of_an_mpi_rank_and_its_times() -> None:
    assert parse_status("139\n0m0.00s 0m0.01s\n1m2.50s 0m0.25s\n") == (139, 62.76)
