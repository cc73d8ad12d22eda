"""Priority flow control over two hops: nothing of a lossless class is lost, and the port stays full."""
import pytest

from tests.commands import finish, measure

pytestmark = pytest.mark.root
LOAD = ("--topology", "leaf-spine:leaves=2,spines=1,hosts=3", "--rate", "5mbit", "--workload",
        "pattern:incast=5,class=gradients,time=3s")


@pytest.fixture(scope="module")
def paused(tmp_path_factory):
    return measure(tmp_path_factory.mktemp("lossless"), *LOAD, "--classes",
                   "gradients=weight:4+lossless:yes+buffer:0.6")


def test_nothing_is_lost_because_ports_are_paused(paused):
    row = paused["classes"]["by_class"][0]
    assert row["name"] == "gradients" and row["lossless"]
    assert row["pauses"] > 20 and row["dropped_packets"] == 0 == paused["loss"]["dropped_packets"]
    assert 0 < row["longest_pause_s"] <= row["paused_s"]
    assert next(c for c in paused["fidelity"]["checks"] if c["name"] == "lossless")["ok"]


def test_pauses_spread_from_the_full_port_to_the_senders(paused):
    ports = {each["port"] for each in paused["classes"]["by_class"][0]["pauses_by_port"]}
    assert {"h4-eth0", "h5-eth0", "s1-eth2"} <= ports, "the senders beside the receiver, and the spine's port to them"
    assert ports <= {"l1-eth4", "s1-eth2", *(f"h{number}-eth0" for number in range(1, 6))}


def test_the_full_port_never_runs_empty(paused):
    assert paused["workload"]["efficiency"] > 0.95


def test_a_queue_without_room_for_pauses_is_refused():
    status, _, said = finish(*LOAD, "--classes", "gradients=lossless:yes+buffer:0.1")
    assert status == 2 and "cannot be lossless on" in said and said.count("\n") == 1
