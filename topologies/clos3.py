"""A three-tier folded Clos of pods and core planes as a Mininet Topo.

    sudo mn --custom topologies/clos3.py --topo clos3,2,2,2,2,2

`mn` executes this file bare, so it imports nothing but Mininet.
"""
from mininet.topo import Topo


class Clos3(Topo):
    """Pods of leaves and spines, joined by one plane of cores for each spine position.

    Host j (from 0) of leaf n (from 0) in pod p is 10.p.n.(j+2). Leaves and spines are named by these
    coordinates, hosts and cores are counted from 1. Spine s reaches cores s+1, s+1+spines, …
    (the order of htsim). A link between two switches may be a bundle of parallel ones. Speeds follow
    from the ratio of what a switch takes in from below to what it can send up.
    """

    def build(self, pods=2, leaves=2, spines=2, cores=2, hosts=2, oversubscription=1.0,
              spine_oversubscription=1.0, leaf_bundle=1, spine_bundle=1):
        """leaves, spines: in each pod; cores: in each plane (0 with one pod: two tiers); hosts: on each leaf.

        oversubscription: of the leaves; spine_oversubscription: of the spines; leaf_bundle,
        spine_bundle: parallel links from a leaf to a spine, from a spine to a core.
        """
        for name, value, low, high in (
                ("pods", pods, 1, 250), ("leaves", leaves, 1, 250), ("spines", spines, 1, 128),
                ("cores", cores, 0, 128), ("hosts", hosts, 1, 250), ("leaf_bundle", leaf_bundle, 1, 64),
                ("spine_bundle", spine_bundle, 1, 64)):
            if not isinstance(value, int) or not low <= value <= high:
                raise ValueError(f"a clos3 needs {name} from {low} to {high}, not {value}")
        for ratio in (oversubscription, spine_oversubscription):
            if not 0.01 <= ratio <= 100:
                raise ValueError(f"an oversubscription must lie between 0.01 and 100, not {ratio}")
        if pods * leaves * hosts > 2048:
            raise ValueError(f"{pods} pods of {leaves} leaves of {hosts} hosts are more than 2048 hosts")
        if cores == 0 and pods > 1:
            raise ValueError(f"{pods} pods need cores between them")
        up = hosts / (spines * leaf_bundle * oversubscription)
        top = up * leaves * leaf_bundle / (max(cores, 1) * spine_bundle * spine_oversubscription)
        for c in range(spines * cores):
            self.addSwitch(f"c{c + 1}", dpid=f"{0x30000 + c + 1:016x}", tier=2, role="core", pod=-1)
        for pod in range(pods):
            for s in range(spines):
                spine = self.addSwitch(f"s{pod}_{s}", dpid=f"{0x20000 + pod * 256 + s:016x}",
                                       tier=1, role="spine", pod=pod)
                for n in range(cores):
                    for b in range(spine_bundle):
                        self.addLink(spine, f"c{s + spines * n + 1}", port2=pod * spine_bundle + b + 1,
                                     port1=leaves * leaf_bundle + n * spine_bundle + b + 1,
                                     speed=top, tier="spine-core")
            for n in range(leaves):
                self._addLeaf(pod, n, spines, hosts, leaf_bundle, up, (pod * leaves + n) * hosts)

    def _addLeaf(self, pod, n, spines, hosts, bundle, up, first):
        """A leaf, its hosts from rank `first` (from 0) and its links to the spines of its pod."""
        leaf = self.addSwitch(f"l{pod}_{n}", dpid=f"{0x10000 + pod * 256 + n:016x}",
                              tier=0, role="leaf", pod=pod)
        for j in range(hosts):
            host = self.addHost(f"h{first + j + 1}", ip=f"10.{pod}.{n}.{j + 2}/8",
                                mac=f"02:00:0a:{pod:02x}:{n:02x}:{j + 2:02x}")
            self.addLink(host, leaf, port1=0, port2=j + 1, speed=1.0, tier="host-leaf")
        for s in range(spines):
            for b in range(bundle):
                self.addLink(leaf, f"s{pod}_{s}", port1=hosts + s * bundle + b + 1,
                             port2=n * bundle + b + 1, speed=up, tier="leaf-spine")


topos = {"clos3": Clos3}
