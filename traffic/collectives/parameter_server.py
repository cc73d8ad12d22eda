"""Parameter servers (Li et al., OSDI 2014): workers push gradients, servers sum, workers pull.

Each of S servers holds an equal share of the buffer. A worker begins with another server than its
neighbour, so that the servers fill evenly.
"""
from __future__ import annotations

from emulator.errors import BadInput
from traffic.collectives.arguments import check_arguments
from traffic.program import Program, split
from traffic.schedule import Schedule


def parameter_server(ranks: int, servers: int, size_bytes: int, slices: int = 1, channels: int = 1, *,
                     colocated: bool = False) -> Schedule:
    """One push and pull of `size_bytes` by every worker; the first `servers` ranks are the servers.

    Apart: the other ranks are the workers, and a server adds to what its buffer holds. `colocated`:
    all ranks are workers, and a server's own buffer is its contribution. All workers end with the
    sum over the servers' and the workers' buffers; a server with that of its share.
    """
    check_arguments("parameter server", ranks, size_bytes, slices, channels)
    if not 1 <= servers <= (ranks if colocated else ranks - 1):
        raise BadInput(f"parameter server: {servers} servers among {ranks} ranks leave no worker; use 1 to "
                       f"{ranks if colocated else ranks - 1}.")
    program, shares = Program(ranks), split(0, size_bytes, servers)
    cut = {"slices": slices, "channels": channels}
    workers = range(ranks) if colocated else range(servers, ranks)
    # position by position, so that a server's list takes the workers in turn
    for phase, write in (("push", program.add), ("pull", program.copy)):
        for position in range(servers):
            for worker in workers:
                server = (worker + position) % servers
                if server != worker:
                    ends = (worker, server) if phase == "push" else (server, worker)
                    write(*ends, *shares[server], phase=phase, step=position, **cut)
    return program.schedule("parameter server", size_bytes)
