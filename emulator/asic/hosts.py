"""Hosts whose own ports have classes: the tree of a switch's port, and a program that sorts by DSCP.

A strict class that waited in its sender's one queue behind everything else would be strict in name only.
"""
from __future__ import annotations

import struct
from collections.abc import Sequence

from emulator import netns
from emulator.asic.build import object_path
from emulator.asic.objects import EGRESS, open_object, tc_attach, tc_hook
from emulator.asic.queueing import Queueing
from emulator.asic.shaper import port_faults, port_messages, read_qdiscs, class_messages
from emulator.errors import EmulatorError
from emulator.fabric.build import Fabric
from emulator.fabric.spec import Port
from emulator.netlink import Message, Netlink, NetlinkError


def shape_hosts(fabric: Fabric, queueing: Queueing) -> None:
    """The queues of all hosts of a fabric that was built without them; call it before traffic.

    Raises BadInput for queues that cannot be, MachineLacks where the kernel refuses the program.
    """
    loaded = open_object(object_path("host"), settings=struct.pack("64B", *queueing.class_of_dscp))
    try:
        for port in host_ports(fabric):
            with netns.entered(port.netns):
                send(port_messages(port.ifindex, port.rate_bps, port.limit_bytes, fabric.spec.mtu, queueing),
                     port.name)
                tc_hook(port.ifindex)
                tc_attach(port.ifindex, loaded.program("classify"), EGRESS)
    finally:
        loaded.close()  # the interfaces hold the program


def host_faults(fabric: Fabric, queueing: Queueing) -> list[str]:
    """A sentence for each host port whose queues are not as they were made."""
    faults = []
    for port in host_ports(fabric):
        with netns.entered(port.netns), Netlink() as netlink:
            faults += port_faults(netlink, read_qdiscs(netlink), port.name, port.ifindex, port.rate_bps,
                                  port.limit_bytes, fabric.spec.mtu, queueing)
    return faults


def reweigh_hosts(fabric: Fabric, queueing: Queueing) -> None:
    """Give the classes of all hosts' ports the weights of `queueing`."""
    for port in host_ports(fabric):
        with netns.entered(port.netns):
            send(class_messages(port.ifindex, port.rate_bps, port.limit_bytes, fabric.spec.mtu, queueing),
                 port.name)


def host_ports(fabric: Fabric) -> Sequence[Port]:
    """The ports that belong to hosts."""
    return [port for port in fabric.ports if port.netns is not None]


def send(messages: Sequence[Message], name: str) -> None:
    """Send to the namespace that this thread is in; EmulatorError names the interface."""
    try:
        with Netlink() as netlink:
            netlink.batch(messages)
    except NetlinkError as error:
        raise EmulatorError(f"The kernel refused the queues of {name}: {error.strerror}.") from error
