"""Foreign files: the real ones come in whole, and every slip is a sentence with file and line."""
from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.errors import BadInput
from traffic.check import check_schedule
from traffic.importers.hedera import hedera_pairs, hedera_workload, read_hedera
from traffic.importers.htsim import read_cm
from traffic.importers.htsim_flows import cm_workload, failed_links
from traffic.importers.text import read_lines
from traffic.paths import Paths
from traffic.schedule import Kind
from traffic.simulate import simulate
from traffic.wire import Wire

# public files, which are not part of this repository
DATA = Path(os.environ.get("TRAFFIC_DATA", Path(__file__).parents[3] / "shared" / "data"))
real_files = pytest.mark.skipif(not (DATA / "htsim").is_dir(), reason=f"no public traffic files in {DATA}")

CHAIN = """# a chain, a fan and a barrier
Nodes 16
Connections 5
Triggers 3

0->1 id 1 start 2000000000.5 size 3000 send_done_trigger 1
1->2 id 2 trigger 1 size 3000 recv_done_trigger 2
1->3 id 3 trigger 1 size 3000 recv_done_trigger 2
3->0 id 4 trigger 2 size 10
4->5 start 0 size 7
trigger id 1 oneshot
trigger id 2 barrier count 2
trigger id 3 multishot
"""


def write(tmp_path, text, name="file.cm"):
    path = tmp_path / name
    path.write_text(text)
    return str(path)


def hedera(path, graph, largest_bytes, dilation=1.0):
    lines = read_hedera(path)
    return hedera_workload(path, lines, hedera_pairs(path, lines, graph), largest_bytes, dilation)


def sends(workload):
    return [(r, op) for r, ops in enumerate(workload.schedule.ranks) for op in ops if op.kind is Kind.SEND]


@real_files
@pytest.mark.parametrize("name, flows, total", [
    ("incast.cm", 15, 30_000_000), ("perm_16n_16c_2MB.cm", 16, 32_000_000)])
def test_real_connection_matrices(name, flows, total):
    workload = cm_workload(read_cm(str(DATA / "htsim" / name)), hosts=16)
    check_schedule(workload.schedule, 16)
    assert len(sends(workload)) == flows and workload.schedule.bytes_sent == total
    assert workload.placement == tuple(range(16)) and not workload.notes


@real_files
@pytest.mark.parametrize("name", ["stride1_data", "stride4_data", "random0_bij_data"])
def test_real_hedera_patterns(k4, name):
    path = str(DATA / "hedera" / "inputs" / name)
    workload = hedera(path, k4, 1000)
    check_schedule(workload.schedule, 16)
    pairs = {(r, op.peer) for r, op in sends(workload)}
    assert len(pairs) == 16 and all(op.size_bytes == 1000 for _, op in sends(workload))
    if name == "stride4_data":
        assert pairs == {(x, (x + 4) % 16) for x in range(16)}


def test_triggers_become_dependencies_and_times_scale(tmp_path, star16):
    workload = cm_workload(read_cm(write(tmp_path, CHAIN)), 16, dilation=10, byte_scale=1000)
    check_schedule(workload.schedule, 16)
    assert workload.placement == (0, 1, 2, 3, 4, 5)
    flow = {(r, op.peer): op for r, op in sends(workload)}
    assert {key: op.size_bytes for key, op in flow.items()} == {
        (0, 1): 3, (1, 2): 3, (1, 3): 3, (3, 0): 1, (4, 5): 1}
    wait = workload.schedule.ranks[0][flow[0, 1].deps[0]]
    assert wait.duration_s == pytest.approx(2e9 * 1e-12 * 10)  # picoseconds, dilated
    assert flow[1, 2].triggers == flow[1, 3].triggers == ((0, 1),)  # when rank 0 knows that rank 1 has it all
    assert sorted(flow[3, 0].triggers) == [(2, 0), (3, 0)]  # when both receives are
    assert [flow[key].step for key in ((0, 1), (1, 2), (3, 0))] == [0, 1, 2]
    end_s = simulate(workload.schedule, workload.placement, Paths(star16), Wire(10e6, 1500)).end_s
    assert end_s[0][1] > 0.02 and min(end_s[2][0], end_s[3][0]) > end_s[0][1]


