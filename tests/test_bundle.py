"""The folder of a result: the user's, whole files only, nothing of anybody else's overwritten."""
from __future__ import annotations

import csv
import errno
import io
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.bundle import FILES, Bundle, csv_text, json_text
from emulator.errors import BadInput

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: gives files to another user")
SOMEBODY = 65534


def test_missing_folders_are_made_and_files_appear_whole(tmp_path: Path) -> None:
    made = Bundle(str(tmp_path / "a" / "b"))
    assert not (tmp_path / "a").exists(), "checking makes nothing"
    made.create()
    made.write("log.txt", "said\n")
    made.write("summary.json", b"{}")
    assert sorted(path.name for path in made.path.iterdir()) == ["log.txt", "summary.json"]
    assert (made.path / "log.txt").read_text() == "said\n"


@pytest.mark.parametrize("name", FILES)
def test_what_would_be_overwritten_needs_force(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("old")
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(BadInput, match="--force"):
        Bundle(str(tmp_path))
    Bundle(str(tmp_path), force=True).create()
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_other_files_do_not_matter(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    Bundle(str(tmp_path)).create()
    assert (tmp_path / "mine.txt").read_text() == "mine"


def test_two_results_of_one_second_have_a_folder_each(tmp_path: Path) -> None:
    taken = [Bundle(str(tmp_path / "results/now"), dated=True) for _ in range(3)]
    for each in taken:
        each.create()
    assert [each.path.name for each in taken] == ["now", "now-2", "now-3"]
    taken[1].discard()
    assert sorted(path.name for path in (tmp_path / "results").iterdir()) == ["now", "now-3"]


def test_a_folder_that_somebody_writes_into_is_refused_until_he_is_through(tmp_path: Path) -> None:
    first, second = (Bundle(str(tmp_path), force=True) for _ in "ab")
    first.create()
    with pytest.raises(BadInput, match="in use by another run"):
        second.create()
    first.write("summary.json", "{}")
    second.discard()
    assert (tmp_path / "summary.json").exists(), "it was not the second's to take back"
    first.close()
    second.create()
    assert not (tmp_path / "summary.json").exists()


def test_results_that_came_since_the_check_are_not_overwritten(tmp_path: Path) -> None:
    made = Bundle(str(tmp_path))
    (tmp_path / "summary.json").write_text("somebody's")
    with pytest.raises(BadInput, match="an earlier result"):
        made.create()
    assert (tmp_path / "summary.json").read_text() == "somebody's"


def test_force_takes_all_of_the_earlier_bundle_and_nothing_else(tmp_path: Path) -> None:
    for folder in ("seed=1", "seed=2", "mine"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "notes.txt").write_text("mine")
        (tmp_path / folder / "l1-eth1.pcap").touch()
        summary = {"captures": [{"file": "l1-eth1.pcap"}, {"file": "../../mine.pcap"}, {"file": "notes.txt"}, 3]}
        (tmp_path / folder / "summary.json").write_text(json_text(summary) if folder != "mine" else "{")
    (tmp_path / "seed=1/notes.txt").unlink()
    (tmp_path / "link").symlink_to(tmp_path / "mine", target_is_directory=True)
    (tmp_path / "empty").mkdir()
    (tmp_path / "mine.pcap").touch()
    named = ["seed=1", "seed=2", "empty", "..", ".", "/etc", "link", "gone", 5, None]
    (tmp_path / "summary.json").write_text(json_text({"runs": [*({"folder": name} for name in named), 7]}))
    Bundle(str(tmp_path), force=True).create()
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")) == [
        "empty", "link", "mine", "mine.pcap", "mine/l1-eth1.pcap", "mine/notes.txt", "mine/summary.json", "seed=2",
        "seed=2/notes.txt"]


@pytest.mark.parametrize("old", ["", "[]", "null", '{"runs": 3, "captures": {}}', "\x00"])
def test_force_minds_no_summary_of_others(tmp_path: Path, old: str) -> None:
    (tmp_path / "summary.json").write_text(old)
    Bundle(str(tmp_path), force=True).create()
    assert not list(tmp_path.iterdir())


def test_a_capture_does_not_overwrite_the_users_own(tmp_path: Path) -> None:
    (tmp_path / "l1-eth1.pcap").write_text("mine")
    Bundle(str(tmp_path), captures=["l1-eth2.pcap"])
    with pytest.raises(BadInput, match="l1-eth1.pcap, which would be overwritten"):
        Bundle(str(tmp_path), captures=["l1-eth1.pcap"])
    Bundle(str(tmp_path), captures=["l1-eth1.pcap"], force=True).create()
    assert not list(tmp_path.iterdir())


def test_a_file_that_could_not_be_written_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Bundle(str(tmp_path / "out"))
    made.create()
    made.write("log.txt", "old")
    monkeypatch.setattr(Path, "write_bytes", full_disk)
    with pytest.raises(OSError, match="No space left"):
        made.write("log.txt", "new")
    assert [path.name for path in made.path.iterdir()] == ["log.txt"] and (made.path / "log.txt").read_text() == "old"


def full_disk(path: Path, data: bytes) -> None:
    with open(path, "wb") as file:
        file.write(data[:1])
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_disk_is_noticed_before_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "write_bytes", full_disk)
    with pytest.raises(BadInput, match='/a/b" cannot be written: No space left on device'):
        Bundle(str(tmp_path / "a/b")).create()
    assert not list(tmp_path.iterdir())


def test_a_file_system_without_owners_is_noticed_before_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr("emulator.bundle.user_behind_sudo", lambda: (SOMEBODY, SOMEBODY))
    monkeypatch.setattr(os, "chown", refuse)
    for folder in (tmp_path, tmp_path / "a/b"):
        with pytest.raises(BadInput, match="its file system .* choose a directory on another one"):
            Bundle(str(folder)).create()
    assert not list(tmp_path.iterdir())


@pytest.mark.root
@needs_root
def test_everything_belongs_to_the_user_behind_sudo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUDO_UID", str(SOMEBODY))
    monkeypatch.setenv("SUDO_GID", str(SOMEBODY))
    before = tmp_path.stat().st_uid
    made = Bundle(str(tmp_path / "a" / "b"))
    made.create()
    made.write("log.txt", "")
    (made.path / "h1-eth0.pcap").write_bytes(b"")
    made.adopt("h1-eth0.pcap")
    assert {path.stat().st_uid for path in tmp_path.rglob("*")} == {SOMEBODY}
    assert tmp_path.stat().st_uid == before, "what was there before stays as it was"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(BadInput, match="cannot be written"):
        Bundle(str(tmp_path / "x")).create()


@given(st.lists(st.tuples(st.text(st.characters(blacklist_categories=("Cs",), blacklist_characters="\0\r")),
                          st.integers(), st.floats(allow_nan=False, allow_infinity=False)), max_size=5))
def test_csv_reads_back(rows: list[tuple]) -> None:
    read = list(csv.reader(io.StringIO(csv_text(("a", "b", "c"), rows))))
    assert read[0] == ["a", "b", "c"] and len(read) == 1 + len(rows)
    for (text, whole, number), got in zip(rows, read[1:]):
        assert got[0] == text and int(got[1]) == whole
        assert float(got[2]) == pytest.approx(number, rel=1e-5)


def test_json_ends_with_a_line_end() -> None:
    assert json_text({"a": None}) == '{\n "a": null\n}\n'
