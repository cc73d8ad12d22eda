"""Small valid files of every format that is imported, for tests that spoil them."""
from __future__ import annotations

import json
import os
from pathlib import Path

# public files, which are not part of this repository
DATA = Path(os.environ.get("TRAFFIC_DATA", Path(__file__).parents[3] / "shared" / "data"))

CM = """Nodes 4
Connections 4
Triggers 2
Failures 1
0->1 id 1 start 2000000 size 3000 send_done_trigger 1 prio 2
1->2 id 2 trigger 1 size 3000 recv_done_trigger 2
1->3 id 3 trigger 1 size 3000 recv_done_trigger 2
3->0 id 4 trigger 2 size 10
trigger id 1 oneshot
trigger id 2 barrier count 2
failure switch_type TOR switch_id 0 link_id 0
"""
GOAL = """num_ranks 3
rank 0 {
l1: calc 1000 cpu 1
l2: send 100b to 1 tag 3
l2 requires l1
l3: send 0b to 2
l3 irequires l2
}
rank 1 { /* the middle */
l1: recv 100b from 0 tag 3
l2: send 50b to 2 // and on
l2 requires l1
}
rank 2 {
l1: recv 0b from 0
l2: recv 50b from 1
l2 requires l1
}
"""
SIMAI = """HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 1 pp: 1 vpp: 1 ga: 1 all_gpus: 4 \
checkpoints: 1 0 checkpoint_initiates: 1 1
3
embedding -1 10 ALLREDUCE 4096 10 NONE 0 10 NONE 0 100
attention\t-1  20 ALLREDUCE 4096 30 ALLREDUCE 4096 30 NONE 0 100
mlp -1 20 ALLGATHER_EP 0 30 ALLTOALL_EP 128 30 REDUCESCATTER 8192 100
"""
AICB = """[rank0 ~ rank3]
comm_type,comm_group,comm_group_size,msg_size,stage,dst,src,additional,_elapsed_time,algbw,busbw,count
CommType.all_reduce,CommGroup.tp_group,2,4096,forward.A,None,None,,None,None,None,1
CommType.broadcast,CommGroup.tp_group,,24,forward.B,None,0,,None,None,None,2
CommType.reduce_scatter,CommGroup.dp_group,2,8192,step,None,None,,None,None,None,1
CommType.computation,None,None,"((1, 2), (3, 4))",x,None,None,,None,None,None,1
CommType.epoch_end,None,None,0,,None,None,,None,None,None,1
"""
FLOWS = """3
0 2 3 100 200000 2.0
1 3 3 100 100000 2.0001
3 0 1 100 5000 2.5
"""
CDF = """0 0
10000 15
20000 20
1000000 100
"""
TOPOLOGY = """6 2 6
4 5
0 4 100Gbps 0.001ms 0
1 4 100Gbps 0.001ms 0
2 5 100Gbps 0.001ms 0
3 5 100Gbps 0.001ms 0.001
4 5 400Gbps 1us 0
4 5 400Gbps 1us 0
"""
TOPO = """Nodes 8
Tiers 2
Podsize 8
Tier 0
Downlink_speed_Gbps 100
Radix_Down 4
Radix_Up 4
Downlink_Latency_ns 1000
Tier 1
Downlink_speed_Gbps 100
Radix_Down 4
Bundle 2
Downlink_Latency_ns 600000
"""


def varint(value: int) -> bytes:
    """A protobuf varint of an int64 or uint64."""
    value &= (1 << 64) - 1
    made = bytearray()
    while value >= 0x80:
        made.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*made, value))


def _text(number: int, data: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(data)) + data


def attribute(name: str, value: int | str, field: int = 9) -> bytes:
    """An attribute of a Chakra node; field 9 is int64, 13 uint64, 29 string."""
    held = _text(29, value.encode()) if isinstance(value, str) else varint(field << 3) + varint(value)
    return _text(10, _text(1, name.encode()) + held)


def node(id_: int, type_: int, *attributes: bytes, deps: tuple[int, ...] = (), duration_us: int = 0) -> bytes:
    """A Chakra node; proto3 leaves zeros out."""
    made = (varint(1 << 3) + varint(id_)) if id_ else b""
    made += _text(2, b"n") + varint(3 << 3) + varint(type_)
    if deps:
        made += _text(5, b"".join(map(varint, deps)))
    if duration_us:
        made += varint(7 << 3) + varint(duration_us)
    return made + b"".join(attributes)


