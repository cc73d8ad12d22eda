"""Events as they are written: read, put in order, checked one after the other, or refused in one sentence."""
from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.errors import BadInput
from emulator.events import parse_events
from emulator.events.check import check_events
from topologies.catalog import resolve_topology

GRAPH = resolve_topology("leaf-spine:leaves=2,spines=2,hosts=2")


def check(*texts: str, switch: str = "bpf") -> None:
    check_events(parse_events(texts), GRAPH, "ecmp", 1, switch, 60.0, 3, ["", "all-reduce"], 1514)


def test_events_come_in_the_order_of_their_times():
    events = parse_events(["3s link l1-s1 up", "500ms link l1-s1 down", "2s degrade l1-s2 10%"])
    assert [(event.when.time_s, event.kind, event.up) for event in events] == [
        (0.5, "link", False), (2.0, "degrade", False), (3.0, "link", True)]
    assert events[1].value == pytest.approx(0.1)


@given(st.integers(1, 50), st.integers(20, 5000))
def test_a_flap_is_its_downs_and_ups(count, period_ms):
    events = parse_events([f"1s flap l1-s1 period={period_ms}ms,count={count}"])
    assert [event.up for event in events] == [False, True] * count
    assert events[-1].when.time_s == pytest.approx(1 + (count - 0.5) * period_ms / 1000)
    assert events[0].text.endswith("(down 1)") and events[-1].text.endswith(f"(up {count})")


def test_steps_with_a_time_after_them():
    at_iteration, at_phase = parse_events(["iteration=2+500ms switch s1 down", "phase=all-reduce switch s1 up"])
    assert (at_iteration.when.iteration, at_iteration.when.time_s) == (2, 0.5)
    assert (at_phase.when.phase, at_phase.when.time_s) == ("all-reduce", 0.0)
    check("iteration=2+500ms switch s1 down", "phase=all-reduce switch s1 up")


@pytest.mark.parametrize("texts, says", [
    (["1s link l1-s9 down"], 'no link or switch "l1-s9"'),
    (["1s switch s9 down"], 'no switch "s9"'),
    (["1s link s1 down"], "s1 is a switch"),
    (["1s link l1-s1 down", "2s link s1-l1 down"], "s1-l1 is already down"),
    (["1s switch s1 down", "2s link l1-s1 down"], "l1-s1 is already down then, with switch s1"),
    (["1s link l1-s1 down", "2s switch s1 down", "3s link l1-s1 up"], "cannot come up while switch s1 is down"),
    (["1s link l1-s1 up"], "l1-s1 is not down"),
    (["1s switch s1 up"], "s1 is not down"),
    (["1s controller up"], "controller is not down"),
    (["1s controller down", "2s controller down"], "controller is already down"),
    (["1s controller down", "2s drain l1-s1"], "controller, which drains, is down"),
    (["1s drain l1-s1", "2s drain l1-s1"], "already drained"),
    (["1s drain l1-s1", "2s drain l1-s2"], "would cut off"),
    (["1s link l1-s1 down", "2s drain l1-s2"], "would cut off the hosts at l1, l2"),
    (["1s switch s1 down", "2s drain s2"], "would cut off the hosts at l1, l2"),
    (["iteration=1 degrade l1-s2 50%", "3s link l1-s1 down", "1s link l1-s1 up"], "l1-s1 is not down"),
    (["iteration=1+3s switch s1 down", "2s degrade l1-s2 50%", "iteration=1 switch s1 up"], "s1 is not down"),
    (["60s link l1-s1 down"], "not before the deadline of 60 s"),
    (["iteration=4 link l1-s1 down"], "3 iterations"),
    (["phase=al-reduce link l1-s1 down"], 'did you mean "all-reduce"'),
    (["1s loss l1-s1 1e-3"], "give at most 1.7e-05"),
    (["1s loss l1-s1 x"], '"x" is neither a bit error rate'),
    (["1s degrade l1-s1 0%"], "not a share"), (["1s degrade l1-s1 1"], "not a share"),
    (["1s degrade l1-s1 1.2.3%"], "not a share"),
    (["1s link l1-s1 off"], '"off" is neither up nor down'), (["1s link l1-s1"], "written link A-B down|up"),
    (["link l1-s1 down"], 'no event "l1-s1"'), (["1s"], "AT KIND TARGET"),
    (["1s lnk l1-s1 down"], 'did you mean "link"'), (["-1s link l1-s1 down"], "is negative"),
    (["1s flap l1-s1 period=1s"], "a period and a count"), (["1s flap l1-s1 period=1ms,count=2"], "shorter than")])
def test_slips_are_one_sentence_with_the_event_in_it(texts, says):
    with pytest.raises(BadInput) as refused:
        check(*texts)
    assert says in str(refused.value) and "\n" not in str(refused.value)
    assert any(text in str(refused.value) for text in texts)


def test_a_link_that_is_up_again_is_a_way_around():
    check("1s link l1-s1 down", "2s link l1-s1 up", "3s drain l1-s2")
    check("1s switch s1 down", "2s switch s1 up", "3s drain s2")


WHENS = st.one_of(st.integers(0, 9).map(lambda n: f"{n}s"),
                  st.tuples(st.sampled_from(["iteration=1", "iteration=2", "phase=a"]), st.integers(0, 9))
                  .map(lambda pair: f"{pair[0]}+{pair[1]}s"))


@given(st.lists(WHENS, max_size=12))
def test_events_of_one_moment_come_in_order_and_the_others_as_written(whens):
    texts = [f"{when} degrade l1-s1 {number + 1}%" for number, when in enumerate(whens)]
    events = parse_events(texts)
    assert sorted(event.text for event in events) == sorted(texts)
    assert [event.when.moment for event in events] == [parse_events([text])[0].when.moment for text in texts]
    for moment in {event.when.moment for event in events}:
        times = [event.when.time_s for event in events if event.when.moment == moment]
        assert times == sorted(times)


def test_open_vswitch_loses_nothing_on_request():
    with pytest.raises(BadInput, match="needs --switch bpf"):
        check("1s loss l1-s1 1e-6", switch="ovs")


@given(st.lists(st.text(alphabet="1s link-d0%=+phase\n", max_size=20), max_size=3))
def test_any_text_is_read_or_refused(texts):
    try:
        parse_events(texts)
    except BadInput as refused:
        assert "event" in str(refused)
