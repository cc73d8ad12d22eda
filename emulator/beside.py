"""The files that an experiment names, option by option, and where they lie: those of an experiment file relative
to it, as an include would, and those of a resolved experiment in full. Pure but for looking whether they are there.
"""
from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from emulator.job_entry import with_workload_files
from emulator.programs.spec import with_files, words
from traffic.background import with_cdf_file
from traffic.placement import with_placement_file

Place = Callable[[str], str]

# A file named by a topology or workload: FILE, hedera:FILE, FILE.py:Class, simai:FILE,key=value
_FILE = re.compile(r"(?P<head>[a-z]+:|job )?(?P<file>.+?)(?P<tail>(?<=\.py):.*|(?:,[a-z][a-z-]*=[^,]*)+)?")


def in_folder(path: Path) -> Place:
    """Where a file lies that is named relative to this folder."""
    return lambda name: str(path / name)


def in_full(name: str) -> str:
    """Where a file lies, from anywhere."""
    return str(Path(name).absolute())


def placed(option: str, value: Any, place: Place) -> Any:
    """The value of an option in which each file that it names is place(file), where that is there; all else is
    as it was. ValueError with the end of a sentence for a program that has no words.
    """
    if option == "jobs":
        return with_workload_files(value, lambda spec: _workload(spec, place))
    if option == "run":
        return _program(words(value), place)
    if not isinstance(value, str):
        return value
    if option == "workload":
        return _workload(value, place)
    if option in ("topology", "classes"):
        return _with_file(value, place)
    return with_cdf_file(value, place) if option == "background" else value


def _workload(spec: str, place: Place) -> str:
    return with_placement_file(_with_file(spec, place), place)


def _program(listed: tuple[str, ...], place: Place) -> tuple[str, ...]:
    """The words of a program: of its kind the placement's file, of the others those that are files."""
    found = with_files(listed, lambda word: place(word) if os.path.isfile(place(word)) else None)
    return tuple(with_placement_file(word, place) if not number else word for number, word in enumerate(found))


def _with_file(text: str, place: Place) -> str:
    match = _FILE.fullmatch(text)
    if match is None:
        return text
    file = place(match["file"])
    # 'star' is a topology even beside a file of that name
    found = os.path.exists(file) if match["head"] else "." in match["file"] and os.path.isfile(file)
    return f"{match['head'] or ''}{file}{match['tail'] or ''}" if found else text
