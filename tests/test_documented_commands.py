"""Every command of the emulator that README and docs print is one that it takes: planned, nothing started."""
from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

import pytest

from emulator import run

ROOT = Path(__file__).resolve().parent.parent
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
_COMMAND = re.compile(r"(?:sudo )?(?:\./lab run|(?:\S*/)?python -m emulator\.run)\b(.*)")
_FILE = re.compile(r"(?:[a-z]+:|\./)?(?P<path>[\w./-]*(?:\.(?:yaml|cm|topo|goal|txt|csv|py)|/))(?:[,:].*)?")
READERS_FILES = {"mine.yaml", "my_matrix.cm", "incast.cm", "perm.cm", "fabric.topo", "llama7b.txt", "llama7b.csv",
                 "traces/"}
"""What a page tells its reader to have."""


def commands() -> list[tuple[str, str]]:
    """(page, arguments) of each command in a code block, each once; a backslash at a line's end goes on."""
    found: dict[str, str] = {}
    for page in PAGES:
        for line in page.read_text().replace("\\\n", " ").split("\n"):
            match = _COMMAND.fullmatch(line.strip())
            if match and line.startswith("    "):
                found.setdefault(shlex.join(words(match[1])), page.name)
    return [(page, arguments) for arguments, page in found.items()]


def words(arguments: str) -> list[str]:
    """As a shell would split them, without comments, redirections and what the page leaves to its reader."""
    split = shlex.split(arguments, comments=True)
    split = split[:split.index("<")] if "<" in split else split
    while split and split[-1] == "…":
        split = split[:-2] if split[-2:-1] and split[-2].startswith("--") else split[:-1]
    return split


SLOW = ("k=8", "labs/qos.yaml", "labs/overlap.yaml", "labs/collectives.yaml")
"""Whose ideal times take long to simulate."""


@pytest.mark.parametrize("page, arguments", [
    pytest.param(*command, marks=[pytest.mark.long] if command[1].endswith(SLOW) else []) for command in commands()])
def test_a_printed_command_is_taken(page: str, arguments: str, monkeypatch: pytest.MonkeyPatch,
                                    capsys: pytest.CaptureFixture) -> None:
    monkeypatch.chdir(ROOT)
    asked = shlex.split(arguments)
    named = {match["path"] for word in asked if (match := _FILE.fullmatch(word)) and not os.path.exists(match["path"])}
    if named:
        assert named <= READERS_FILES, f"{page}: {arguments}"
        pytest.skip(f"needs the reader's {', '.join(named)}")
    try:
        status = run.main(["--dry-run", *asked])
    except SystemExit as end:  # --help
        status = end.code
    said = capsys.readouterr()
    if status == 2 and "there is no program" in said.err:
        pytest.skip(said.err.strip())
    assert status == 0 and said.out and not said.err, f"{page}: {arguments}: {said.err}"


def test_pages_are_searched() -> None:
    found = commands()
    assert {"README.md", "routing.md", "links.md", "large.md"} <= {page for page, _ in found} and len(found) > 35


def test_pages_use_the_way_that_works_everywhere() -> None:
    """`sudo python -m` finds the environment only inside the Vagrant machine."""
    for page, line in ((page, line) for page in PAGES for line in page.read_text().split("\n")):
        assert not re.match(r"    (sudo )?python3? ", line), f"{page.name}: {line}"

