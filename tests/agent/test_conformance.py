"""os-ken's switch test cases hold for all of the subset, and the rest is refused."""
from __future__ import annotations

from tests.agent import conformance


def test_no_case_fails() -> None:
    outcomes = conformance.run_all()
    failed = [outcome for outcome in outcomes if outcome.outcome == "failed"]
    assert not failed
    passed = {outcome.file for outcome in outcomes if outcome.outcome == "passed"}
    assert {"action/00_OUTPUT.json", "match/00_IN_PORT.json", "match/11_IPV4_SRC_Mask.json",
            "match/16_UDP_DST_IPv4.json", "match/08_IP_DSCP_IPv4.json"} <= passed
