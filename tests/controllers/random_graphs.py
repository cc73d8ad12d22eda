"""Irregular fabrics for property tests: random wiring, random addresses, parallel links."""
from __future__ import annotations

import ipaddress

import networkx
from hypothesis import strategies as st

from topologies.check import checked
from topologies.graph import Graph, Host, Link, Switch


@st.composite
def graphs(draw) -> Graph:
    """A connected Graph of 1-9 switches and 2-16 hosts whose addresses lie anywhere in 10.0.0.0/8."""
    size = draw(st.integers(1, 9))
    wires = networkx.gnp_random_graph(size, draw(st.floats(0, 0.7)), seed=draw(st.integers(0, 10**6)))
    wires.add_edges_from(networkx.path_graph(size).edges)
    edges = list(wires.edges)
    if edges:
        edges += draw(st.lists(st.sampled_from(sorted(edges)), max_size=3))
    racks = draw(st.lists(st.integers(0, size - 1), min_size=2, max_size=16))
    near = draw(st.booleans())  # addresses close together or anywhere
    offsets = draw(st.lists(st.integers(1, 40 if near else 2**24 - 515), min_size=len(racks),
                            max_size=len(racks), unique=True))
    hosts, links, ports = [], [], dict.fromkeys(range(size), 0)

    def port(node: int) -> int:
        ports[node] += 1
        return ports[node]

    for i, (rack, offset) in enumerate(zip(racks, offsets, strict=True)):
        ip = ipaddress.IPv4Address(0x0A000000 + offset)
        mac = "02:00:" + ":".join(f"{byte:02x}" for byte in ip.packed)
        hosts.append(Host(f"h{i}", i, str(ip), mac, f"x{rack}"))
        links.append(Link(len(links), f"h{i}", 0, f"x{rack}", port(rack), 1.0, "host-edge"))
    for a, b in edges:
        links.append(Link(len(links), f"x{a}", port(a), f"x{b}", port(b), 1.0, "edge-edge"))
    switches = tuple(Switch(f"x{n}", n + 1, 0, "edge", -1) for n in range(size))
    return checked(Graph("random", tuple(hosts), switches, tuple(links)))
