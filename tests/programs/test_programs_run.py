"""Real programs on real fabrics: their bytes are accounted for, their ends told, nothing of them is left."""
from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.commands import CLONE, SMALL, finish, measure, rows, strict_json
from tests.traces import state

pytestmark = [pytest.mark.root,
              pytest.mark.skipif(os.geteuid() != 0, reason="needs root: runs programs on a fabric")]

RATE = ("--rate", "5mbit", "--quiet")
EIGHT = ("--topology", "leaf-spine:leaves=4,spines=4,hosts=2")
SOMEBODY = 65534
BYTES = 300_000
TRANSFER = f"""
import os, socket, time
print(os.environ["RANK"], socket.gethostname(), os.getuid(), flush=True)
if os.environ["RANK"] == "0":
    with socket.create_server((os.environ["MASTER_ADDR"], 29500)) as server:
        line, _ = server.accept()
        got = 0
        while data := line.recv(65536):
            got += len(data)
        assert got == {BYTES}, got
else:
    for _ in range(100):
        try:
            line = socket.create_connection(("h1", 29500))
            break
        except ConnectionRefusedError:
            time.sleep(0.05)
    line.sendall(bytes({BYTES}))
"""
WRONG_INTERFACE = """
import os, socket, sys, time
if os.environ["RANK"] == "0":
    server = socket.create_server(("127.0.0.1", 29500))
    time.sleep(60)
while True:
    try:
        socket.create_connection((os.environ["MASTER_ADDR"], 29500))
    except ConnectionRefusedError:
        time.sleep(0.2)
"""


def asking(folder: Path, *words: object) -> Path:
    """An experiment file that runs a program; on the command line the program's words have to be the last."""
    file = folder / "asked.yaml"
    file.write_text(yaml.safe_dump({"run": [str(word) for word in words]}))
    return file


def test_each_rank_runs_as_the_user_on_its_host_and_its_bytes_are_flows(tmp_path: Path) -> None:
    os.chmod(tmp_path, 0o755)
    (tmp_path / "transfer.py").write_text(TRANSFER)
    before, out = state(), tmp_path / "out"
    summary = measure(out, *SMALL, *RATE, asking(tmp_path, "each", "/usr/bin/python3", tmp_path / "transfer.py"),
                      SUDO_UID=str(SOMEBODY), SUDO_GID=str(SOMEBODY))
    program = summary["program"]
    assert [end["exit_status"] for end in program["ranks"]] == [0, 0]
    assert program["congestion_controls"] == {"cubic": 2} and program["sockets_missed"] == 0
    for rank in (0, 1):
        assert (out / f"ranks/rank{rank}.out").read_text() == f"{rank} h{rank + 1} {SOMEBODY}\n"
    assert {path.stat().st_uid for path in out.rglob("*")} == {SOMEBODY}
    [flow] = rows(out / "flows.csv")
    assert (flow["src"], flow["dst"], flow["bytes"]) == ("h2", "h1", str(BYTES))
    assert flow["path"] == "h2 l2 s1 l1 h1" and flow["ideal_s"] == flow["slowdown"] == ""
    assert summary["workload"]["bytes_received"] == BYTES and summary["workload"]["ideal_s"] is None
    # 2 x 2 links, and at least a header of 52 bytes a segment
    assert summary["links"]["by_tier"]["host-leaf"]["sent_bytes"] > 2 * BYTES * 1.03
    assert state() == before


@pytest.mark.parametrize("script, said", [
    ("import os, sys\nsys.exit('boom' if os.environ['RANK'] == '1' else __import__('time').sleep(60))",
     ["rank 1 on h2 ended with exit status 1: boom"]),
    ("import os, time\nos.environ['RANK'] == '1' and os.kill(os.getpid(), 11)\ntime.sleep(60)",
     ["rank 1 on h2 was ended by SIGSEGV"]),
    (WRONG_INTERFACE, ["rank 1 on h2 still ran", "rank 0 on h1 could not be reached",
                       "127.0.0.1:29500 only, where no other host can reach it"])])
def test_a_program_that_fails_ends_in_time_and_names_the_rank(tmp_path: Path, script: str, said: list[str]) -> None:
    before, out = state(), tmp_path / "out"
    status, _, complained = finish(*SMALL, *RATE, "--deadline", "2s", "--out", out,
                                   asking(tmp_path, "each", sys.executable, "-c", script))
    assert status == 4 and "Traceback" not in complained, complained
    stuck = " ".join(strict_json(out / "summary.json")["workload"]["stuck"])
    for words in said:
        assert words in stuck, stuck
    assert state() == before


@pytest.mark.skipif(shutil.which("mpirun") is None or shutil.which("mpicc") is None,
                    reason="needs Open MPI: sudo apt-get install openmpi-bin libopenmpi-dev")
def test_an_mpi_all_reduce_runs_over_the_fabric(tmp_path: Path) -> None:
    benchmark = tmp_path / "allreduce"
    subprocess.run(["mpicc", "-O1", "-o", benchmark, Path(__file__).with_name("allreduce.c")], check=True, timeout=60)
    out = tmp_path / "out"
    summary = measure(out, "--topology", "leaf-spine:leaves=2,spines=2,hosts=2", *RATE, "--deadline", "30s",
                      asking(tmp_path, "mpi", benchmark, "10000"))
    for rank in range(4):
        assert (out / f"ranks/rank{rank}.out").read_text() == f"rank {rank} of 4: right\n"
    assert [end["exit_status"] for end in summary["program"]["ranks"]] == [0] * 4
    assert summary["program"]["marks"] == 4 and len(summary["workload"]["iterations"]) == 3
    # each rank sends its 80 kB at least once in each of four rounds
    assert summary["workload"]["bytes_sent"] > 4 * 4 * 80_000


@pytest.mark.skipif(importlib.util.find_spec("torch") is None,
                    reason="needs PyTorch, the extra [torch] of setup.cfg: pip install torch")
def test_data_parallel_training_over_gloo_gives_the_gradients_of_one_process(tmp_path: Path) -> None:
    out = tmp_path / "out"
    summary = measure(out, *EIGHT, *RATE, "--deadline", "50s",
                      asking(tmp_path, "torchrun:connections=4", CLONE / "labs/ddp.py", "--steps", "2"))
    said = (out / "ranks/rank0.out").read_text()
    assert "2 steps, 8 ranks" in said
    assert float(said.rpartition("by ")[2].split()[0]) < 1e-6
    assert [end["exit_status"] for end in summary["program"]["ranks"]] == [0] * 8
    # four gloo connections between any two ranks, and each but rank 0 keeps one with rank 0's store
    assert summary["program"]["connections"] >= 4 * 8 * 7 // 2 + 7
    flows = rows(out / "flows.csv")
    parameter_bytes = 8 * 20865
    for rank in map(str, range(8)):
        sent = sum(int(flow["bytes"]) for flow in flows if flow["src_rank"] == rank)
        assert sent > 2 * 2 * 7 / 8 * parameter_bytes * 0.95
    assert summary["links"]["by_tier"]["host-leaf"]["sent_bytes"] > sum(int(flow["bytes"]) for flow in flows)
    assert len(set(flow["path"] for flow in flows)) > 8 * 7  # some pairs take several paths
