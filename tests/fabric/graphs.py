"""Small graphs by hand, for tests of the fabric."""
from __future__ import annotations

from topologies.graph import Graph, Host, Link, Switch


def leaf_spine(leaves: int = 2, spines: int = 1, hosts: int = 2) -> Graph:
    """`hosts` per leaf; port 1.. of a leaf go down, then up; port l of a spine goes to leaf l."""
    host_list, links = [], []
    for leaf in range(leaves):
        for place in range(hosts):
            index = len(host_list)
            host_list.append(Host(f"h{index + 1}", index, f"10.0.{leaf}.{place + 2}",
                                  f"02:00:0a:00:{leaf:02x}:{place + 2:02x}", f"l{leaf + 1}"))
            links.append(Link(len(links), f"h{index + 1}", 0, f"l{leaf + 1}", place + 1, 1.0, "host-leaf"))
        for spine in range(spines):
            links.append(Link(len(links), f"l{leaf + 1}", hosts + spine + 1, f"s{spine + 1}", leaf + 1,
                              1.0, "leaf-spine"))
    switches = [Switch(f"l{leaf + 1}", 0x100 + leaf, 0, "leaf", leaf) for leaf in range(leaves)]
    switches += [Switch(f"s{spine + 1}", 0x200 + spine, 1, "spine", -1) for spine in range(spines)]
    return Graph(f"leaf-spine {leaves}x{spines}x{hosts}", tuple(host_list), tuple(switches), tuple(links))


def fat_tree(k: int) -> Graph:
    """A k-ary fat-tree: k*k/4 cores, k pods of k/2 aggregation and k/2 edge switches."""
    half = k // 2
    hosts, switches, links = [], [], []

    def wire(a: str, a_port: int, b: str, b_port: int, tier: str) -> None:
        links.append(Link(len(links), a, a_port, b, b_port, 1.0, tier))

    for core in range(half * half):
        switches.append(Switch(f"c{core}", 0x30000 + core, 2, "core", -1))
    for pod in range(k):
        for i in range(half):
            switches.append(Switch(f"a{pod}_{i}", 0x20000 + pod * half + i, 1, "aggregation", pod))
            switches.append(Switch(f"e{pod}_{i}", 0x10000 + pod * half + i, 0, "edge", pod))
        for edge in range(half):
            for place in range(half):
                index = len(hosts)
                hosts.append(Host(f"h{index + 1}", index, f"10.{pod}.{edge}.{place + 2}",
                                  f"02:00:0a:{pod:02x}:{edge:02x}:{place + 2:02x}", f"e{pod}_{edge}"))
                wire(f"h{index + 1}", 0, f"e{pod}_{edge}", place + 1, "host-edge")
            for up in range(half):
                wire(f"e{pod}_{edge}", half + up + 1, f"a{pod}_{up}", edge + 1, "edge-aggregation")
        for i in range(half):
            for up in range(half):
                wire(f"a{pod}_{i}", half + up + 1, f"c{i * half + up}", pod + 1, "aggregation-core")
    return Graph(f"fat-tree {k}", tuple(hosts), tuple(switches), tuple(links))
