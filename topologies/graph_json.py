"""A Graph as JSON and back, for processes that are told the fabric through a file."""
from __future__ import annotations

import dataclasses
import json

from topologies.graph import Graph, Host, Link, Switch


def graph_to_json(graph: Graph) -> str:
    """The whole graph as one JSON object with the field names of `topologies.graph`."""
    return json.dumps(dataclasses.asdict(graph))


def graph_from_json(text: str) -> Graph:
    """The Graph that `graph_to_json` wrote; raises ValueError, KeyError or TypeError for anything else."""
    value = json.loads(text)
    return Graph(value["name"], tuple(Host(**host) for host in value["hosts"]),
                 tuple(Switch(**switch) for switch in value["switches"]),
                 tuple(Link(**link) for link in value["links"]))
