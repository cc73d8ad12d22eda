"""Every path is proven, also where one host probes several others from the same ports."""
import pytest

pytestmark = pytest.mark.root


def test_one_host_probes_several_from_the_same_ports(play):
    seen = play("gate_scenes", "one_source")
    assert (seen["proof"]["udp"], seen["proof"]["tcp"]) == (8, 2)
    assert "h1" in seen["refused"] and "UDP port 10001: Address already in use" in seen["refused"]
