"""Fixtures of the agent's tests."""
from __future__ import annotations

import os

import pytest


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "root: builds real namespaces; needs root")


@pytest.fixture(autouse=True)
def _root_only(request: pytest.FixtureRequest) -> None:
    if request.node.get_closest_marker("root") and os.geteuid() != 0:
        pytest.skip("needs root for a network namespace")
