"""A random regular graph of switches as a Mininet Topo: Jellyfish (Singla et al., NSDI 2012).

    sudo mn --custom topologies/random_regular.py --topo randomregular,8,3,2

`mn` executes this file bare, so it imports nothing but Mininet and the standard library.
"""
import random

from mininet.topo import Topo

TRIES = 10000


class RandomRegular(Topo):
    """Every switch has `degree` links to others, no two to the same, and `hosts` hosts.

    Host j (from 0) of switch x<n> is 10.0.n.(j+2), n from 1. Ports: hosts 1..hosts, links after them in the
    order of the other switch's number. The same seed gives the same graph, with any version of anything.
    """

    def build(self, switches=8, degree=3, hosts=2, seed=1):
        """switches: 3 to 250; degree: 2 to switches-1, switches*degree even; hosts: on each; seed: >= 0."""
        for name, value, low, high in (("switches", switches, 3, 250), ("degree", degree, 2, switches - 1),
                                       ("hosts", hosts, 1, 250)):
            if not isinstance(value, int) or not low <= value <= high:
                raise ValueError(f"a random regular graph needs {name} from {low} to {high}, not {value}")
        if switches * degree % 2:
            raise ValueError(f"{switches} switches of degree {degree} have an odd number of ends "
                             f"({switches * degree}); make one of them even")
        if switches * hosts > 2048:
            raise ValueError(f"{switches} switches of {hosts} hosts are {switches * hosts}, more than 2048")
        wires = wired(switches, degree, random.Random(f"random regular {seed}"))
        rank, last = 0, {}
        for n in range(1, switches + 1):
            switch = self.addSwitch(f"x{n}", dpid=f"{0x10000 + n:016x}", tier=0, role="switch", pod=n)
            last[n] = hosts
            for j in range(hosts):
                rank += 1
                host = self.addHost(f"h{rank}", ip=f"10.0.{n}.{j + 2}/8",
                                    mac=f"02:00:0a:00:{n:02x}:{j + 2:02x}")
                self.addLink(host, switch, port1=0, port2=j + 1, speed=1.0, tier="host-switch")
        for a, b in sorted(wires):
            last[a], last[b] = last[a] + 1, last[b] + 1
            self.addLink(f"x{a}", f"x{b}", port1=last[a], port2=last[b], speed=1.0, tier="switch-switch")


def wired(switches, degree, rng):
    """The links, as sorted pairs of switches from 1: loose ends joined at random, as Jellyfish is built.

    Where only ends are left that cannot be joined, a link that stands is opened for them.
    """
    for _ in range(TRIES):
        wires = _joined(switches, degree, rng)
        if wires is not None and _connected(switches, wires):
            return wires
    raise ValueError(f"no connected graph of {switches} switches with degree {degree} in {TRIES} tries")


def _joined(switches, degree, rng):
    free = dict.fromkeys(range(1, switches + 1), degree)
    wires = set()
    for _ in range(4 * switches * degree):
        loose = [n for n, ends in free.items() if ends]
        if not loose:
            return wires
        open_pairs = [(a, b) for i, a in enumerate(loose) for b in loose[i + 1:] if (a, b) not in wires]
        if open_pairs:
            made = [rng.choice(open_pairs)]
        else:
            a = rng.choice(loose)
            b = rng.choice([n for n in loose if n != a] or [a])
            if a == b and free[a] < 2:
                return None
            candidates = [(c, d) for c, d in sorted(wires)
                          if not {a, b} & {c, d} and _pair(a, c) not in wires and _pair(b, d) not in wires]
            if not candidates:
                return None
            c, d = rng.choice(candidates)
            wires.remove((c, d))
            free[c] += 1
            free[d] += 1
            made = [_pair(a, c), _pair(b, d)]
        for x, y in made:
            wires.add((x, y))
            free[x] -= 1
            free[y] -= 1
    return None


def _pair(a, b):
    return (a, b) if a < b else (b, a)


def _connected(switches, wires):
    reached, frontier = {1}, [1]
    while frontier:
        frontier = [other for node in frontier for wire in wires if node in wire
                    for other in wire if other not in reached and not reached.add(other)]
    return len(reached) == switches


topos = {"randomregular": RandomRegular}
