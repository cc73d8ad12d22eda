"""Controller, agent and programs do together what a select group's weights and live buckets promise."""
import shutil

import pytest

pytestmark = pytest.mark.root


@pytest.mark.skipif(shutil.which("ovs-ofctl", path="/usr/bin:/usr/sbin:/usr/local/bin") is None,
                    reason="ovs-ofctl is not installed; it changes the group")
def test_a_weighted_group_divides_flows_and_a_dead_link_moves_them(play):
    seen = play("joint_scenes", "weighted")
    for name in ("equal", "weighted", "after"):
        assert seen[name]["arrived"] == 1000, (name, seen[name])
    assert abs(seen["equal"]["l1-eth2"] / 1000 - 0.5) <= 0.05
    assert "weight:3" in seen["groups"], seen["groups"]
    assert abs(seen["weighted"]["l1-eth2"] / 1000 - 0.75) <= 0.03, seen["weighted"]
    assert seen["weighted"]["l1-eth2"] + seen["weighted"]["l1-eth3"] == 1000
    # the very first packet after the link went down takes the live bucket: nobody was asked
    assert seen["after"] == {"arrived": 1000, "l1-eth2": 0, "l1-eth3": 1000}