def test_a_multishot_starts_one_flow_each_time(tmp_path):
    text = """Nodes 4
Connections 4
Triggers 1
0->1 id 1 start 0 size 10 send_done_trigger 1
0->2 id 2 start 0 size 10 send_done_trigger 1
0->3 id 3 trigger 1 size 10 prio 5
0->1 id 4 trigger 1 size 10
trigger id 1 multishot
"""
    workload = cm_workload(read_cm(write(tmp_path, text)), 4)
    assert [(op.channel, op.triggers) for _, op in sends(workload)] == [
        (0, ()), (0, ()), (0, ((0, 0),)), (1, ((0, 1),))]
    assert len(workload.notes) == 2 and "prio" in workload.notes[0] and "multishot" in workload.notes[1]


ONE = "Nodes 4\nConnections 1\n"
TRIGGERED = "Nodes 4\nConnections 2\nTriggers 1\n" \
    "0->1 id 1 start 0 size 9 {fires}\n1->2 id 2 {waits} size 9\n{trigger}\n"


@pytest.mark.parametrize("text, line, says", [
    ("Nodes 4\nConnections 2\n0->1 start 0 size 9", 2, "declares 2 connections, but the file has 1"),
    (ONE + "Triggers 1\n0->1 start 0 size 9", 3, "declares 1 triggers, but the file has 0"),
    (ONE + "0->1 start 0 size 9\nfailure switch_type TOR switch_id 0 link_id 0", 1, "declares 0 failures"),
    (ONE + "0->1 id 0 start 0 size 9", 3, 'id "0" is not a whole number of at least 1'),
    (ONE + "0->1 id 1 start 0 size 9 send_done_trigger 7", 3, "trigger 7 is not defined"),
    (ONE + "0->1 id 1 trigger 7 size 9", 3, "trigger 7 is not defined"),
    ("Nodes 4\nConnections 2\n0->1 id 1 start 0 size 9\n1->2 id 1 start 0 size 9", 4,
     "flow id 1 was used on line 3"),
    (ONE + "0->1 start 0 size 0", 3, "endless"),
    (ONE + "0->1 start 0", 3, "has no size"),
    (ONE + "0->1 size 9", 3, "neither a start nor a trigger"),
    (ONE + "0->1 id 1 start 0 trigger 1 size 9", 3, "both a start and a trigger"),
    (ONE + "0->1 trigger 1 size 9", 3, "needs an id"),
    (ONE + "0->4 start 0 size 9", 3, "node 4 is not among the 4 nodes"),
    (ONE + "2->2 start 0 size 9", 3, "sends to itself"),
    (ONE + "0-1 start 0 size 9", 3, 'starts no line'),
    (ONE + "0->x start 0 size 9", 3, "SOURCE->DESTINATION"),
    (ONE + "0->1 strat 0 size 9", 3, 'did you mean "start"'),
    (ONE + "0->1 start 0 size", 3, "size has no value"),
    (ONE + "0->1 start 0 size 9 size 9", 3, "size is given twice"),
    (ONE + "0->1 start -5 size 9", 3, "not a time in picoseconds"),
    (ONE + "0->1 start nan size 9", 3, "not a time in picoseconds"),
    (ONE + "0->1 start 0 size 1_000", 3, "not a whole number"),
    (ONE + "0->1 start 0 size 99999999999999999999", 3, "not a whole number"),
    ("Nodes four\n", 1, "not a whole number"),
    ("Nodes 4 5\n", 1, "one number"),
    ("Nodes 4\nNodes 4\n", 2, "given again (first on line 1)"),
    ("Nodse 4\n", 1, 'did you mean "Nodes"'),
    (TRIGGERED.format(fires="", waits="trigger 1", trigger="trigger id 1 oneshot"), 6, "would never start"),
    (TRIGGERED.format(fires="send_done_trigger 1 recv_done_trigger 1", waits="trigger 1",
                      trigger="trigger id 1 oneshot"), 6, "a oneshot can fire once"),
    (TRIGGERED.format(fires="send_done_trigger 1", waits="trigger 1", 
                      trigger="trigger id 1 barrier count 2"), 6,
     "waits for 2 flows, but 1 fire it"),
    (TRIGGERED.format(fires="send_done_trigger 1", waits="trigger 1", 
                      trigger="trigger id 1 barrier"), 6, "needs a count"),
    (TRIGGERED.format(fires="", waits="start 0", trigger="trigger id 0 oneshot"), 6, 'id "0"'),
    (TRIGGERED.format(fires="", waits="start 0", trigger="trigger oneshot"), 6, "no id"),
    (TRIGGERED.format(fires="", waits="start 0", trigger="trigger id 1"), 6, "a trigger is one of"),
    (TRIGGERED.format(fires="", waits="start 0", trigger="trigger id 1 twoshot"), 6, "unknown word"),
    (ONE + "Failures 1\n0->1 start 0 size 9\nfailure switch_type LEAF switch_id 0 link_id 0", 5,
     "none of TOR, AGG, CORE"),
    (ONE + "Failures 1\n0->1 start 0 size 9\nfailure switch_type TOR link_id 0", 5, "no switch_id"),
])
def test_slips_in_connection_matrices(tmp_path, text, line, says):
    path = write(tmp_path, text)
    with pytest.raises(BadInput) as error:
        read_cm(path)
    assert re.match(f"{re.escape(path)}:{line}(:[0-9]+)?: ", str(error.value)) and says in str(error.value)


