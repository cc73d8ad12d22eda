"""Results that cannot be kept, or that nobody reads any more: what was measured is still said, with its status."""
from __future__ import annotations

import errno
import os
import sys
from pathlib import Path

import pytest

from emulator import run
from emulator.bundle import Bundle
from emulator.progress import Progress
from tests.commands import strict_json
from tests.outcomes import outcome

ARGUMENTS = ("--topology", "star:hosts=4", "--workload", "pattern:stride=1,bytes=100kB", "--rate", "5mbit")


@pytest.fixture(autouse=True)
def no_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("emulator.requirements.require", lambda plans: None)
    monkeypatch.setattr(run, "_run", lambda plan, folder, mode: outcome(plan))


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Paths that have no room for a file; a name with '/' in it is a folder's and the file's."""
    full: set[str] = set()
    plain = Bundle.write

    def write(self: Bundle, name: str, content: str | bytes) -> None:
        if full & {name, f"{self.path.name}/{name}"}:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        plain(self, name, content)

    monkeypatch.setattr(Bundle, "write", write)
    return full


def test_a_full_disk_costs_files_not_the_report(disk: set[str], tmp_path: Path,
                                                capsys: pytest.CaptureFixture) -> None:
    disk.add("flows.csv")
    assert run.main([*ARGUMENTS, "--quiet", "--out", str(tmp_path)]) == 4
    said = capsys.readouterr()
    assert "Verdict:" in said.out and "completion of an iteration" in said.out
    assert said.err.startswith(f"emulator: the files in {tmp_path} are not complete: No space left on device;")
    assert said.err.count("\n") == 1 and not (tmp_path / "summary.json").exists()


def test_the_runs_that_follow_and_the_summary_are_not_lost(disk: set[str], tmp_path: Path,
                                                           capsys: pytest.CaptureFixture) -> None:
    disk.add("seed=2/flows.csv")
    assert run.main([*ARGUMENTS, "--repeat", "3", "--quiet", "--out", str(tmp_path)]) == 4
    said = capsys.readouterr()
    assert said.out.count("Verdict:") == 3 and "All runs" in said.out and "Over the seeds" in said.out
    runs = strict_json(tmp_path / "summary.json")["runs"]
    assert [each["folder"] for each in runs] == ["seed=1", "seed=2", "seed=3"]
    assert (tmp_path / "seed=3/summary.json").exists() and not (tmp_path / "seed=2/summary.json").exists()


def test_a_summary_of_all_that_cannot_be_kept(disk: set[str], tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    disk.add(f"{tmp_path.name}/summary.json")
    assert run.main([*ARGUMENTS, "--repeat", "2", "--quiet", "--out", str(tmp_path)]) == 4
    said = capsys.readouterr()
    assert "All runs" in said.out and said.err.count("are not complete") == 1


def test_a_folder_that_cannot_be_made_is_refused_before_the_first_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                                      capsys: pytest.CaptureFixture) -> None:
    make = Path.mkdir

    def mkdir(self: Path, *args: object, **named: object) -> None:
        if self.name == "seed=3":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        make(self, *args, **named)

    monkeypatch.setattr(Path, "mkdir", mkdir)
    assert run.main([*ARGUMENTS, "--repeat", "3", "--out", str(tmp_path / "out")]) == 2
    said = capsys.readouterr()
    assert said.out == "" and "seed=3" in said.err and not list(tmp_path.iterdir())


def test_runs_of_equal_names_and_long_ones_have_folders_of_their_own(tmp_path: Path) -> None:
    tables = [f"{{{'-'.join(['name'] * 40)}: {{weight: {weight}}}}}" for weight in (1, 2)]
    file = tmp_path / "lab.yaml"
    file.write_text(f"switch: bpf\nmatrix: {{classes: [{', '.join(tables)}]}}\n")
    assert run.main([str(file), *ARGUMENTS, "--quiet", "--out", str(tmp_path / "out")]) in (0, 5)
    runs = strict_json(tmp_path / "out/summary.json")["runs"]
    folders = {each["folder"] for each in runs}
    assert len(folders) == 2 and max(map(len, folders)) < 140
    for each in runs:
        assert strict_json(tmp_path / "out" / each["folder"] / "summary.json")["experiment"]["label"] == each["label"]


def test_two_runs_of_one_second_do_not_see_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                      capsys: pytest.CaptureFixture) -> None:
    class Clock(run.datetime.datetime):
        @classmethod
        def now(cls, tz: object = None) -> Clock:
            return cls(2026, 12, 1)

    monkeypatch.setattr(run.datetime, "datetime", Clock)
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        assert run.main([*ARGUMENTS, "--quiet"]) in (0, 5)
    name = "2026-12-01-000000"
    assert sorted(path.name for path in (tmp_path / "results").iterdir()) == [name, f"{name}-2"]
    assert f"Result bundle: results/{name}-2" in capsys.readouterr().out


def test_force_leaves_no_run_of_an_earlier_matrix(tmp_path: Path) -> None:
    for repeat, left in ((3, {"seed=1", "seed=2", "seed=3", "summary.json"}), (2, {"seed=1", "seed=2", "summary.json"})):
        run.main([*ARGUMENTS, "--repeat", str(repeat), "--quiet", "--force", "--out", str(tmp_path)])
        assert {path.name for path in tmp_path.iterdir()} == left


def test_a_capture_asks_before_it_overwrites(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    (tmp_path / "h1-eth0.pcap").write_text("mine")
    assert run.main([*ARGUMENTS, "--pcap", "h1-eth0", "--quiet", "--out", str(tmp_path)]) == 2
    assert "h1-eth0.pcap, which would be overwritten" in capsys.readouterr().err
    assert (tmp_path / "h1-eth0.pcap").read_text() == "mine"


@pytest.fixture
def nobody_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as stream:
        monkeypatch.setattr(sys, "stderr", stream)
        yield


@pytest.mark.usefixtures("nobody_reads")
def test_a_matrix_goes_on_when_the_reader_of_its_progress_has_left(tmp_path: Path) -> None:
    assert run.main([*ARGUMENTS, "--repeat", "2", "--out", str(tmp_path)]) in (0, 5)
    assert len(strict_json(tmp_path / "summary.json")["runs"]) == 2
    assert run.main([*ARGUMENTS, "--rate", "never"]) == 2


@pytest.mark.parametrize("error", [BrokenPipeError(errno.EPIPE, "gone"), OSError(errno.ENOSPC, "full")])
def test_progress_that_cannot_be_said_is_silent(error: OSError, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    with open(os.devnull, "w") as stream:
        monkeypatch.setattr(sys, "stderr", stream)

        def write(text: str) -> None:
            said.append(text)
            raise error

        monkeypatch.setattr("emulator.stdout.sys.stderr", Stream(write, stream.fileno()))
        progress = Progress(quiet=False)
        for stage in ("one", "two", "three"):
            progress.stage(stage)
        progress.done()
    assert len(said) == 1 and [stage.name for stage in progress.stages] == ["one", "two", "three"]


class Stream:
    """Standard error that takes nothing."""

    def __init__(self, write: object, number: int) -> None:
        self.write, self.number = write, number

    def fileno(self) -> int:
        return self.number

    def isatty(self) -> bool:
        return False

    def flush(self) -> None:
        raise AssertionError("never reached")
