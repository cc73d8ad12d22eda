"""A two-tier leaf-spine (folded Clos) as a Mininet Topo.

    sudo mn --custom topologies/leaf_spine.py --topo leafspine,4,2,4

`mn` executes this file bare, so it imports nothing but Mininet.
"""
from mininet.topo import Topo


class LeafSpine(Topo):
    """Every leaf has one uplink to every spine; host j (from 0) of leaf n is 10.0.n.(j+2).

    An uplink is hosts / (spines * oversubscription) times as fast as a host link, so that
    oversubscription is what a leaf takes in from its hosts over what it can send up. The uplinks of the
    first leaf to spines 1 to `slow` run at slow_factor of that.
    Ports: a leaf's hosts from 1, its spines after them; spine port n leads to leaf n.
    """

    def build(self, leaves=4, spines=4, hosts=4, oversubscription=1.0, slow=0, slow_factor=0.25):
        """leaves: 2 to 255; spines: 1 to 128; hosts: on each leaf, 1 to 250; oversubscription: > 0;
        slow: uplinks of leaf 1 that are slower, 0 to spines; slow_factor: their rate over the others', 0.01
        to 1.
        """
        for name, value, low, high in (("leaves", leaves, 2, 255), ("spines", spines, 1, 128),
                                       ("hosts", hosts, 1, 250)):
            if not isinstance(value, int) or not low <= value <= high:
                raise ValueError(f"a leaf-spine needs {name} from {low} to {high}, not {value}")
        if leaves * hosts > 2048:
            raise ValueError(f"{leaves} leaves of {hosts} hosts are {leaves * hosts} hosts, more than 2048")
        if not 0.01 <= oversubscription <= 100:
            raise ValueError(f"oversubscription must lie between 0.01 and 100, not {oversubscription}")
        if not isinstance(slow, int) or not 0 <= slow <= spines:
            raise ValueError(f"slow must be a number of spines, 0 to {spines}, not {slow}")
        if not 0.01 <= slow_factor <= 1:
            raise ValueError(f"slow_factor must lie between 0.01 and 1, not {slow_factor}")
        speed = hosts / (spines * oversubscription)
        tops = [self.addSwitch(f"s{s}", dpid=f"{0x20000 + s:016x}", tier=1, role="spine", pod=-1)
                for s in range(1, spines + 1)]
        rank = 0
        for n in range(1, leaves + 1):
            leaf = self.addSwitch(f"l{n}", dpid=f"{0x10000 + n:016x}", tier=0, role="leaf", pod=n)
            for j in range(hosts):
                rank += 1
                host = self.addHost(f"h{rank}", ip=f"10.0.{n}.{j + 2}/8",
                                    mac=f"02:00:0a:00:{n:02x}:{j + 2:02x}")
                self.addLink(host, leaf, port1=0, port2=j + 1, speed=1.0, tier="host-leaf")
            for s, spine in enumerate(tops):
                self.addLink(leaf, spine, port1=hosts + s + 1, port2=n, tier="leaf-spine",
                             speed=speed * (slow_factor if n == 1 and s < slow else 1.0))


topos = {"leafspine": LeafSpine}
