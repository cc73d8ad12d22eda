"""The forwarding program in the kernel does what the pipeline's definition says."""
import pytest

pytestmark = pytest.mark.root


def test_random_tables_are_looked_up_by_priority(play):
    seen = play("pipeline_scenes", "look_ups")
    assert seen["wrong"] == []
    assert seen["tried"] == 1500 and 100 < seen["misses"] < 1400
    assert seen["no_rule"] == seen["misses"]


@pytest.fixture(scope="module")
def choices(play):
    return play("pipeline_scenes", "choices")


def test_groups_choose_as_their_mode_says(choices):
    for name in ("hash", "dp_hash", "own_seed"):
        assert choices[f"{name}_differs"] == 0, f"{name}: hashing.py and the program choose differently"
    assert abs(choices["weights_3_1"] - 0.75) <= 0.03
    first = choices["round_robin"][0]
    assert choices["round_robin"] == [(first + turn) % 4 for turn in range(12)]
    assert choices["two_in_step"] == [[0, 1, 2, 3]] * 2, "flows that alternate must not share out the members"
    assert choices["weighted_round_robin"] == [64, 64, 128]
    assert sum(choices["random"]) == 400 and min(choices["random"]) > 60
    assert choices["flowlet_together"] == 1
    assert len(set(choices["flowlet_apart"])) > 1


def test_only_live_members_are_used_from_the_first_packet_on(choices):
    assert choices["failover"] == [0, 1]
    assert choices["dead_still_used"] == 0
    assert choices["moved_though_alive"] == 0, "flows of live members must stay where they are"
    assert choices["refugees"] == [1, 2, 3], "the flows of the dead member go to all others"
    assert choices["spray_around_dead"] == [1, 2, 3]
    assert choices["all_dead"] is None and choices["no_live_bucket"] == 1


def test_least_queue_takes_the_emptiest_port(play):
    seen = play("pipeline_scenes", "least_queue")
    assert min(range(4), key=seen["depths"].__getitem__) == 2, f"the gates held {seen['depths']}"
    assert seen["per_packet"] == [2]
    assert seen["flowlet_stays"] == [2, 2]
    assert seen["others_go"] == [0]


def test_least_queue_counts_what_a_slower_path_still_has_to_pass_on(play):
    seen = play("pipeline_scenes", "least_queue_weighted")
    for taken, share in zip(seen["taken"], (40, 40, 40, 10), strict=True):
        assert abs(taken - share) <= 4, seen["taken"]
    assert seen["with_a_weight_of_0"] == [0, 1, 2]


def test_events_and_refusals(play):
    seen = play("pipeline_scenes", "events")
    leaf = seen["leaf"]
    assert seen["packet_ins"] == [[leaf, 2, True]] * 3
    assert seen["packet_out_bytes"] == 100
    assert [leaf, 3, False] in seen["port_status"]
    assert seen["refused"] == "this switch has no port 77; it has 1, 2, 3."
    assert seen["old_tables_stand"] == 4, "a refused table must leave the old one and its counts"


def test_a_packet_out_of_any_size_that_the_port_takes(play):
    seen = play("pipeline_scenes", "large_frames")
    assert seen["found"] == [[size, True] for size in (14, 60, 2048, 2049, 3600, 9014)]
    assert len(seen["refused"]) == 3
    assert seen["refused"][1] == "a frame of 9015 bytes cannot be sent: l1-eth1 takes 14 to 9014 bytes."
