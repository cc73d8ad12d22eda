"""--background: flow-size distributions, Poisson arrivals at the load that was asked for, and every slip."""
from __future__ import annotations

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.errors import BadInput
from tests.outcomes import refusal
from traffic.background import arrivals, resolve_background
from traffic.setting import Setting
from traffic.sizes import PUBLISHED, SizeCdf, read_cdf


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_distributions(name):
    cdf = read_cdf(name)
    mean = numpy.mean([cdf.at(share) for share in numpy.linspace(0, 1, 200_001)])
    assert mean == pytest.approx(cdf.mean_bytes, rel=1e-3)
    assert {"websearch": 1.6e6, "datamining": 7.5e6}[name] == pytest.approx(cdf.mean_bytes, rel=0.1)


@given(st.lists(st.tuples(st.floats(1, 1e6), st.integers(0, 1000).map(lambda n: n / 1000)), min_size=1, max_size=8))
def test_a_share_of_the_flows_is_no_larger_than_its_size(points):
    sizes, shares = sorted(size for size, _ in points), sorted(share for _, share in points)
    cdf = SizeCdf("any", tuple(zip(sizes, [*shares[:-1], 1.0])))
    drawn = [cdf.at(share) for share in numpy.linspace(0, 1, 50)]
    assert drawn == sorted(drawn) and sizes[0] <= drawn[0] and drawn[-1] <= sizes[-1] * (1 + 1e-9)
    for size, share in cdf.points:
        assert cdf.at(share) <= size * (1 + 1e-9)


@pytest.mark.parametrize("text, sentence", [
    ("1000 50\n", "must have 100 percent"), ("1000 50\n900 100\n", ":2:1: sizes and percentages must not fall"),
    ("1000 60\n2000 50\n", "must not fall"), ("1000\n", "1 columns"), ("a b\n", "size"),
    ("1000 101\n", "percent"), ("# nothing\n", "must have 100 percent")])
def test_a_distribution_with_a_slip(tmp_path, text, sentence):
    (tmp_path / "own.cdf").write_text(text)
    with pytest.raises(BadInput, match=sentence):
        read_cdf(str(tmp_path / "own.cdf"))


@settings(max_examples=10, deadline=None)
@given(load=st.floats(0.05, 0.9), hosts=st.integers(2, 16), seed=st.integers(0, 99))
def test_the_background_offers_its_load(k4, load, hosts, seed):
    setting = Setting(k4, 10e6, 1500, 1, byte_scale=1000)
    flows = []
    for flow in arrivals(read_cdf("websearch"), load, hosts, setting, seed):
        flows.append(flow)
        if len(flows) == 3000:
            break
    sent = sum(flow.size_bytes for flow in flows) * 1514 / 1448
    assert 8 * sent / flows[-1].start_s / hosts / 10e6 == pytest.approx(load, rel=0.2)
    assert all(flow.source != flow.destination for flow in flows)
    assert {flow.source for flow in flows} == set(range(hosts)) == {flow.destination for flow in flows}


def test_a_longer_horizon_only_adds_flows(k4):
    setting = Setting(k4, 10e6, 1500, 1, byte_scale=1000)
    short, long = (resolve_background("cdf:datamining,load=0.2,seed=3", setting, s).flows for s in (20, 60))
    assert long[:len(short)] == short and len(long) > len(short)


@pytest.mark.parametrize("text, sentence", [
    ("websearch", "is not of the form"), ("cdf:", "is not of the form"), ("cdf:load=0.3", "is not of the form"),
    ("cdf:websearch,load=0", "not between 0 and 1"), ("cdf:websearch,load=1", "not between 0 and 1"),
    ("cdf:websearch,load=much", "not a valid value"), ("cdf:websearch,load=nan", "not between 0 and 1"),
    ("cdf:websearhc", "did you mean"), ("cdf:websearch,hosts=h1", "one host has nobody"),
    ("cdf:websearch,hosts=h1-h99", 'no host "h99"'), ("cdf:websearch,class=gold", 'no class "gold"'),
    ("cdf:websearch,speed=1", "no parameter"), ("cdf:websearch,load", "not of the form key=value"),
    ("cdf:datamining,load=0.0001", "no flow begins")])
def test_a_background_that_cannot_be(text, sentence):
    said = refusal(background=text)
    assert sentence in said and "\n" not in said


def test_too_many_flows_are_refused(tmp_path):
    (tmp_path / "tiny.cdf").write_text("1 100\n")
    assert "more than" in refusal(background=f"cdf:{tmp_path}/tiny.cdf,load=0.9", rate="1gbit")
