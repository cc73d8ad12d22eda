"""Congestion controls from BPF: what the sockets use, what they do to a queue, and that they go."""
import json
import subprocess
import time

import pytest

from emulator.asic.cc import AVAILABLE, Swift, provide
from emulator.errors import BadInput, MachineLacks

K_PACKETS, FRAME = 20, 1514
RATE_BPS = 40e6


@pytest.mark.root
def test_dctcp_holds_the_queue_at_its_threshold(play):
    seen = play("cc_scenes", "incast", algorithm="dctcp", rate_bps=RATE_BPS, seconds=3,
                k_bytes=K_PACKETS * FRAME, buffer_bytes=425 * FRAME)
    assert all(name.startswith("dctcp") for name in seen["used"]) and len(set(seen["used"])) == 1
    assert seen["source"] in ("bpf", "kernel") and seen["impossible"] == 0
    assert seen["dropped"] == 0 and 0 < seen["marked"] < seen["ect"]
    mean = seen["mean_exact"] / FRAME
    assert abs(mean - K_PACKETS) <= 5, f"a mean queue of {mean:.1f} packets"
    assert seen["percentiles"][2] / FRAME <= K_PACKETS + 8


@pytest.mark.root
def test_swift_keeps_the_delay_near_its_target(play):
    target_s = 0.006
    seen = play("cc_scenes", "incast", algorithm="swift", rate_bps=RATE_BPS, seconds=3, k_bytes=None,
                buffer_bytes=425 * FRAME, target_s=target_s)
    assert seen["used"] == ["swift_test"] * 4 and seen["source"] == "bpf"
    assert seen["dropped"] == seen["marked"] == 0
    assert 0.3 * target_s < seen["delay_s"][0] < 1.5 * target_s, f"median delay {seen['delay_s'][0]} s"


def still_there(kind: str, numbers: list[int]) -> list[int]:
    """Which of the BPF objects with these kernel-wide numbers exist."""
    shown = subprocess.run(["bpftool", "-j", kind, "show"], capture_output=True, check=True, text=True,
                           timeout=20).stdout
    return sorted({each["id"] for each in json.loads(shown or "[]")} & set(numbers))


@pytest.mark.root
def test_nothing_is_left_of_a_run(play):
    left = play("cc_scenes", "leave_all_behind")
    assert left["registered"] and left["prog"] and left["map"]
    end_s = time.monotonic() + 10  # the kernel ends a namespace in its own time
    while time.monotonic() < end_s and any(still_there(kind, left[kind]) for kind in ("prog", "map")):
        time.sleep(0.05)
    assert still_there("prog", left["prog"]) == still_there("map", left["map"]) == []
    assert left["name"] not in AVAILABLE.read_text()


@pytest.mark.root
@pytest.mark.parametrize("arguments, error, sentence", [
    (("vegaz", "x"), MachineLacks, "no congestion control vegaz .*modprobe tcp_vegaz"),
    (("swift", "x"), BadInput, "swift needs a target delay"),
    (("swift", "much-too-long", Swift(0.001)), BadInput, "cannot be called"),
    (("swift", "x", Swift(0.0)), BadInput, "makes no sense"),
])
def test_what_cannot_be_provided_is_refused(play, arguments, error, sentence):
    with pytest.raises(error, match=sentence):
        provide(*arguments)
