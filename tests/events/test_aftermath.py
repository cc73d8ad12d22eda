"""What followed an event, from records made by hand."""
from __future__ import annotations

import pytest

from emulator.events.aftermath import aftermath, instants
from emulator.events.record import EventsRecord, Happening, Tally

START = 100.0


def happening(at_s: float, text: str, up: bool, tally: Tally, **values) -> Happening:
    kind, target = text.split()[0], text.split()[1]
    return Happening(text, kind, target, up, START + at_s - 0.001, START + at_s, START + at_s + 0.002, tally, **values)


def received(rates: list[tuple[float, float]]) -> list[tuple[float, int]]:
    """(seconds, bytes a second) stretches as the engine's series."""
    points, time, total = [(START, 0)], START, 0.0
    for seconds, rate in rates:
        for _ in range(round(seconds / 0.1)):
            time, total = time + 0.1, total + rate * 0.1
            points.append((time, round(total)))
    return points


RECORD = EventsRecord(
    (happening(2.0, "link l1-s1 down", False, Tally({"link down": 0, "port down": 1}, 5),
               ports=("l1-eth3", "s1-eth1"), avoided_s=START + 2.0005, avoided_packets=40),
     happening(5.0, "link l1-s1 up", True, Tally({"link down": 48, "port down": 1}, 60), ports=("l1-eth3", "s1-eth1"))),
    Tally({"link down": 48, "port down": 4}, 61),
    port_events=({"time_s": START + 2.004, "switch": "s1", "port": 1, "up": False},
                 {"time_s": START + 2.003, "switch": "l2", "port": 9, "up": False},
                 {"time_s": START + 5.003, "switch": "l1", "port": 3, "up": True}),
    repairs=({"began_s": START + 2.004, "done_s": START + 2.030, "changes": 7},
             {"began_s": START + 5.003, "done_s": START + 5.020, "changes": 7}))


def test_each_event_gets_what_followed_it_and_nothing_else():
    down, up = aftermath(RECORD, received([(2, 1000), (1, 400), (4, 1000)]), START, START + 7)
    assert down.at_s == pytest.approx(2.0) and down.lateness_s == pytest.approx(0.001)
    assert down.detected_s == pytest.approx(0.004), "l2's port is not of this link"
    assert down.local_s == pytest.approx(0.0005) and down.rerouted_packets == 40
    assert down.repaired_s == pytest.approx(0.030) and down.changes == 7
    assert down.lost == {"link down": 48} and down.retransmitted == 55
    assert down.rate_before_bps == pytest.approx(8000) and down.rate_back_s == pytest.approx(1.0, abs=0.11)
    assert up.lost == {"port down": 3} and up.retransmitted == 1
    assert up.detected_s == pytest.approx(0.003) and up.rate_back_s is None
    marks = [text for _, text in instants([down, up], START)]
    assert "event: link l1-s1 down" in marks and "local repair after link l1-s1 down" in marks


def test_a_rate_that_never_comes_back_is_none_and_one_that_never_fell_is_at_once():
    fell = aftermath(RECORD, received([(2, 1000), (5, 400)]), START, START + 7)[0]
    assert fell.rate_back_s is None and fell.rate_before_bps == pytest.approx(8000)
    assert aftermath(RECORD, received([(7, 1000)]), START, START + 7)[0].rate_back_s == 0


def test_a_controller_that_returned_had_read_every_switch():
    record = EventsRecord(
        (happening(1.0, "controller c down", False, Tally()), happening(4.0, "controller c up", True, Tally())),
        Tally(), adoptions=({"done_s": START - 3, "changes": 12}, {"done_s": START + 4.6, "changes": 0}))
    down, up = aftermath(record, received([(7, 1000)]), START, START + 7)
    assert (down.repaired_s, down.changes) == (None, None)
    assert up.repaired_s == pytest.approx(0.6) and up.changes == 0