@pytest.mark.parametrize("text, says", [
    ("Connections 1\n0->1 start 0 size 9\n", 'no line "Nodes N"'),
    ("Nodes 4\n0->1 start 0 size 9\n", 'no line "Connections N"'),
    ("Nodes 4\nConnections 0\n", "nothing would be sent")])
def test_incomplete_connection_matrices(tmp_path, text, says):
    with pytest.raises(BadInput, match=says):
        read_cm(write(tmp_path, text))


def test_what_the_fabric_cannot_take(tmp_path):
    matrix = read_cm(write(tmp_path, "Nodes 400\nConnections 1\n0->16 start 0 size 9\n"))
    with pytest.raises(BadInput, match=r":3: node 16 needs a host .* has 16 hosts"):
        cm_workload(matrix, 16)


def test_failures_are_named_in_a_note(tmp_path, k4):
    matrix = read_cm(write(tmp_path, ONE.replace("1\n", "1\nFailures 2\n") + "0->1 start 0 size 9\n"
                           "failure switch_type TOR switch_id 1 link_id 1\n"
                           "failure switch_type CORE switch_id 9 link_id 0\n"))
    assert [failure.link_id for failure in matrix.failures] == [1, 0]
    assert failed_links(matrix, k4) == [(matrix.failures[0], "e0_1-a0_1"), (matrix.failures[1], None)]
    note, = cm_workload(matrix, 16, graph=k4).notes
    assert "TOR 1 link 1 (e0_1-a0_1), CORE 9 link 0." in note


def test_triggers_in_a_circle_are_found(tmp_path):
    text = TRIGGERED.format(fires="send_done_trigger 2", waits="trigger 2", trigger="trigger id 2 oneshot")
    text = text.replace("start 0", "trigger 1").replace("Triggers 1", "Triggers 2")
    text = text.replace("1->2 id 2 trigger 2", "1->2 id 2 send_done_trigger 1 trigger 2")
    text += "trigger id 1 oneshot\n"
    workload = cm_workload(read_cm(write(tmp_path, text)), 4)
    with pytest.raises(BadInput, match="circle"):
        check_schedule(workload.schedule, 4)


