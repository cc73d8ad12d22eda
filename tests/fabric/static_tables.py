"""Flow tables by hand, for tests that want forwarding without a controller: one shortest path a host."""
from __future__ import annotations

import subprocess
from collections import deque

from topologies.graph import Graph


def next_ports(graph: Graph, host: str) -> dict[str, int]:
    """Switch name -> port towards `host` on a shortest path."""
    towards, queue = {}, deque([host])
    seen = {host}
    while queue:
        node = queue.popleft()
        for neighbour, link in graph.neighbours[node].values():
            if neighbour not in seen and neighbour in graph.switch:
                seen.add(neighbour)
                towards[neighbour] = link.a_port if link.a == neighbour else link.b_port
                queue.append(neighbour)
    return towards


def install(graph: Graph) -> None:
    """Give every switch its table through ovs-ofctl."""
    lines: dict[str, list[str]] = {switch.name: ["priority=0 actions=drop"] for switch in graph.switches}
    for host in graph.hosts:
        for switch, port in next_ports(graph, host.name).items():
            rewrite = f"mod_dl_dst:{host.mac}," if host.rack == switch else ""
            lines[switch].append(f"priority=10,ip,nw_dst={host.ip} actions={rewrite}output:{port}")
    for switch, rules in lines.items():
        subprocess.run(["ovs-ofctl", "-O", "OpenFlow13", "add-flows", switch, "-"],
                       input="\n".join(rules), text=True, check=True, timeout=20)
