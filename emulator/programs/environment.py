"""What each process of a program is told: its environment and the placeholders of its command. Pure.

The names are those of torchrun (docs.pytorch.org/docs/stable/elastic/run.html), gloo and NCCL
(…SOCKET_IFNAME) and Open MPI (OMPI_MCA_<parameter>, ompi_info).
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from emulator.fabric.spec import HostSite
from emulator.programs.placeholders import fill
from emulator.programs.spec import Program

_OURS = ("EMULATOR_PAYLOAD_FD", "EMULATOR_SANDBOX_FD", "PYTHONSAFEPATH")


@dataclass(frozen=True)
class User:
    """Whose right a program runs with. groups: all of its supplementary groups."""

    uid: int
    gid: int
    groups: tuple[int, ...]
    name: str
    home: str


def base(environ: Mapping[str, str], root: str, user: User) -> dict[str, str]:
    """The environment of the command line, without what the emulator put there, with the user's home."""
    kept = {key: value for key, value in environ.items() if key not in _OURS}
    paths = [part for part in kept.pop("PYTHONPATH", "").split(":") if part and part != root]
    if paths:
        kept["PYTHONPATH"] = ":".join(paths)
    return {**kept, "HOME": user.home, "USER": user.name, "LOGNAME": user.name}


def of_host(program: Program, site: HostSite) -> dict[str, str]:
    """What every process on a host needs to find the fabric's interface, whatever its library."""
    names = ",".join([site.interface] * program.connections)
    return {"GLOO_SOCKET_IFNAME": names, "NCCL_SOCKET_IFNAME": site.interface,
            "TP_SOCKET_IFNAME": site.interface,
            "NCCL_IB_DISABLE": "1", "NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1",
            "OMPI_MCA_btl_tcp_if_include": site.interface, "OMPI_MCA_oob_tcp_if_include": site.interface,
            "FABRIC_HOST": site.name, "FABRIC_ADDRESS": site.ip, "FABRIC_INTERFACE": site.interface}


def of_rank(program: Program, sites: Sequence[HostSite], rank: int) -> dict[str, str]:
    """What one rank is told; sites[r] is the host of rank r."""
    world = str(len(sites))
    told = {**of_host(program, sites[rank]), "RANK": str(rank), "WORLD_SIZE": world, "LOCAL_RANK": "0",
            "LOCAL_WORLD_SIZE": "1", "MASTER_ADDR": sites[0].ip, "MASTER_PORT": str(program.port),
            "HOSTS": ",".join(site.ip for site in sites)}
    if program.kind == "torchrun":
        told.update(GROUP_RANK=str(rank), GROUP_WORLD_SIZE=world, ROLE_RANK=str(rank), ROLE_WORLD_SIZE=world,
                    ROLE_NAME="default", TORCHELASTIC_RUN_ID="none", TORCHELASTIC_RESTART_COUNT="0",
                    TORCHELASTIC_MAX_RESTARTS="0", OMP_NUM_THREADS="1")
    return told


def filled(program: Program, sites: Sequence[HostSite], rank: int) -> list[str]:
    """The command of one rank, its placeholders filled in (`placeholders.py`)."""
    peer = sites[(rank + 1) % len(sites)]
    values = {"rank": str(rank), "world": str(len(sites)), "host": sites[rank].name,
              "address": sites[rank].ip,
              "peer": peer.ip, "master": sites[0].ip, "port": str(program.port),
              "hosts": ",".join(site.ip for site in sites), "interface": sites[rank].interface}
    command = [fill(word, values) for word in program.command]
    return command if program.kind != "torchrun" else [program.python, "-u", *command]
