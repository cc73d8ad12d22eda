"""A small experiment in Debian's own kernel, with Open vSwitch's kernel datapath, on a clock that counts
instructions.

`vm-run` boots that kernel in QEMU without KVM over this machine's files. It is no part of this clone: it
is looked for in $VM_RUN, then at ../shared/bin/vm-run beside the clone. The guest's time is its
instructions, one a nanosecond, so the verdict does not depend on how busy this machine is.
"""
from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.root, pytest.mark.stock]

CLONE = Path(__file__).resolve().parent.parent
PREPARE_S, BOOT_S, RUN_S = 300, 120, 240  # bounds of a hang; the run takes about 70 s of an idle core

# Modules load when they are first named: here it is seen that the run itself named them.
SCRIPT = """
set -e
before=$(cut -d' ' -f1 /proc/modules)
"$@"
uname -r
for module in openvswitch veth sch_htb tcp_dctcp; do
    if grep -qx "$module" <<< "$before"; then echo "$module was loaded before the run" >&2; exit 1; fi
    grep -q "^$module " /proc/modules
done
"""


@pytest.fixture(scope="module")
def vm_run() -> Path:
    """The tool, prepared; skips with the reason where it or QEMU cannot be had."""
    named = os.environ.get("VM_RUN")
    tool = Path(named) if named else CLONE.parent / "shared" / "bin" / "vm-run"
    if not os.access(tool, os.X_OK):
        pytest.skip(f"no stock kernel to boot: {tool} is missing; name it with VM_RUN=PATH")
    prepared = subprocess.run([tool, "--prepare"], capture_output=True, text=True, timeout=PREPARE_S)
    if prepared.returncode:
        pytest.skip(f"no stock kernel to boot: {prepared.stderr.strip().splitlines()[-1]}")
    return tool


def test_a_small_experiment_passes_on_the_kernel_datapath(vm_run: Path, tmp_path: Path) -> None:
    """Three senders into one port: a full queue, drops, and every account must still balance.

    A queue of 60 kB overflows only if packets in it do not count against their senders' sockets.
    """
    bundle = tmp_path / "bundle"
    done = subprocess.run(
        [vm_run, "--icount", "0", "-t", str(RUN_S), "--boot-timeout", str(BOOT_S), "--project", CLONE, "--ro",
         "--share", tmp_path, "--",
         "bash", "-c", SCRIPT, "bash", sys.executable, "-m", "emulator.run", "--switch", "ovs",
         "--topology", "leaf-spine:leaves=2,spines=1,hosts=2", "--workload", "pattern:incast=3,bytes=500kB",
         "--rate", "5mbit", "--buffer", "60kB", "--cc", "dctcp", "--quiet", "--out", bundle],
        capture_output=True, text=True, timeout=PREPARE_S + BOOT_S + RUN_S)
    assert done.returncode == 0, done.stdout + done.stderr
    summary = json.loads((bundle / "summary.json").read_text())
    environment, fidelity = summary["environment"], summary["fidelity"]
    assert fidelity["verdict"] == "pass", [check for check in fidelity["checks"] if not check["ok"]]
    assert (environment["switch"], environment["datapath"]) == ("ovs", "system")
    assert environment["kernel"] in done.stdout and environment["kernel"] != os.uname().release
    workload = summary["workload"]
    assert workload["bytes_received"] == workload["bytes_sent"] == 1_500_000
    assert 0.8 < workload["efficiency"] < 1.01, workload  # one lost tail costs 0.2 s of 2.5
    assert summary["loss"]["dropped_packets"] > 0, "the queue of 60 kB was meant to overflow"
    assert summary["queues"]["max_bytes"] > 0.95 * 60e3, summary["queues"]["port"]


@pytest.mark.long
def test_a_delay_is_netems_where_the_kernel_has_it(vm_run: Path, tmp_path: Path) -> None:
    """Four links there and four back of 5 ms each; the run itself makes the kernel load netem."""
    bundle = tmp_path / "bundle"
    done = subprocess.run(
        [vm_run, "--icount", "0", "-t", str(RUN_S), "--boot-timeout", str(BOOT_S), "--project", CLONE, "--ro",
         "--share", tmp_path, "--", sys.executable, "-m", "emulator.run", "--switch", "bpf",
         "--topology", "leaf-spine:leaves=2,spines=1,hosts=1", "--workload", "pattern:pair=0-1,bytes=250kB",
         "--rate", "2mbit", "--delay", "5ms", "--quiet", "--out", bundle],
        capture_output=True, text=True, timeout=PREPARE_S + BOOT_S + RUN_S)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "links are delayed by netem" in done.stdout + done.stderr
    summary = json.loads((bundle / "summary.json").read_text())
    delay = summary["delay"]
    assert summary["environment"]["link_delay"] == delay["way"] == "netem"
    assert delay["timed"] == delay["relayed"] > 4 * 250_000 / 1448 and not any(delay["losses"].values())
    assert delay["late_p99_s"] < 1e-4, "on a clock that counts instructions"
    assert 8 * 0.005 <= summary["transport"]["rtt_min_s"] < 8 * 0.005 + 0.001
