"""The folder of a result: the user's, whole files only, nothing of anybody else's overwritten."""
from __future__ import annotations

import csv
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