@given(text=st.text(max_size=100), word=st.integers(0, 60), other=st.integers(0, 60))
@settings(max_examples=80, deadline=None)
def test_any_text_and_any_spoilt_word_is_read_or_refused_in_a_sentence(tmp_path_factory, text, word, other):
    """Both noise and a valid file with one word replaced, doubled or gone."""
    path = tmp_path_factory.getbasetemp() / "any"
    words = CHAIN.replace("\n", " \n ").split(" ")
    spoilt = [words[:word] + words[word + 1:], words[:word] + [words[other]] + words[word:],
              words[:word] + [text] + words[word + 1:]]
    for content in (text, *(" ".join(each) for each in spoilt)):
        path.write_text(content, encoding="utf-8", errors="replace")
        for read in (lambda: check_schedule(cm_workload(read_cm(str(path)), 16).schedule, 16),
                     lambda: read_hedera(str(path))):
            try:
                read()
            except BadInput as error:
                assert str(error).endswith(".")


HEDERA = "10.0.0.2 10.1.1.2 12345 TCP 1 0.0 60.0  100000 random 1000 0.001 random\n"


def test_hedera_sizes_keep_their_proportion_and_starts_are_dilated(tmp_path, k4):
    text = "#header\n" + HEDERA + "10.0.0.3 10.1.1.2 1 TCP 1 2.5 60 25000\n"
    path = write(tmp_path, text, "pattern")
    workload = hedera(path, k4, 4000, dilation=2)
    assert [op.size_bytes for _, op in sends(workload)] == [4000, 1000]
    assert [op.duration_s for op in workload.schedule.ranks[1] if op.kind is Kind.COMPUTE] == [5.0]
    assert workload.placement == (0, 1, 6) and "stop times" in workload.notes[0]


@pytest.mark.parametrize("text, line, says", [
    (HEDERA + "10.0.0.2 10.1.1.2\n", 2, "2 fields where at least 8"),
    (HEDERA.replace("10.0.0.2", "10.0.0.256"), 1, "not an IPv4 address"),
    (HEDERA.replace("TCP", "UDP"), 1, "only TCP"),
    (HEDERA.replace("100000", "-1"), 1, 'flow_size "-1"'),
    (HEDERA.replace("100000", "0"), 1, "sends nothing"),
    (HEDERA.replace(" 0.0 ", " soon "), 1, 'start_time "soon"'),
    (HEDERA.replace("10.1.1.2", "10.9.1.2"), 1, "no host of fat-tree:k=4 for this workload has the address 10.9.1.2"),
    (HEDERA.replace("10.1.1.2", "10.0.0.2"), 1, "sends to itself")])
def test_slips_in_hedera_patterns(tmp_path, k4, text, line, says):
    path = write(tmp_path, text, "pattern")
    with pytest.raises(BadInput) as error:
        hedera(path, k4, 1000)
    assert re.match(f"{re.escape(path)}:{line}(:[0-9]+)?: ", str(error.value)) and says in str(error.value)


def test_files_that_cannot_be_read(tmp_path):
    (tmp_path / "empty").write_text(" \n")
    (tmp_path / "binary").write_bytes(bytes(range(256)))
    (tmp_path / "zeros").write_bytes(b"Nodes 4\0")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for name, says in (("missing", "does not exist"), ("empty", "is empty"), ("binary", "is not text"),
                       ("zeros", "is not text"), ("pipe", "not a regular file"), (".", "is a directory"),
                       ("loop", "cannot be read|does not exist"),
                       ("empty/x", "cannot be read|does not exist"),
                       ("n" * 300, "cannot be read")):
        with pytest.raises(BadInput, match=says):
            read_lines(str(tmp_path / name), "a connection matrix")
    with pytest.raises(BadInput, match="not a file name|does not exist"):
        read_lines("zero\0byte", "a connection matrix")


@pytest.mark.skipif(os.geteuid() == 0, reason="root can read everything")
def test_a_file_without_permission(tmp_path):
    path = tmp_path / "secret"
    path.write_text("Nodes 4\n")
    path.chmod(0)
    with pytest.raises(BadInput, match="cannot be read .Permission denied."):
        read_lines(str(path), "a connection matrix")
