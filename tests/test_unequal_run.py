"""Two leaves, four spines, one uplink at a quarter: what really crosses each uplink."""
from __future__ import annotations

import os
from math import sqrt

import pytest

from emulator.asic.libbpf import supported
from tests.commands import measure, rows

pytestmark = [pytest.mark.root,
              pytest.mark.skipif(os.geteuid() != 0, reason="needs root: runs whole experiments"),
              pytest.mark.skipif(os.geteuid() == 0 and supported() is not None, reason="needs the bpf switch")]
FABRIC = ("--topology", "leaf-spine:leaves=2,spines=4,hosts=4,slow=1,slow_factor=0.25", "--switch", "bpf", "--quiet")
SHARES = {"s1": 1 / 13, "s2": 4 / 13, "s3": 4 / 13, "s4": 4 / 13}


def shares_of(out, leaf: str) -> dict[str, float]:
    """spine -> its part of all bytes that the leaf's uplinks counted."""
    counted = {row["destination"]: int(row["counted_bytes"]) for row in rows(out / "link_bytes.csv")
               if row["source"] == leaf and row["destination"] in SHARES}
    return {spine: sent / sum(counted.values()) for spine, sent in counted.items()}


def test_wcmp_divides_a_thousand_flows_by_what_the_uplinks_carry(tmp_path):
    """Small flows, which no queue drops. A leaf hashes 512 flows of data and the acknowledgements of as many;
    if only the data counted, a share p would have the standard deviation sqrt(p(1-p)/512).
    """
    out = tmp_path / "out"
    summary = measure(out, *FABRIC, "--routing", "wcmp", "--workload", "pattern:stride=4,bytes=128kB,flows=128",
                      "--rate", "5mbit", "--buffer", "2MB")
    assert summary["flows"]["count"] == 1024 and summary["loss"]["dropped_packets"] == 0
    for leaf in ("l1", "l2"):
        for spine, share in shares_of(out, leaf).items():
            p = SHARES[spine]
            assert abs(share - p) <= 5 * sqrt(p * (1 - p) / 512), (leaf, spine, share)


def test_adaptive_spares_a_link_that_is_slow_behind_the_next_switch(tmp_path):
    """l2's own port to s1 is as fast as the others: only its weight says that s1 passes on a quarter of it."""
    out = tmp_path / "out"
    summary = measure(out, *FABRIC, "--routing", "adaptive", "--workload", "pattern:stride=4,bytes=1MB,flows=4",
                      "--rate", "5mbit")
    for leaf in ("l1", "l2"):
        for spine, share in shares_of(out, leaf).items():
            assert share == pytest.approx(SHARES[spine], abs=0.03), (leaf, spine, "an equal share would be .25")
    assert summary["environment"]["reordering"] == "tolerated: tcp_min_rtt_wlen=0"
    assert any("tcp_min_rtt_wlen" in note for note in summary["notes"])
