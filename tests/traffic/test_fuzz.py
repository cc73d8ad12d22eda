"""Some hundred spoilt files: read with the right number of ranks or refused in a sentence (see fuzz.py)."""
from __future__ import annotations

from pathlib import Path

import pytest

from tests.traffic.fuzz import attempt, formats, fuzz, star
from traffic.setting import Setting

CASES = 30
FORMATS = formats()


@pytest.mark.parametrize("name", FORMATS)
def test_unspoilt_files_are_read(tmp_path, name):
    for number, files in enumerate(FORMATS[name].bases):
        folder = Path(tmp_path / str(number))
        folder.mkdir()
        assert attempt(FORMATS[name], files, folder, Setting(star(), 10e6, 1500, 1)) == "read", number


@pytest.mark.parametrize("name", FORMATS)
def test_spoilt_files(name):
    outcomes = fuzz(name, FORMATS[name], CASES)
    assert set(outcomes) <= {"read", "refused"}, outcomes
    assert outcomes["refused"] > CASES // 5, "the mutations must matter"
