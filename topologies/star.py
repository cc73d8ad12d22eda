"""Hosts on one switch as a Mininet Topo.

    sudo mn --custom topologies/star.py --topo star,16

`mn` executes this file bare, so it imports nothing but Mininet.
"""
from mininet.topo import Topo


class Star(Topo):
    """Host i (from 1) hangs on port i of switch s1; its address counts up from 10.0.0.2."""

    def build(self, hosts=16):
        """hosts: 2 to 1000."""
        if not isinstance(hosts, int) or not 2 <= hosts <= 1000:
            raise ValueError(f"a star needs 2 to 1000 hosts, not {hosts}")
        switch = self.addSwitch("s1", dpid=f"{1:016x}", tier=0, role="edge", pod=0)
        for i in range(hosts):
            third, fourth = divmod(i, 250)
            host = self.addHost(f"h{i + 1}", ip=f"10.0.{third}.{fourth + 2}/8",
                                mac=f"02:00:0a:00:{third:02x}:{fourth + 2:02x}")
            self.addLink(host, switch, port1=0, port2=i + 1, speed=1.0, tier="host-edge")


topos = {"star": Star}
