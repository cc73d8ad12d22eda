"""A fabric as an htsim topology file (.topo): two or three tiers of equal switches in equal pods."""
from __future__ import annotations

from collections import Counter

from emulator.errors import BadInput
from topologies.graph import Graph, Switch


def topo_text(graph: Graph, host_rate_bps: float, delay_s: float = 0.0) -> str:
    """The file of a Clos fabric whose host links have `host_rate_bps` in the target.

    Raises BadInput where the fabric is none, or a link has no whole number of Gb/s, as htsim wants.
    """
    tiers = sorted({switch.tier for switch in graph.switches})
    if tiers not in ([0, 1], [0, 1, 2]):
        raise _not_clos(graph, f"it has {len(tiers)} tiers of switches, not 2 or 3")
    below = [_ports(graph, tier, tier - 1) for tier in tiers]
    above = [_ports(graph, tier, tier + 1) for tier in tiers]
    leaves = [switch for switch in graph.switches if switch.tier == 0]
    pods = Counter(switch.pod for switch in leaves)
    three = len(tiers) == 3
    if three and (len(set(pods.values())) != 1 or -1 in pods):
        raise _not_clos(graph, "its pods do not have equally many leaves")
    if sum(len(graph.neighbours[leaf.name]) - below[0] - above[0] for leaf in leaves):
        raise _not_clos(graph, "some links join switches of one tier")
    per_pod = below[0] * (pods[leaves[0].pod] if three else len(leaves))
    lines = [f"Nodes {len(graph.hosts)}", f"Tiers {len(tiers)}", f"Podsize {per_pod}"]
    for tier in tiers:
        speeds = {link.speed for link in graph.links if graph.switch[link.b].tier == tier
                  and (tier == 0) == (link.a in graph.host)}
        if len(speeds) != 1:
            raise _not_clos(graph, f"the links below tier {tier} run at {len(speeds)} speeds")
        gbps = host_rate_bps * speeds.pop() / 1e9
        if gbps < 0.5 or abs(gbps - round(gbps)) > 1e-6 * gbps:
            raise BadInput(f"{graph.name}: the links below tier {tier} would have {gbps:g} Gb/s, but a .topo "
                           "has whole "
                           "Gb/s; name the target's host link with --host-link 100gbit.")
        lines += ["", f"Tier {tier}", f"Downlink_speed_Gbps {round(gbps)}", f"Radix_Down {below[tier]}"]
        lines += [f"Radix_Up {above[tier]}"] if tier < tiers[-1] else []
        lines += [f"Bundle {_bundle(graph, tier)}"] if tier else []
        lines.append(f"Downlink_Latency_ns {round(delay_s * 1e9)}")
    return "\n".join(lines) + "\n"


def _ports(graph: Graph, tier: int, other: int) -> int:
    """How many ports each switch of a tier has towards another tier (-1: hosts)."""
    def level(node: str) -> int:
        return graph.switch[node].tier if node in graph.switch else -1

    counts = {sum(level(node) == other for node, _ in graph.neighbours[switch.name].values())
              for switch in graph.switches if switch.tier == tier}
    if len(counts) != 1:
        raise _not_clos(graph, f"its switches of tier {tier} differ")
    return counts.pop()


def _bundle(graph: Graph, tier: int) -> int:
    """Parallel links between a switch of this tier and each one below it."""
    bundles: set[int] = set()
    switches: list[Switch] = [switch for switch in graph.switches if switch.tier == tier]
    for switch in switches:
        ends = Counter(node for node, _ in graph.neighbours[switch.name].values()
                       if node in graph.switch and graph.switch[node].tier == tier - 1)
        bundles.update(ends.values())
    if len(bundles) != 1:
        raise _not_clos(graph, f"the bundles below tier {tier} differ")
    return bundles.pop()


def _not_clos(graph: Graph, why: str) -> BadInput:
    return BadInput(f"{graph.name} cannot be written as a .topo: {why}; that takes a Clos of equal pods such "
                    "as "
                    "fat-tree, leaf-spine or clos3.")
