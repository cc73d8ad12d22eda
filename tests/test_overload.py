"""An overload: the switch and the kernel count the same drops, and not a packet is unaccounted for."""
from __future__ import annotations

import os
from pathlib import Path

import pytest

from benchmarks.drops import ARGUMENTS
from tests.commands import measure

pytestmark = [pytest.mark.root,
              pytest.mark.skipif(os.geteuid() != 0, reason="needs root: runs whole experiments")]


def test_drops_are_counted_alike(tmp_path: Path) -> None:
    summary = measure(tmp_path, *ARGUMENTS)
    loss = summary["loss"]
    assert loss["dropped_by_switch_count"] == loss["dropped_by_kernel_count"] > 10
    assert loss["count_difference"] == 0
    assert loss["dropped_packets"] >= loss["dropped_by_switch_count"]
    assert summary["workload"]["bytes_received"] == 1_000_000
    assert summary["transport"]["retransmitted_segments"] > 0
