"""The dragonfly of Kim, Dally, Scott and Abts (ISCA 2008) as a Mininet Topo.

    sudo mn --custom topologies/dragonfly.py --topo dragonfly,2,2,1,3

`mn` executes this file bare, so it imports nothing but Mininet.
"""
from mininet.topo import Topo


class Dragonfly(Topo):
    """g groups of a routers, each with p hosts, a link to every router of its group, h global links.

    Every two groups share a*h/(g-1) global links. Host j (from 0) of router r in group n is
    10.n.r.(j+2). Ports of a router: hosts 1..p, the other routers p+1..p+a-1 by their number, then
    global links. Global link l between groups n < m takes channel (m-1)*w+l of n and n*w+l of m,
    where w is the number of such links and channel c is global port c%h of router c/h.
    """

    def build(self, p=2, a=2, h=1, g=3):
        """p: hosts of a router; a: routers of a group; h: global links of a router; g: groups."""
        for name, value, low, high in (("p", p, 1, 250), ("a", a, 1, 64), ("h", h, 1, 64), ("g", g, 2, 250)):
            if not isinstance(value, int) or not low <= value <= high:
                raise ValueError(f"a dragonfly needs {name} from {low} to {high}, not {value}")
        if a * h % (g - 1):
            raise ValueError(f"the {a}*{h} global links of a group do not divide evenly among {g - 1} "
                             f"others; take a g for which g-1 divides {a * h}, at most {a * h + 1}")
        if p * a * g > 2048:
            raise ValueError(f"{g} groups of {a} routers of {p} hosts are {p * a * g} hosts, more than 2048")
        for n in range(g):
            self._addGroup(n, p, a)
        width = a * h // (g - 1)
        for n in range(g):
            for m in range(n + 1, g):
                for link in range(width):
                    ours, theirs = (m - 1) * width + link, n * width + link
                    self.addLink(f"r{n}_{ours // h}", f"r{m}_{theirs // h}", port1=p + a + ours % h,
                                 port2=p + a + theirs % h, speed=1.0, tier="global")

    def _addGroup(self, n, p, a):
        """Group n with its hosts and local links."""
        for r in range(a):
            router = self.addSwitch(f"r{n}_{r}", dpid=f"{0x10000 + n * 256 + r:016x}",
                                    tier=0, role="router", pod=n)
            for j in range(p):
                host = self.addHost(f"h{(n * a + r) * p + j + 1}", ip=f"10.{n}.{r}.{j + 2}/8",
                                    mac=f"02:00:0a:{n:02x}:{r:02x}:{j + 2:02x}")
                self.addLink(host, router, port1=0, port2=j + 1, speed=1.0, tier="host-router")
            for other in range(r):
                self.addLink(f"r{n}_{other}", router, port1=p + r, port2=p + other + 1,
                             speed=1.0, tier="local")


topos = {"dragonfly": Dragonfly}