def et_file(*nodes: bytes) -> bytes:
    """A Chakra trace: metadata and nodes, each behind its length."""
    return b"".join(varint(len(each)) + each for each in (_text(1, b"0.0.4"), *nodes))


def chakra() -> dict[str, bytes]:
    """Four ranks: a compute, an all-reduce of pairs, an all-gather of all, a message from 0 to 3."""
    files = {"groups.json": json.dumps({"a": [0, 1], "b": [2, 3]}).encode()}
    for rank in range(4):
        nodes = [node(0, 4, duration_us=5),
                 node(7, 7, attribute("comm_type", 0), attribute("comm_size", 4096, 13),
                      attribute("pg_name", "ab"[rank // 2]), deps=(0,)),
                 node(8, 7, attribute("comm_type", 2), attribute("comm_size", 1000), deps=(7,))]
        if rank in (0, 3):
            end = ("comm_dst", 3) if rank == 0 else ("comm_src", 0)
            nodes.append(node(9, 5 if rank == 0 else 6, attribute("comm_size", 512), attribute(*end, 7),
                              attribute("comm_tag", 2, 7), deps=(8,)))
        files[f"run.{rank}.et"] = et_file(*nodes)
    return files


def torch_trace(rank: int = 0, messages: bool = False) -> bytes:
    """A rank of four: newer records with attributes, and an older one with inputs; or messages, too."""
    def attrs(**values: object) -> list[dict[str, object]]:
        return [{"name": name, "type": "string", "value": value} for name, value in values.items()]

    groups = json.dumps([{"pg_name": "0", "ranks": [], "group_size": 4}, {"pg_name": "1", "ranks": [
        rank // 2 * 2, rank // 2 * 2 + 1], "group_size": 2}])
    nodes = [
        {"id": 2, "name": "## process_group:init ##", "inputs": {"values": [groups], "types": ["String"]}},
        {"id": 3, "name": "aten::mm", "attrs": []},
        {"id": 4, "name": "record_param_comms", "attrs": attrs(
            collective_name="allreduce", dtype="BFloat16", in_msg_nelems=1000, out_msg_nelems=1000, pg_name="0",
            pg_size=4, global_rank_start=0, global_rank_stride=1)},
        {"id": 5, "name": "record_param_comms", "attrs": attrs(
            collective_name="_allgather_base", dtype="Float", in_msg_nelems=100, out_msg_nelems=200, pg_name="1",
            pg_size=2, global_rank_start=rank // 2 * 2, global_rank_stride=1)},
        {"id": 6, "name": "record_param_comms", "attrs": attrs(collective_name="wait", dtype="Float")},
        {"id": 7, "name": "record_param_comms", "inputs": {"values": [
            [[9, 10, 0, 64, 4, "cuda:0"]], 3, ["0", "default"], rank, "broadcast", [], [], 0, 1, 4]}},
    ]
    if messages and rank in (1, 2):  # the peer is a rank of the group
        what, peer = ("send", 2) if rank == 1 else ("recv", 1)
        nodes.append({"id": 8, "name": "record_param_comms", "attrs": attrs(
            collective_name=what, dtype="Half", in_msg_nelems=50, out_msg_nelems=50, pg_name="0", pg_size=4),
            "inputs": {"values": [[[9, 10, 0, 50, 2, "cuda:0"]], 4, ["0", "default"], peer, what, [], [], 0, 1,
                                  4]}})
    return json.dumps({"schema": "1.1.1-chakra.0.0.4", "nodes": nodes}, indent=1).encode()


def timeline(rank: int = 0) -> bytes:
    """A profiler's timeline of a rank of four."""
    def event(time_us: float, collective: str, elements: int, group: str, ranks: list[int]) -> dict[str, object]:
        return {"ph": "X", "cat": "cpu_op", "name": "record_param_comms", "ts": time_us, "dur": 12.5, "args": {
            "Collective name": collective, "dtype": "Float", "In msg nelems": elements,
            "Out msg nelems": elements, "Group size": len(ranks), "Process Group Name": group,
            "Process Group Ranks": json.dumps(ranks)}}

    pair = [rank // 2 * 2, rank // 2 * 2 + 1]
    events = [event(200.5, "reduce_scatter", 64, "1", pair), {"ph": "M", "name": "process_name"},
              event(100, "allreduce", 1000, "0", [0, 1, 2, 3]), event(300, "wait", 0, "0", [0, 1, 2, 3])]
    return json.dumps({"traceEvents": events}, indent=1).encode()
