"""The verdict knows what was meant to happen, and nothing more."""
from __future__ import annotations

from dataclasses import replace

import pytest

from emulator.events.record import EventsRecord, Happening, Tally
from emulator.fidelity import Planned, judge
from emulator.observe import observe
from tests.outcomes import outcome, plan
from tests.sound_run import PORTS, RATE_BPS, failed, only, sound, with_link, with_queue

DEAD = frozenset({"s1-eth2", "h2-eth0"})


def test_packets_that_a_dead_link_took_are_accounted_for_one_by_one():
    """Seven of those that went to s1-eth2 never left it."""
    run = with_link(with_link(sound(), "s1-eth2", tx_packets=983), "h2-eth0", rx_packets=983)
    run = replace(with_queue(run, "s1-eth2", sent_packets=983), group_packets={})
    assert "lost 7 inside" in only(run, "conservation").why
    planned = replace(run, planned=Planned(interrupted=DEAD, lost_at={"s1-eth2": 7}))
    assert not failed(planned)
    check = next(check for check in judge(planned).checks if check.name == "conservation")
    assert "7 went with a link that failed by plan" in check.why
    assert "lost 1 inside" in only(replace(run, planned=Planned(interrupted=DEAD, lost_at={"s1-eth2": 6})),
                                   "conservation").why


def test_what_the_device_refused_while_its_link_was_dead_is_not_counted_twice():
    run = with_link(with_link(sound(), "s1-eth2", tx_packets=983, tx_dropped=7), "h2-eth0", rx_packets=983)
    run = replace(with_queue(run, "s1-eth2", sent_packets=983), group_packets={},
                  planned=Planned(interrupted=DEAD, lost_at={"s1-eth2": 7}))
    assert not failed(run)


def test_a_port_that_is_down_by_plan_is_not_a_shaping_fault_but_another_is():
    faults = ("s1-eth2 is down.", "h2-eth0 has no carrier.")
    run = replace(sound(), link_faults=faults, planned=Planned(interrupted=DEAD, at_end=DEAD))
    assert not failed(run)
    other = replace(run, link_faults=(*faults, "s1-eth22 is down."))
    assert "s1-eth22" in only(other, "shaping").why


def test_a_degraded_port_owes_the_rate_to_nobody():
    shaped = {port.name: float(RATE_BPS) for port in PORTS} | {"s1-eth2": RATE_BPS / 10}
    run = replace(sound(), shaped_bps=shaped)
    assert "s1-eth2 is shaped to" in only(run, "shaping").why
    assert not failed(replace(run, planned=Planned(reshaped=DEAD, at_end=DEAD)))


@pytest.mark.parametrize("kind, excused", [("drain", True), ("undrain", True), ("link", True), ("switch", True),
                                           ("controller", False), ("degrade", False)])
def test_a_packet_that_new_tables_turn_back_on_its_way_is_the_events(kind, excused):
    lost = {"refused by bpf switches: same port": 5, "refused by bpf switches: malformed": 1}
    happening = Happening(f"1s {kind} x", kind, "x", False, 1.0, 1.0, 1.0, Tally())
    made = plan()
    seen = observe(made, replace(outcome(made), datapath_losses=lost, events=EventsRecord((happening,), Tally())))
    assert seen.datapath_losses == ({"refused by bpf switches: malformed": 1} if excused else lost)
    assert observe(made, replace(outcome(made), datapath_losses=lost)).datapath_losses == lost
