"""timeline.json is a trace that Perfetto opens."""
from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.timeline import trace
from tests.outcomes import START_S, engine_result, plan
from traffic.records import Iteration, Span

SPANS = st.lists(st.builds(
    lambda rank, kind, phase, start, length: Span(0, rank, kind, phase, 0, 10 + start, 10 + start + length),
    st.integers(0, 3), st.sampled_from(["compute", "send", "recv"]), st.sampled_from(["", "forward", "a b"]),
    st.floats(0, 100), st.floats(0, 100)))


@settings(max_examples=40)
@given(SPANS)
def test_every_span_is_a_complete_event_of_a_named_process(spans: list[Span]) -> None:
    hosts, events = ["h1", "h2", "h3", "h4"], [(12.0, "link down")]
    text = trace(spans, [Iteration(0, True, 10.0, 20.0)], hosts, 10.0, events)
    document = json.loads(text, parse_constant=lambda name: 1 / 0)
    events = document["traceEvents"]
    named = {event["pid"] for event in events if event["ph"] == "M" and event["name"] == "process_name"}
    for event in events:
        assert event["ph"] in "MXi" and event["name"] and event["pid"] in named
        if event["ph"] != "M":
            assert event["ts"] >= 0 and isinstance(event["tid"], int)
        if event["ph"] == "X":
            assert event["dur"] >= 0
    spans_shown = [event for event in events if event.get("cat") in ("compute", "send", "recv")]
    assert len(spans_shown) == len(spans)
    phases = [event for event in events if event.get("cat") == "phase"]
    assert len(phases) == len({(span.rank, span.phase) for span in spans if span.phase})


def test_a_replay_is_shown_from_its_start() -> None:
    made = plan(workload="allreduce:algorithm=ring,bytes=100kB")
    result = engine_result(made)
    hosts = [host.name for host in made.graph.hosts]
    events = json.loads(trace(result.spans, result.iterations, hosts, START_S))["traceEvents"]
    assert min(event["ts"] for event in events if "ts" in event) == 0
    assert sum("warm-up" in event["name"] for event in events) == made.workload.warmup
