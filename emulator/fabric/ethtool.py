"""Offloads off: a frame in a queue must be one packet of the emulated wire, checksummed when it is sent.

With checksum or segmentation offload a veth carries 64 KB "packets" without checksums, which userspace
switches forward unchecked until TCP hangs. Legacy ethtool ioctls (include/uapi/linux/ethtool.h), each
read back.
"""
from __future__ import annotations

import array
import fcntl
import socket
import struct

from emulator.errors import MachineLacks

_SIOCETHTOOL = 0x8946
# name: (ETHTOOL_G…, ETHTOOL_S…); scatter-gather and tso fall with the checksum, but are asked for anyway
OFFLOADS = {"tx-checksum": (0x16, 0x17), "scatter-gather": (0x18, 0x19), "tso": (0x1E, 0x1F),
            "gso": (0x23, 0x24), "gro": (0x2B, 0x2C)}


def _ioctl(any_socket: socket.socket, interface: str, command: int, value: int) -> int:
    buffer = array.array("B", struct.pack("=II", command, value))
    pointer = buffer.buffer_info()[0]
    fcntl.ioctl(any_socket, _SIOCETHTOOL, struct.pack("16sP16x", interface.encode(), pointer))
    return struct.unpack("=II", buffer)[1]


def offloads_off(interfaces: list[str]) -> None:
    """Switch the offloads of `interfaces` of this thread's namespace off, and read them back.

    Raises MachineLacks when one stays on.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        for interface in interfaces:
            for name, (get, put) in OFFLOADS.items():
                _ioctl(any_socket, interface, put, 0)
                if _ioctl(any_socket, interface, get, 0):
                    raise MachineLacks(f"The kernel keeps {name} on for {interface}; queues would hold "
                                       "packets above the MTU. Use a kernel whose veth can turn it off.")


def offloads_on(interface: str) -> tuple[str, ...]:
    """The offloads of an interface of this thread's namespace that are on."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        return tuple(name for name, (get, _) in OFFLOADS.items() if _ioctl(any_socket, interface, get, 0))
