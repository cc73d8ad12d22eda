"""Links that fail and come back while a fabric runs."""
from __future__ import annotations

from emulator.fabric import rtnl
from emulator.fabric.build import Fabric
from emulator.netlink import Netlink


def set_link(fabric: Fabric, link: int, up: bool) -> None:
    """Take link number `link` of the graph down, or up again, at its switch ends.

    Both ends lose their carrier. A host's own end stays up, as with a pulled cable: going down, it would
    forget its route and its neighbour.
    """
    ends = [port.ifindex for port in fabric.switch_ports if port.link == link]
    with Netlink() as netlink:
        netlink.batch([rtnl.link_state(ifindex, up) for ifindex in ends])
