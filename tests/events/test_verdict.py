"""The verdict knows what was meant to happen, and nothing more."""
from __future__ import annotations

from dataclasses import replace

from emulator.fidelity import Planned, judge
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
