"""The public files of other tools: each comes in with the bytes that it says, and fits a fabric when scaled."""
from __future__ import annotations

import csv
import re

import pytest

from emulator.errors import BadInput
from tests.traffic.samples import DATA
from traffic.check import check_schedule
from traffic.file_specs import file_spec, file_workload
from traffic.importers.aicb import read_aicb
from traffic.importers.chakra import read_chakra
from traffic.importers.goal import read_goal
from traffic.importers.simai import read_simai
from traffic.setting import Setting
from traffic.trace import Does

pytestmark = pytest.mark.skipif(not (DATA / "htsim").is_dir(), reason=f"no public traffic files in {DATA}")

GOAL = DATA / "goal" / "binary_tree_32.goal"
LLAMA = DATA / "simai" / "L7B-M1-C04_Llama7B_megatron_tp2_pp1_mbs1_A100.txt"
MICRO = DATA / "simai" / "all_reduce.txt"
AICB = DATA / "aicb" / "L7B-M1-C04_Llama7B_megatron_tp2_pp1_mbs1.csv"
CHAKRA = DATA / "chakra"


def columns(path, *numbers):
    """The sum of these columns over all rows of a SimAI text."""
    rows = [line.split() for line in path.read_text().splitlines() if len(line.split()) == 12]
    return sum(int(row[number]) for row in rows for number in numbers)


def test_goal():
    text = GOAL.read_text()
    trace = read_goal(str(GOAL))
    assert len(trace.ranks) == 32 and trace.message_bytes == len(re.findall(r"send 1b", text)) == 31
    assert sum(len(step.deps) for steps in trace.ranks for step in steps) == len(re.findall("requires", text))


def test_simai_micro():
    trace = read_simai(str(MICRO), 8, 16)
    assert len(trace.ranks) == 8 and trace.collective_bytes == columns(MICRO, 10) == 2**31 - 4096


@pytest.mark.parametrize("ranks", [2, 8, 16])
def test_simai_llama(ranks):
    trace = read_simai(str(LLAMA), ranks, 16)
    groups = {"tp": ranks // 2, "dp": 2}  # tensor-parallel pairs; two data-parallel groups across them
    assert trace.collective_bytes == (groups["tp"] * columns(LLAMA, 4, 7) + groups["dp"] * columns(LLAMA, 10))
    compute_s = sum(step.duration_s for step in trace.ranks[0] if step.phase != "update")
    updates_s = sum(step.duration_s for step in trace.ranks[0] if step.phase == "update")
    assert compute_s == pytest.approx(columns(LLAMA, 2, 5, 8) * 1e-9)
    assert updates_s == pytest.approx(100e-9)  # of the one row with a weight-gradient collective


def test_aicb():
    with AICB.open(newline="") as file:
        next(file)
        rows = list(csv.DictReader(file))
    expected = sum(int(row["msg_size"]) * {"CommGroup.tp_group": 64, "CommGroup.dp_group": 2, "None": 0}[
        row["comm_group"]] for row in rows)
    trace = read_aicb(str(AICB), None)
    assert len(trace.ranks) == 128 and trace.collective_bytes == expected
    with pytest.raises(BadInput, match="which ranks=64 contradicts"):
        read_aicb(str(AICB), 64)


def test_chakra_collective():
    trace = read_chakra(str(CHAKRA / "all_reduce_4npus_1MB"))
    assert len(trace.ranks) == 4 and trace.collective_bytes == 1 << 20
    assert [steps[0].where for steps in trace.ranks] == [0, 1, 2, 3], "node id 0 is left out of the file"


def test_chakra_messages():
    trace = read_chakra(str(CHAKRA / "custom_ring_allreduce_8npus_1MB"))
    assert len(trace.ranks) == 8
    assert trace.message_bytes == 8 * 14 * (1 << 17)  # 2(n-1) chunks of an eighth from each rank
    assert {step.peer for step in trace.ranks[0] if step.does is Does.SEND} == {1}
    assert {step.duration_s for step in trace.ranks[0] if step.does is Does.COMPUTE} == {7e-6}


@pytest.mark.parametrize("spec, ranks", [
    (f"{DATA}/htsim/incast.cm", 16), (f"{DATA}/htsim/perm_16n_16c_2MB.cm", 16),
    (f"{GOAL},map=pack", 16), (f"{GOAL},map=first", 16), (f"simai:{MICRO}", 16), (f"simai:{LLAMA}", 16),
    (f"simai:{LLAMA},ranks=32,map=pack,algorithm=halving-doubling", 16), (f"aicb:{AICB},map=first", 16),
    (f"chakra:{CHAKRA / 'all_reduce_4npus_1MB'}", 4),
    (f"chakra:{CHAKRA / 'custom_ring_allreduce_8npus_1MB'}", 8)])
def test_every_file_becomes_a_schedule_that_can_run(k4, spec, ranks):
    setting = Setting(k4, 5e6, 1500, 1, dilation=100, byte_scale=1e5)
    workload = file_workload(file_spec(spec), setting)
    check_schedule(workload.schedule, 16)
    assert len(workload.placement) == ranks and workload.schedule.bytes_sent
    assert "divided by 100000" in workload.notes[-1] and "multiplied by 100" in workload.notes[-1]


@pytest.mark.parametrize("spec, ranks, each", [(str(GOAL), 32, 2), (f"aicb:{AICB}", 128, 8)])
def test_a_trace_that_does_not_fit_offers_the_ways_out(k4, spec, ranks, each):
    with pytest.raises(BadInput, match=rf"has {ranks} ranks, but the fabric has 16 hosts; use a larger "
                                       rf"fabric, or add "
                                       rf",map=pack \({each} ranks a host.*or ,map=first"):
        file_workload(file_spec(spec), Setting(k4, 5e6, 1500, 1))
