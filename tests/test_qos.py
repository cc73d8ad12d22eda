"""Classes hold: shares by weight under overload, a strict class that does not wait, and what is so without."""
import pytest

from tests.commands import measure, rows

pytestmark = pytest.mark.root
RATE_BPS, FRAME_BITS = 5e6, 8 * 1514
LOAD = ("--topology", "star:hosts=9", "--rate", "5mbit", "--workload",
        "pattern:incast=8,class=all,load=0.3+1+1+1+1+1+1+1,time=5s")


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    out = tmp_path_factory.mktemp("classes")
    return measure(out, *LOAD, "--classes", "default"), out


@pytest.fixture(scope="module")
def one_queue(tmp_path_factory):
    return measure(tmp_path_factory.mktemp("off"), *LOAD)


def by_name(summary):
    return {row["name"]: row for row in summary["classes"]["by_class"]}


def test_shares_are_those_of_the_weights(served):
    summary, _ = served
    assert summary["classes"]["port"] == "s1-eth9" and summary["classes"]["contended_s"] > 1
    rows = by_name(summary)
    assert sum(row["share"] for row in rows.values()) == pytest.approx(1.0)
    weighted = [row for row in rows.values() if not row["strict"]]
    total = sum(row["weight"] for row in weighted)
    left = 1 - rows["management"]["share"]
    for row in weighted:
        assert row["fair_share"] == pytest.approx(left * row["weight"] / total), "all of them were backlogged"
        assert abs(row["share"] - row["fair_share"]) <= 0.03, row


def test_strict_does_not_wait_while_the_rest_fills_the_port(served):
    summary, _ = served
    strict = by_name(summary)["management"]
    assert strict["share"] == pytest.approx(0.3, abs=0.02)
    # its own burst: a sender that was held up sends several messages at once, and they wait for each other
    own_s = 8 * strict["queue_max_bytes"] / RATE_BPS
    assert strict["delay_p99_s"] <= 2 * FRAME_BITS / RATE_BPS + own_s
    assert summary["workload"]["efficiency"] > 0.95, "what a class leaves is lent to the others"


def test_without_classes_the_same_class_suffers(served, one_queue):
    with_classes, without = by_name(served[0])["management"], by_name(one_queue)["management"]
    assert without["messages"] == with_classes["messages"] and without["service"] == "one queue"
    assert without["delay_p50_s"] > 10 * with_classes["delay_p50_s"]
    assert without["fct_p50_s"] > 10 * with_classes["fct_p50_s"]


def test_the_bundle_has_who_was_served_when(served):
    summary, out = served
    listed = rows(out / "classes.csv")
    assert {row["class"] for row in listed} >= set(by_name(summary))
    sent = sum(int(row["sent_bytes"]) for row in listed if row["port"] == "s1-eth9")
    assert sent == pytest.approx(summary["links"]["by_tier"]["host-edge"]["payload_bytes_expected"] / 2, rel=0.08)
