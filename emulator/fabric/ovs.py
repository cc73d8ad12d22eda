"""Open vSwitch for one fabric: its own database and daemon inside the sandbox, and questions to them.

Everything lives in the sandbox's private /run/openvswitch, so that `ovs-vsctl` and `ovs-ofctl` work
there as users know them and the machine's own Open vSwitch is never touched.
"""
from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass

from emulator import machine
from emulator.errors import BadInput, EmulatorError
from emulator.fabric import ovs_daemons as daemons
from emulator.fabric.build import GATEWAY_MAC, Fabric
from emulator.fabric.jsonrpc import JsonRpc
from emulator.fabric.ovs_database import configured, operations, port_faults, transact
from emulator.fabric.ovs_sockets import borrow, close_at_once, widen
from emulator.fabric.release import release_at
from emulator.fabric.verify import verify_links, wait_until_verified


_EXPERIMENTAL = "88b5"  # EtherType for local experiments (IEEE 802): no host takes it up


@dataclass(frozen=True)
class Lookups:
    """Counters of the datapath: packets that matched, that missed (upcalls), that were lost on the way
    up, and drops by cause, all since the start.
    """

    hit: int
    missed: int
    lost: int
    drops: dict[str, int]


class Ovs:
    """The running Open vSwitch of `fabric`."""

    def __init__(self, fabric: Fabric, database: JsonRpc, control: JsonRpc, processes: list) -> None:
        self.fabric = fabric
        self._database, self._control, self._processes = database, control, processes

    @property
    def pid(self) -> int:
        """Process id of ovs-vswitchd."""
        return self._processes[-1].pid

    def appctl(self, command: str, *arguments: str) -> str:
        """What `ovs-appctl` would print."""
        return str(self._control.call(command, *arguments))

    def output_port(self, switch: str, flow: str) -> str | None:
        """The interface by which `switch` sends a packet of `flow` (ovs-fields(7) syntax), None if it
        drops it; about 1.5 ms.
        """
        return parse_output(self.appctl("ofproto/trace", "--names", switch, flow))

    def path(self, source: str, destination: str, protocol: str, source_port: int,
             destination_port: int) -> tuple[str, ...]:
        """The interfaces that send a packet from host to host, in order, by the tables in force.

        protocol: 'tcp' or 'udp'. Raises EmulatorError where the packet is dropped or goes in a loop.
        """
        fabric, graph = self.fabric, self.fabric.spec.graph
        at = fabric.port[fabric.site[source].interface]
        sent = [at.name]
        for _ in range(len(graph.switches) + 1):
            arrived = fabric.port[at.peer]
            if arrived.node in graph.host:
                if arrived.node != destination:
                    raise EmulatorError(f"Packets from {source} to {destination} arrive at {arrived.node}.")
                return tuple(sent)
            out = self.output_port(arrived.node, (
                f"in_port={arrived.number},{protocol},dl_dst={GATEWAY_MAC},"
                f"nw_src={graph.host[source].ip},nw_dst={graph.host[destination].ip},nw_ttl=64,"
                f"tp_src={source_port},tp_dst={destination_port}"))
            if out is None:
                raise EmulatorError(f"Switch {arrived.node} drops packets from {source} to {destination}.")
            at = fabric.port[out]
            sent.append(out)
        raise EmulatorError(f"Packets from {source} to {destination} go in a loop: {' '.join(sent[-6:])}.")

    def group_packets(self) -> dict[str, int]:
        """None: Open vSwitch counts groups from its flow cache, seconds later."""
        return {}

    def losses(self) -> dict[str, int]:
        """Packets lost inside the switches, since the start: none of them is a queue's."""
        return {f"lookups lost of ovs-{self.fabric.datapath}": self.lookups().lost}

    def set_bit_error_rate(self, rate: float) -> None:
        """Open vSwitch loses nothing on purpose."""
        raise BadInput(f"Open vSwitch cannot lose packets to bit errors ({rate:g} was asked); use --switch "
                       "bpf.")

    def bit_errors(self) -> dict[str, int]:
        """None."""
        return {}

    def link_faults(self) -> list[str]:
        """A sentence for each port that is not as it was built."""
        return verify_links(self.fabric)

    def record(self) -> None:
        """Open vSwitch keeps no record of single packets; its queues are sampled."""

    def failure(self) -> str | None:
        """None while the daemons live, else a sentence."""
        try:
            self.check_alive()
        except EmulatorError as error:
            return str(error)
        return None

    def lookups(self) -> Lookups:
        """The datapath's counters now."""
        return parse_lookups(self.appctl("dpctl/show"), self.appctl("coverage/show"))

    def log_tail(self) -> str:
        """The last lines of both logs, for a failure's report."""
        return daemons.log_tails()

    def check_alive(self) -> None:
        """Raise EmulatorError when a daemon has ended."""
        for process in self._processes:
            daemons.check_alive(process)

    def stop(self) -> None:
        """End both daemons quickly; the end of the sandbox would do it, but slowly (`ovs_sockets`)."""
        for connection in (self._control, self._database):
            connection.close()
        sockets = borrow(self.pid) if self._processes[-1].poll() is None else []
        daemons.kill(self._processes)
        close_at_once(sockets)


