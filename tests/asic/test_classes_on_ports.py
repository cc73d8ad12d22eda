"""Classes on the ports of hosts and switches: the sender serves them too, and a new weight holds at once."""
import pytest

pytestmark = pytest.mark.root


@pytest.fixture(scope="module")
def sender(play):
    return play("class_scenes", "sender")


def test_a_host_serves_its_classes_by_weight(sender):
    gradients, storage, rest = sender["before"]["received"]
    assert gradients / storage == pytest.approx(3.0, rel=0.06)
    assert storage / rest == pytest.approx(1.0, rel=0.06)


def test_strict_loses_nothing_at_an_overloaded_sender(sender):
    for phase in ("before", "after"):
        sent, received = sender[phase]["strict"]
        assert sent == received > 50


def test_a_weight_changes_while_packets_flow(sender):
    gradients, storage, rest = sender["after"]["received"]
    assert gradients / storage == pytest.approx(1.0, rel=0.06)
    assert storage / rest == pytest.approx(3.0, rel=0.06)
    assert sender["weights"] == [None, 3, 3, 1]


def test_the_ports_are_read_back(sender):
    assert sender["faults"] == [] and sender["rates"] == [10e6]
    assert len(sender["faults_of_old"]) == 6, "one class of each of six ports has another weight than expected"
    assert all("quantum" in fault for fault in sender["faults_of_old"])
    ours = sender["sent"][4:]  # a short frame went through each class of each port when it was made
    assert len(set(ours)) == 1 and all(sent > ours[0] for sent in sender["sent"][:4])
