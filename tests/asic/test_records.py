"""The plain parts: lent places, queue plans, histograms, series of depths."""
import time
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.asic.chip import PortSite
from emulator.asic.histogram import gap_percentile, sojourn_bounds_ns, sojourn_percentile
from emulator.asic.layout import DEPARTURES, DROPS, GAP_BINS, MAX_CLASSES, QUEUE, SAMPLE, SOJOURN_BINS
from emulator.asic.places import Places
from emulator.asic.queueing import Queueing, TrafficClass, eight_queues, limits, one_queue
from emulator.asic.shaper import port_messages, service
from emulator.asic.telemetry import DepthSamples, QueueKey, QueueTelemetry
from emulator.errors import BadInput


@given(st.lists(st.sets(st.integers(0, 12), max_size=8), max_size=12))
def test_a_place_is_never_lent_twice_and_what_stays_keeps_it(revisions):
    places = Places("rules", 100, 16)
    for wanted in revisions:
        before, given_up = dict(places.in_force), set(places.in_force.values())
        places.release()
        with places.revision() as revision:
            for key in wanted:
                revision.place(key)
        now = places.in_force
        assert set(now) == wanted and len(set(now.values())) == len(wanted)
        assert all(now[key] == before[key] for key in wanted & set(before))
        assert not given_up & set(revision.added), "a place in force must not be lent anew at once"
        assert all(100 <= place < 116 for place in now.values())


def test_a_revision_that_fails_changes_nothing():
    places = Places("rules", 0, 2)
    with places.revision() as revision:
        revision.place("a")
    with pytest.raises(ValueError, match="no room for more rules"), places.revision() as revision:
        for key in "bcd":
            revision.place(key)
    assert list(places.in_force) == ["a"]
    with places.revision() as revision:
        revision.place("a")
        assert revision.place("b") == 1


@given(st.integers(0, 30 * 10**9))
def test_sojourn_bins_are_narrow(ns):
    bounds = sojourn_bounds_ns()
    assert len(bounds) == SOJOURN_BINS + 1 and (np.diff(bounds) > 0).all()
    at = int(np.searchsorted(bounds, ns, side="right")) - 1
    bins = np.zeros(SOJOURN_BINS, int)
    bins[at] = 5
    for percent in (1, 50, 99):
        assert abs(sojourn_percentile(bins, percent) * 1e9 - ns) <= max(0.0313 * ns, 33)


def test_percentiles_of_nothing_are_not_a_number():
    assert np.isnan(sojourn_percentile(np.zeros(SOJOURN_BINS, int), 50))
    bins = np.zeros(GAP_BINS, int)
    bins[3], bins[20] = 90, 10
    assert gap_percentile(bins, 90) == pytest.approx(0.035)
    assert gap_percentile(bins, 99) == pytest.approx(0.205)


def samples(*rows):
    key = QueueKey(PortSite(1, "l1-eth1", 5, bytes(6), 1e6, 9000), 0)
    time_s, queue, depth = (np.array(column) for column in zip(*rows, strict=True))
    return DepthSamples((key, key), 10.0, 11.0, time_s, queue, depth, 0)


def test_depth_is_held_from_sample_to_sample():
    series = samples((10.0, 0, 0), (10.25, 0, 100), (10.5, 1, 7), (10.75, 0, 300))
    times, grid = series.on_grid(0.125)
    assert list(times) == [10 + i / 8 for i in range(8)]
    assert list(grid[:, 0]) == [0, 0, 100, 100, 100, 100, 300, 300]
    assert list(grid[:, 1]) == [0, 0, 0, 0, 7, 7, 7, 7]
    assert series.percentiles(0, (20, 50, 90)) == [0, 100, 300]
    assert series.percentiles(1, (50, 51)) == [0, 7]


EIGHT = tuple(TrafficClass(weight=w, strict=w == 9) for w in (1, 2, 3, 9, 1, 9, 1, 1))


def test_service_of_classes():
    plan = service(eight_queues(EIGHT), 1514)
    assert [prio for _, prio in plan] == [2, 2, 2, 0, 2, 1, 2, 2], "strict ones first, in order"
    assert [quantum // 1514 for quantum, _ in plan] == [1, 2, 3, 9, 1, 9, 1, 1]
    assert service(one_queue(), 1514) == [(1514, 0)]


@given(st.integers(1600, 10**6), st.booleans(), st.booleans())
def test_messages_for_a_port(limit_bytes, many, pausable):
    queueing = eight_queues(EIGHT, pausable) if many else one_queue(pausable=pausable)
    messages = port_messages(7, 10e6, limit_bytes, 1500, queueing)
    assert len(messages) == (1 + 1 + 8 + 8 if many else 3)
    assert limits(queueing, limit_bytes, 1514) == [limit_bytes] * len(queueing.classes)


@pytest.mark.parametrize("make, sentence", [
    (lambda: Queueing((TrafficClass(),) * 3), "1 or 8 classes, not 3"),
    (lambda: Queueing(class_of_dscp=(0,) * 63 + (1,)), "a class below 1"),
    (lambda: eight_queues((TrafficClass(weight=0),) * MAX_CLASSES), "weight 0 of class 0"),
    (lambda: one_queue(mark_bytes=-5), "marks above -5 bytes"),
    (lambda: limits(one_queue(), 1000, 1514), "cannot hold one packet of 1514 bytes"),
    (lambda: service(eight_queues((TrafficClass(weight=100),) * MAX_CLASSES), 9014), "weights up to 22"),
])
def test_queues_that_cannot_be_are_refused(make, sentence):
    with pytest.raises(BadInput, match=sentence):
        make()


class Drained:
    """As much of a chip as a recording reads: one queue of one port, whose programs are this test."""

    classes = 1
    site = {5: PortSite(1, "l1-eth1", 5, bytes(6), 1e6, 9000)}

    def __init__(self):
        self.queues, self.drops = np.zeros(6, QUEUE), np.zeros(6, DROPS)
        self.memory = {"samples": np.zeros(8, SAMPLE), "sample_head": np.zeros(1, "<u8"),
                       "departures": np.zeros(6, DEPARTURES)}
        self.maps = {name: SimpleNamespace(array=lambda _, name=name: self.memory[name])
                     for name in self.memory}

    def observe(self, ifindex):
        """The kernel holds nothing any more."""

    def sample(self, time_ns, depth_bytes):
        head = int(self.memory["sample_head"][0])
        self.memory["samples"][head % 8] = time_ns, 5, depth_bytes
        self.memory["sample_head"][0] = head + 1


def test_the_last_change_counts_though_it_was_no_sample():
    """A queue drains just after a sample and idles to the end: nobody comes by to write that it is empty."""
    chip = Drained()
    telemetry = QueueTelemetry(chip)
    telemetry.start()
    now_ns = time.monotonic_ns()
    chip.sample(now_ns, 7000)
    chip.queues[5]["changed_ns"] = now_ns + 100_000
    time.sleep(0.02)
    _, _, depths = telemetry.finish()
    assert depths.percentiles(0, (50, 99, 100)) == [0, 0, 7000]
    assert list(depths.depth_bytes) == [0, 7000, 0, 0]
