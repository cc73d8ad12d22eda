"""From a built fabric to its bpf switches: the ports' queues, the programs on them, and the read-back.

`build.build` leaves the switch ports of a `bpf` fabric without queues; this is what comes next.
"""
from __future__ import annotations

from emulator.asic.chip import Chip, PortSite, SwitchSite, install
from emulator.asic.gate import KICK
from emulator.asic.hashing import mix
from emulator.asic.queueing import Queueing
from emulator.asic.shaper import port_faults, port_messages, read_qdiscs
from emulator.asic.sizes import Sizes
from emulator.errors import EmulatorError
from emulator.fabric import rtnl
from emulator.fabric.build import Fabric
from emulator.netlink import Netlink, NetlinkError

_IFLA_ADDRESS = 1
_MASK64 = (1 << 64) - 1


def sites(fabric: Fabric) -> tuple[SwitchSite, ...]:
    """The switches with their ports; seeds differ by switch and follow the experiment's seed."""
    with Netlink() as netlink:
        links = rtnl.links(netlink)
    found = []
    for switch in fabric.spec.graph.switches:
        ports = tuple(PortSite(port.number, port.name, port.ifindex, links[port.name][2][_IFLA_ADDRESS],
                               port.rate_bps, port.limit_bytes)
                      for port in fabric.switch_ports if port.node == switch.name)
        found.append(SwitchSite(switch.dpid, mix((fabric.spec.seed << 32 ^ switch.dpid) & _MASK64), ports))
    return tuple(found)


def assemble(fabric: Fabric, queueing: Queueing, telemetry: bool = True, sizes: Sizes = Sizes()) -> Chip:
    """Shape every switch port and put the programs on it; call it in the sandbox, after `build`.

    Every packet is dropped until an agent puts tables in force. Raises BadInput for queues that cannot
    be, MachineLacks where the kernel refuses the programs.
    """
    messages = [message for port in fabric.switch_ports for message in port_messages(
        port.ifindex, port.rate_bps, port.limit_bytes, fabric.spec.mtu, queueing)]
    try:
        with Netlink() as netlink:
            netlink.batch(messages)
    except NetlinkError as error:
        raise EmulatorError(f"The kernel refused the queues of the switches: {error.strerror} "
                            f"(message {error.index}).") from error
    chip = install(sites(fabric), queueing, fabric.spec.mtu, telemetry, sizes)
    if len(queueing.classes) > 1:
        _spend_own_rates(chip)
    return chip


def _spend_own_rates(chip: Chip) -> None:
    """One frame of ours through each class: the first goes by the class's own rate, ahead of strict classes;
    after it nothing does for a minute, the longest that HTB remembers a debt (HTB's mbuffer).
    """
    for ifindex in chip.site:
        for number in range(chip.classes):
            chip.emit(ifindex, KICK, number)


def faults(fabric: Fabric, queueing: Queueing) -> list[str]:
    """A sentence for each switch port whose queues are not as assembled: the counterpart of verify_links."""
    with Netlink() as netlink:
        found = read_qdiscs(netlink)
        mtu = fabric.spec.mtu
        return [fault for port in fabric.switch_ports for fault in port_faults(
            netlink, found, port.name, port.ifindex, port.rate_bps, port.limit_bytes, mtu, queueing)]
