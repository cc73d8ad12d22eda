"""Compressed gradients on a real fabric: the links carry the bytes of the encodings, and no more."""
from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.commands import measure, rows
from traffic.compression import parse_scheme
from traffic.wire import ETHERNET_BYTES, HEADER_BYTES

pytestmark = [pytest.mark.root,
              pytest.mark.skipif(os.geteuid() != 0, reason="needs root: runs whole experiments")]
PARAMETERS, RANKS, ROUNDS = 200_000, 4, 2


@pytest.mark.parametrize("name, sends", [
    pytest.param("int8", 2 * (RANKS - 1) / RANKS, marks=pytest.mark.long),
    pytest.param("1bit", 2 * (RANKS - 1) / RANKS, marks=pytest.mark.long),
    ("topk:0.01", RANKS - 1)])
def test_links_carry_what_the_encoder_makes(tmp_path: Path, name: str, sends: float) -> None:
    """`sends`: how many encodings a rank sends: chunks exchanged and sums gathered, or all encodings gathered.

    What a link's counters leave after 66 bytes of headers a packet is data.
    """
    out = tmp_path / "out"
    summary = measure(out, "--topology", f"star:hosts={RANKS}", "--rate", "10mbit", "--byte-scale", "1",
                      "--dilation", "1", "--workload",
                      f"llm:params={PARAMETERS},layers=4,hidden=64,seq=32,vocab=128,dp={RANKS},microbatches=1,"
                      f"compression={name}")
    encoded_bytes = parse_scheme(name).encoded_bytes(PARAMETERS)
    for link in rows(out / "link_bytes.csv"):
        data_bytes = int(link["counted_bytes"]) - (HEADER_BYTES + ETHERNET_BYTES) * int(link["counted_packets"])
        assert data_bytes == pytest.approx(ROUNDS * sends * encoded_bytes, rel=0.02), link
    for tier in summary["links"]["by_tier"].values():
        assert tier["counted_over_expected"] == pytest.approx(1, abs=0.02)
