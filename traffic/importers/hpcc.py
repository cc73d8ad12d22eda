"""Flow files of HPCC's ns-3 (alibaba-edu/High-Precision-Congestion-Control, simulation/mix) as workloads.

    2
    0 1 3 100 200000 2
    1 2 3 100 5000 2.0001

The first line counts the flows; a flow is `src dst priority_group dst_port size start`: nodes, bytes and
seconds. Node n is host n of the fabric; the simulator starts its clock at the first flow, often at 2 s.
"""
from __future__ import annotations

from dataclasses import dataclass

from traffic.importers.text import decimal, read_lines, slip, whole_number, words_of
from traffic.trace import MOST_STEPS

COLUMNS = ("src", "dst", "pg", "dport", "size", "start")
LATEST_S = 1e6


@dataclass(frozen=True)
class Flow:
    """One flow. `priority` is the priority group, 0 to 7."""

    line: int
    source: int
    destination: int
    priority: int
    size_bytes: int
    start_s: float


def read_flows(path: str) -> tuple[Flow, ...]:
    """The flows of a file, in file order; every slip is a BadInput with file, line and column."""
    lines = [(number, words_of(text)) for number, text in enumerate(read_lines(path, "an HPCC flow file"), 1)]
    lines = [(number, words) for number, words in lines if words and not words[0].startswith("#")]
    if not lines or len(lines[0][1]) != 1:
        raise slip(path, lines[0][0] if lines else 1, "the first line must be the number of flows.")
    number, (count,) = lines[0]
    declared = whole_number(path, number, "number of flows", count, 1, MOST_STEPS)
    if declared != len(lines) - 1:
        raise slip(path, number, f"it says {declared} flows, but the file has {len(lines) - 1}.", count)
    flows = []
    for number, words in lines[1:]:
        if len(words) != len(COLUMNS):
            raise slip(path, number, f"{len(words)} columns where {len(COLUMNS)} are expected: "
                                     f"{' '.join(COLUMNS)}.")
        source, destination = (whole_number(path, number, name, word, 0, 10**6)
                               for name, word in zip(COLUMNS, words[:2]))
        if source == destination:
            raise slip(path, number, f"node {source} sends to itself.", words[1])
        priority = whole_number(path, number, "pg", words[2], 0, 7)
        whole_number(path, number, "dport", words[3], 0, 65535)
        flows.append(Flow(number, source, destination, priority,
                          whole_number(path, number, "size", words[4], 1),
                          decimal(path, number, "start", words[5], LATEST_S)))
    return tuple(flows)
