"""What log.txt and the setup block say: stages with times, how it ended, memory."""
from __future__ import annotations

from pathlib import Path

from emulator import memory
from emulator.report.setup import line
from emulator.runlog import MOST_CHARACTERS, Stage, compose


def test_the_log_tells_stages_end_and_processes() -> None:
    text = compose([Stage("building", 0.25, 1.5), Stage("gate", 2.0, None)], "No probe came back.",
                   {"the controller": "x" * MOST_CHARACTERS + "end\n", "the switches": ""})
    lines = text.splitlines()
    assert lines[0] == "stages of the run"
    assert lines[1].endswith(":00.250 building (1.5 s)") and lines[2].endswith("gate (broken off)")
    assert lines[3] == "No probe came back."
    controller = lines[lines.index("log of the controller") + 1]
    assert len(controller) < MOST_CHARACTERS and controller.endswith("xend")
    assert lines[-2:] == ["log of the switches", "(nothing)"]
    assert "The run came to its end." in compose([], "", {})


def test_memory_is_read_from_proc(tmp_path: Path) -> None:
    (tmp_path / "meminfo").write_text("MemTotal: 100 kB\nSUnreclaim: 7 kB\nPercpu:  2 kB\nHugePages_Total: 0\n")
    for pid, now_kb, most_kb in ((1, 10, 30), (27, 20, 20)):
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "status").write_text(f"Name:\tx\nVmHWM:\t{most_kb} kB\nVmRSS:\t{now_kb} kB\n")
    (tmp_path / "3").mkdir()  # it ended while we looked
    found = memory.read(tmp_path)
    assert found == memory.Memory(30 * 1024, 30 * 1024, 9 * 1024)
    said = line(1.0, 2.0, found.processes, found.largest, found.kernel)
    assert "30.72 kB in processes" in said and "9.216 kB in the kernel" in said
