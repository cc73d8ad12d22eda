"""Fixtures: a private network and, in it, a host on a switch port (see shaped_pair)."""
from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from tests.telemetry.shaped_pair import Pair, private_network, shaped_pair


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "root: needs root; builds small real networks of its own")


@pytest.fixture
def sandbox() -> Iterator[None]:
    if os.geteuid() != 0:
        pytest.skip("needs root to make network namespaces")
    with private_network():
        yield


@pytest.fixture
def pair(sandbox: None) -> Iterator[Pair]:
    with shaped_pair() as both:
        yield both
