"""Egress queues in the kernel: every packet is accounted for, and the shaping is what was asked for."""
import math

import pytest

from tests.asic.queue_scenes import BUFFER_BYTES, FRAME, K_BYTES, RATE_BPS

pytestmark = pytest.mark.root


@pytest.fixture(scope="module")
def incast(play):
    return play("queue_scenes", "incast")


def test_drops_and_marks_are_counted_exactly(incast):
    hot = incast["hot"]
    assert hot["dropped_packets"] > 100, "two senders at full rate must overflow the third's port"
    assert hot["dropped_packets"] == incast["tc"]["bfifo"] == incast["tc"]["htb"]
    assert incast["tc"]["clsact"] == 0
    assert hot["arrived_packets"] == sum(incast["sent"]) == hot["sent_packets"] + hot["dropped_packets"]
    assert sum(incast["received"]) == hot["sent_packets"] and hot["held_bytes"] == 0
    assert incast["elsewhere"] == incast["refused"] == 0
    assert hot["ect_packets"] == incast["sent"][0], "only the first sender marks its packets as ECT"
    assert hot["marked_packets"] > 100
    # two equal senders can fall in step, and then one of them has nearly all the drops
    assert hot["marked_packets"] >= incast["ce"][0] > 0, "marked packets may be dropped, none is added"
    assert incast["ce"][1] == 0, "a packet that is not ECT must not be marked"
    assert incast["faults"] == []
    assert [3, hot["sent_packets"], hot["dropped_packets"]] in incast["queue_states"]


def test_depth_and_delay_are_seen_packet_by_packet(incast):
    hot = incast["hot"]
    assert hot["oversize_packets"] == hot["chained_events"] == 0
    assert hot["depth_max_bytes"] <= BUFFER_BYTES and incast["grid_max"] <= BUFFER_BYTES
    assert BUFFER_BYTES - 2 * FRAME < incast["percentiles"][1], "the queue must have been full"
    assert incast["grid_elsewhere"] <= 2 * FRAME, "no other queue can build up"
    assert incast["lost"] == 0 and incast["samples"] > 500
    assert hot["timed_packets"] > 0.95 * hot["sent_packets"]
    # A packet that found the queue full waited for what was in it; in real time a port may be late.
    full_s = (BUFFER_BYTES - 2 * FRAME) * 8 / RATE_BPS
    assert full_s <= hot["sojourn_max_s"] and hot["sojourn_p99_s"] >= 0.95 * full_s
    assert K_BYTES < hot["depth_mean_bytes"] < BUFFER_BYTES


def test_a_queue_that_drained_and_idles_is_empty(play):
    """The last packets of a burst leave closer together than samples are taken."""
    seen = play("queue_scenes", "bursts")
    assert seen["lost"] == 0 and seen["max"] > 1000 and seen["percentiles"][2] > 1000, "bursts must queue"
    assert seen["percentiles"][:2] == [0, 0], seen
    # one sample is up to 250 us late, of the 5 ms that a burst takes
    assert abs(seen["sampled_mean"] - seen["mean"]) <= 0.15 * seen["mean"], seen


def test_weights_and_strict_priority(play):
    seen = play("queue_scenes", "classes")
    assert seen["faults"] == []
    first, second = seen["weighted"][:2]
    assert 0.72 <= first / (first + second) <= 0.78, "weights 3:1"
    assert math.isnan(seen["weighted_delay_s"]), "nothing used the strict class yet"
    offered = RATE_BPS / 16 * 1.5 * FRAME / 1400
    assert seen["strict"][7] >= 0.97 * offered, "the strict class gets all that it asks for"
    assert seen["strict_drops"][7] == 0
    first, second = seen["strict"][:2]
    assert 0.70 <= first / (first + second) <= 0.80, "the others share the rest by weight"


def test_a_paused_class_stops_and_loses_nothing(play):
    seen = play("queue_scenes", "gates")
    assert seen["faults"] == []
    paused, held, running = (seen["times"][name][1] for name in ("pause", "held", "running"))
    assert held - paused <= 1, "one packet may leave after the gate is shut"
    assert running > held, "packets leave at once after it opens"
    assert seen["dropped"] == seen["held"] == 0
    assert seen["received"] == seen["sent"]
    other = seen["windows"][1]
    assert min(sum(other[5:9]), sum(other[9:13])) > 0.95 * sum(other[:4]), "the other class is not held up"


def test_bit_errors_lose_what_they_should(play):
    seen = play("queue_scenes", "losses")
    (first, second), (got, got_second) = seen["sent"], seen["received"]
    assert first - got == seen["in"] and second - got_second == seen["out"]
    assert seen["all"] == seen["in"] + seen["out"], "nothing else is lost"
    for sent, lost, chance in ((first, seen["in"], 0.0488), (second, seen["out"], 0.0198)):
        deviation = math.sqrt(sent * chance * (1 - chance))
        assert abs(lost - sent * chance) < 4.5 * deviation


def test_weights_of_a_group_and_a_link_that_goes_down(play):
    seen = play("queue_scenes", "spread")
    assert seen["got"] == sum(seen["counts"]) == 1000
    assert abs(seen["share"] - 0.75) <= 0.03
    assert seen["port_down"] == 0, "no packet is sent to a dead port"
    assert max(seen["lost"]) <= 3, "only what was on the dead link is lost"
    assert len(seen["events"]) == 2


def test_no_packet_falls_between_two_tables(play):
    seen = play("queue_scenes", "revisions")
    assert seen["revisions"] == 300 and seen["refused"] == 0
    assert seen["sent"] == seen["received"] == seen["counted"] > 500
