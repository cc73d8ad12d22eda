"""What root tests of the bpf switch do inside a sandbox: `python -m tests.asic.scenes NAME RESULT.json`."""
from __future__ import annotations

import json
import socket
import sys
from pathlib import Path

from emulator import netns
from emulator.sandbox import payload
from tests.asic.fabrics import lab
from tests.fabric.graphs import leaf_spine


def udp(host: str, port: int = 0) -> socket.socket:
    with netns.entered(host):
        made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        made.bind(("0.0.0.0", port))
        made.settimeout(2)
        return made


def reach(tmp: str) -> dict:
    """One datagram between all pairs."""
    made = lab(leaf_spine(2, 2, 2))
    hosts = made.fabric.spec.graph.hosts
    ends = {host.name: udp(host.name, 7000) for host in hosts}
    got = []
    for a in hosts:
        for b in hosts:
            if a is not b:
                ends[a.name].sendto(f"{a.name}-{b.name}".encode(), (b.ip, 7000))
                got.append(ends[b.name].recv(100).decode() == f"{a.name}-{b.name}")
    return {"got": got, "counts": {name: [c.packets for c in made.datapath.rule_counts(made.dpid(name)).values()]
                                   for name in ("l1", "l2", "s1", "s2")},
            "buckets": {name: [c.packets for c in made.datapath.bucket_counts(made.dpid(name))[1]] for name in ("l1", "l2")},
            "ports": [str(p) for p in made.datapath.ports(made.dpid("l1"))], "queues": [str(q) for q in made.datapath.queues(made.dpid("l1"))]}


def main() -> None:
    scene, result = sys.argv[1:]
    Path(result).write_text(json.dumps(globals()[scene](**json.loads(payload()))))


if __name__ == "__main__":
    main()
