"""The k-ary fat-tree of Al-Fares, Loukissas and Vahdat (SIGCOMM 2008) as a Mininet Topo.

    sudo mn --custom topologies/fat_tree.py --topo fattree,4

`mn` executes this file bare, so it imports nothing but Mininet.
"""
from mininet.topo import Topo


class FatTree(Topo):
    """k pods of k/2 edge and k/2 aggregation switches, (k/2)^2 cores, k^3/4 hosts; all links alike.

    Host j (from 0) of edge switch e in pod p has the address 10.p.e.(j+2). Edge and aggregation
    switches are named by these coordinates, from 0; hosts and cores are counted from 1 (Mininet
    calls its own controller c0). Ports of a switch: downwards 1..k/2, upwards k/2+1..k; a core
    reaches pod p by port p+1. Aggregation switch a of each pod hangs on cores a*k/2+1..(a+1)*k/2.
    """

    def build(self, k=4):
        """k: ports of each switch, even, 2 to 16."""
        if not isinstance(k, int) or k % 2 or not 2 <= k <= 16:
            raise ValueError(f"a fat-tree needs an even k from 2 to 16, not {k}")
        half = k // 2
        cores = [self.addSwitch(f"c{c + 1}", dpid=f"{0x30000 + c + 1:016x}",
                                tier=2, role="core", pod=-1) for c in range(half * half)]
        rank = 0
        for pod in range(k):
            aggregations = [self.addSwitch(f"a{pod}_{a}", dpid=f"{0x20000 + pod * 256 + a:016x}",
                                           tier=1, role="aggregation", pod=pod) for a in range(half)]
            for a, aggregation in enumerate(aggregations):
                for i in range(half):
                    self.addLink(aggregation, cores[a * half + i], port1=half + i + 1, port2=pod + 1,
                                 speed=1.0, tier="aggregation-core")
            for e in range(half):
                edge = self.addSwitch(f"e{pod}_{e}", dpid=f"{0x10000 + pod * 256 + e:016x}",
                                      tier=0, role="edge", pod=pod)
                for j in range(half):
                    rank += 1
                    host = self.addHost(f"h{rank}", ip=f"10.{pod}.{e}.{j + 2}/8",
                                        mac=f"02:00:0a:{pod:02x}:{e:02x}:{j + 2:02x}")
                    self.addLink(host, edge, port1=0, port2=j + 1, speed=1.0, tier="host-edge")
                for a, aggregation in enumerate(aggregations):
                    self.addLink(edge, aggregation, port1=half + a + 1, port2=e + 1,
                                 speed=1.0, tier="edge-aggregation")


topos = {"fattree": FatTree}