def start(fabric: Fabric, controller_port: int) -> Ovs:
    """Open vSwitch for all switches of a built fabric, with its controller at 127.0.0.1:controller_port.

    Returns when every bridge and port is in force and all links were read back again after it. Raises
    MachineLacks when programs or the kernel datapath are missing, EmulatorError with the log's tail.
    """
    wanted = operations(fabric, f"tcp:127.0.0.1:{controller_port}")
    if fabric.datapath == "system":
        daemons.await_kernel_datapath()
    # of ovs-vswitchd: a packet socket a port; a tap, pipes and connections a bridge
    machine.require_open_files(2 * len(fabric.switch_ports) + 16 * len(fabric.switches))
    processes: list[subprocess.Popen] = []
    try:
        database = daemons.start_database(processes)
        transact(database, wanted)
        control = daemons.start_switch(processes)
        daemons.wait_until(lambda: configured(database), processes, 10.0 + 0.1 * len(fabric.switch_ports),
                           "Open vSwitch did not put its ports in force")
        ovs = Ovs(fabric, database, control, processes)
        faults = list(port_faults(database, fabric))
        if faults:
            raise EmulatorError(f"Open vSwitch did not take all ports. {' '.join(faults[:3])}")
        if fabric.datapath == "netdev":
            _open_sending_socket(fabric)
            widen(ovs.pid, sum(port.limit_bytes for port in fabric.switch_ports))
        else:
            release_at(fabric.switch_ports)
        wait_until_verified(fabric)
    except EmulatorError as error:
        daemons.kill(processes)
        raise type(error)(f"{error}\n{daemons.log_tails()}") from error
    return ovs


def _open_sending_socket(fabric: Fabric) -> None:
    """Send one frame out of a port: ovs-vswitchd opens its shared socket with the first packet."""
    port = fabric.switch_ports[0]
    frame = "020000000000" + "020000000001" + _EXPERIMENTAL + "00" * 46
    done = subprocess.run(
        [machine.program("ovs-ofctl"), "-O", "OpenFlow13", "packet-out", port.node,
         f"in_port=LOCAL packet={frame} actions=output:{port.number}"],
        capture_output=True, text=True, timeout=30)
    if done.returncode:
        raise EmulatorError(f"Switch {port.node} took no packet: {done.stderr.strip()}")


def parse_output(trace: str) -> str | None:
    """The output interface in the text of `ofproto/trace --names`, None for a drop."""
    actions = re.findall(r"^Datapath actions: (.*)$", trace, re.MULTILINE)
    if not actions:
        raise EmulatorError(f"Open vSwitch's trace has no datapath actions: {trace}")
    last = re.sub(r"\w+\((?:[^()]|\([^()]*\))*\),?", "", actions[-1]).strip().strip('"')
    return None if last in ("drop", "") else last


def parse_lookups(shown: str, coverage: str) -> Lookups:
    """Counters from the texts of `dpctl/show` and `coverage/show`."""
    match = re.search(r"lookups: hit:(\d+) missed:(\d+) lost:(\d+)", shown)
    if not match:
        raise EmulatorError(f"Open vSwitch shows no lookups of its datapath: {shown}")
    drops = {name: int(total) for name, total in
             re.findall(r"^(\w*drop\w*)\s.*total: (\d+)", coverage, re.MULTILINE)}
    return Lookups(*map(int, match.groups()), drops)
