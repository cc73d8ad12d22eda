"""From `--topology SPEC` to a Graph: the shipped topologies by name, and any Topo class in a file."""
from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from emulator.errors import BadInput, MachineLacks, nearest
from emulator.specs import Spec, parse_spec, take, whole
from topologies.graph import Graph

Parser = Callable[[str], object]


@dataclass(frozen=True)
class Topology:
    """One entry of the catalogue: how it is written (with its defaults), what it is, what makes it.

    `module` and `topo_class` name the class, which is imported on use: Mininet may be missing.
    """

    spec: str
    about: str
    module: str
    topo_class: str
    params: Mapping[str, Parser]


def _positive(text: str) -> float:
    value = float(text)
    if not 0.01 <= value <= 100:
        raise BadInput(f"{text} is outside 0.01 to 100.")
    return value


TOPOLOGIES: Mapping[str, Topology] = {
    "fat-tree": Topology(
        "fat-tree:k=4", "k-ary fat-tree (SIGCOMM'08), k even from 2 to 16: k^3/4 hosts, 5k^2/4 switches",
        "topologies.fat_tree", "FatTree", {"k": whole(2, 16)}),
    "leaf-spine": Topology(
        "leaf-spine:leaves=4,spines=4,hosts=4,oversubscription=1,slow=0,slow_factor=0.25",
        "two tiers, hosts on each leaf; uplink rate = hosts * rate / (spines * oversubscription); "
        "leaf 1's first `slow` uplinks at slow_factor of that",
        "topologies.leaf_spine", "LeafSpine",
        {"leaves": whole(2, 255), "spines": whole(1, 128), "hosts": whole(1, 250),
         "oversubscription": _positive, "slow": whole(0, 128), "slow_factor": _positive}),
    "star": Topology("star:hosts=16", "hosts on one switch, 2 to 1000",
                     "topologies.star", "Star", {"hosts": whole(2, 1000)}),
    "clos3": Topology(
        "clos3:pods=2,leaves=2,spines=2,cores=2,hosts=2,oversubscription=1,spine_oversubscription=1",
        "pods of leaves and spines, a plane of cores for each spine position; "
        "leaves and spines count in a pod, cores in a plane, hosts on a leaf",
        "topologies.clos3", "Clos3",
        {"pods": whole(2, 250), "leaves": whole(1, 250), "spines": whole(1, 128), "cores": whole(1, 128),
         "hosts": whole(1, 250), "oversubscription": _positive, "spine_oversubscription": _positive}),
    "dragonfly": Topology(
        "dragonfly:p=2,a=2,h=1,g=3",
        "dragonfly (ISCA'08): g groups of a routers with p hosts and h global links each, minimal paths",
        "topologies.dragonfly", "Dragonfly",
        {"p": whole(1, 250), "a": whole(1, 64), "h": whole(1, 64), "g": whole(2, 250)}),
    "random-regular": Topology(
        "random-regular:switches=8,degree=3,hosts=2,seed=1",
        "switches wired at random, each to `degree` others (Jellyfish, NSDI'12); hosts on each; connected",
        "topologies.random_regular", "RandomRegular",
        {"switches": whole(3, 250), "degree": whole(2, 64), "hosts": whole(1, 250), "seed": whole(0, 2**31)}),
}
FILE_SPEC = "FILE.py:Class"
FILE_ABOUT = "a Mininet Topo class of your own; FILE.py:Class:key=value,… passes parameters to its build()"
TOPO_SPEC = "FILE.topo"
TOPO_ABOUT = "a topology file of htsim: wiring and ratios of speeds; its latencies are named, not applied"
HPCC_SPEC = "hpcc:FILE"
HPCC_ABOUT = "a topology file of HPCC's ns-3: wiring and ratios of speeds; delays and errors are not applied"


def resolve_topology(text: str) -> Graph:
    """The Graph that a SPEC names ('fat-tree:k=4', 'my.py:MyTopo', 'my.topo'); checked, needs no root.

    Raises BadInput with one sentence for whatever is wrong with it, MachineLacks without Mininet.
    """
    _need_mininet()
    from topologies.from_file import graph_from_file, is_file_spec
    from topologies.from_mininet import graph_from_topo
    from topologies.hpcc_topo import read_hpcc_topo
    from topologies.htsim_topo import read_topo
    if is_file_spec(text):
        return graph_from_file(text)
    if text.startswith("hpcc:"):
        if text == "hpcc:":
            raise BadInput(f"the topology hpcc needs a file: {HPCC_SPEC}.")
        return read_hpcc_topo(text.removeprefix("hpcc:")).graph
    if text.endswith(".topo"):
        return read_topo(Path(text)).graph
    spec = parse_spec(text, "the topology")
    if spec.name not in TOPOLOGIES:
        known = [*TOPOLOGIES, FILE_SPEC, TOPO_SPEC, HPCC_SPEC]
        raise BadInput(f'there is no topology "{spec.name}"{nearest(spec.name, known)}.')
    entry = TOPOLOGIES[spec.name]
    spec = Spec(spec.name, {**parse_spec(entry.spec, "the topology").params, **spec.params})
    params = take(spec, "the topology", entry.params)
    topo_class = getattr(importlib.import_module(entry.module), entry.topo_class)
    try:
        topo = topo_class(**params)
    except ValueError as error:  # the sentences of the Topo classes, which know no error family
        raise BadInput(f"the topology {text}: {error}.") from None
    return graph_from_topo(topo, str(spec))


def _need_mininet() -> None:
    try:
        import mininet.topo  # noqa: F401
    except ImportError as error:
        raise MachineLacks(f"Python cannot import Mininet ({error}); "
                           f"install it with: sudo apt-get install mininet") from None
