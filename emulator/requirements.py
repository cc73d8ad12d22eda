"""What the runs of an invocation need of this machine, asked before anything starts."""
from __future__ import annotations

import os
from collections.abc import Sequence

from controllers.external import require_listener
from emulator import machine
from emulator.asic.build import object_path, sources
from emulator.asic.cc import BPF_ALGORITHMS
from emulator.asic.libbpf import supported as asic_supported
from emulator.delay import way as delay_way
from emulator.errors import BadInput, MachineLacks, nearest
from emulator.plan import Plan
from emulator.programs.mpi import require as require_mpi
from emulator.resolve import SWITCHES
from emulator.stdout import complain
from traffic.engine import connections_of


def choose_switch(kind: str) -> tuple[str, str]:
    """(switch, datapath) that this machine will use; `auto` takes the fastest that it supports."""
    if kind not in SWITCHES:
        raise BadInput(f'there is no switch "{kind}"{nearest(kind, SWITCHES)}.')
    if kind != "ovs":
        reason = _asic_lacks() if os.geteuid() == 0 else None  # who plans without root cannot ask the kernel
        if reason is None:
            return "bpf", "bpf"
        if kind == "bpf":
            raise MachineLacks(f"--switch bpf does not work here: {reason}")
    return "ovs", "system" if machine.kernel_datapath() else "netdev"


def _asic_lacks() -> str | None:
    """Why this machine cannot run the bpf switch, as a sentence; None where it can."""
    if not all(object_path(path.name.removesuffix(".bpf.c")).exists() for path in sources()):
        return "its programs are not compiled; run: python -m emulator.asic.build."
    return asic_supported()


def require(plans: Sequence[Plan]) -> None:
    """Everything that a run needs of the machine; MachineLacks or BadInput for the first that is missing."""
    machine.require_root()
    if any(plan.experiment.switch == "auto" and plan.switch == "ovs" for plan in plans):
        complain(f"emulator: the bpf switch does not work here, so Open vSwitch is used: {_asic_lacks()}\n")
    if any(plan.switch == "ovs" for plan in plans):
        machine.require_programs(machine.OVS_PROGRAMS)
    machine.require_programs(["mnexec"])
    if any(plan.wire.delay_s for plan in plans):
        way = delay_way.choose()
        delay_way.require(way)
        complain(f"emulator: links are delayed by {way}.\n")
    if any(plan.experiment.pcap for plan in plans):
        machine.require_programs(["tcpdump"])
    if any(plan.program and plan.program.kind == "mpi" for plan in plans):
        require_mpi()
    for address in {plan.external for plan in plans if plan.external}:
        require_listener(address)
    machine.require_qdiscs(["htb", "bfifo"])
    machine.require_open_files(max(map(_open_files, plans)))


def require_congestion_controls(plans: Sequence[Plan]) -> None:
    """Each is in the kernel, or is one of ours."""
    for plan in plans:
        try:  # asking loads the kernel's module, where there is one
            machine.require_congestion_control(plan.experiment.cc, BPF_ALGORITHMS)
        except MachineLacks:
            ours = plan.experiment.cc in BPF_ALGORITHMS and (os.geteuid() != 0 or asic_supported() is None)
            if not ours:
                raise


def _open_files(plan: Plan) -> int:
    """The most that one process of a run holds open: the gate's sockets or the engine's, a counter's socket
    and a namespace for each host, and Open vSwitch's two for each of its ports."""
    connections = len(connections_of(plan.workload))
    ports = 2 * len(plan.graph.links) if plan.switch == "ovs" else 0
    return max(6 * len(plan.graph.hosts), 2 * len(plan.graph.hosts) + 2 * connections, 2 * ports)
