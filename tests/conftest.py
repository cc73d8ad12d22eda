"""What all tests share: tests marked `root` are skipped, with the reason, where they cannot run."""
from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis.configuration import set_hypothesis_home_dir

CLONE = Path(__file__).resolve().parent.parent


def pytest_configure(config: pytest.Config) -> None:
    """Root leaves no .hypothesis in a user's clone."""
    if os.geteuid() == 0 and CLONE.stat().st_uid != 0:
        storage = tempfile.TemporaryDirectory(prefix="hypothesis-")
        config.add_cleanup(storage.cleanup)
        set_hypothesis_home_dir(storage.name)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what needs root where we are not."""
    if os.geteuid() == 0:
        return
    skip = pytest.mark.skip(reason="builds namespaces and links, so it needs root: sudo ./lab test")
    for item in items:
        if item.get_closest_marker("root"):
            item.add_marker(skip)
