"""The drained links on disk: a controller that was killed goes on leaving them out when it returns."""
from __future__ import annotations

import json
import os
from collections.abc import Collection
from pathlib import Path


def drains_file(config: Path) -> Path:
    """Where the controller with this configuration keeps its drained links."""
    return config.with_suffix(".drained")


def keep(path: Path, links: Collection[int]) -> None:
    """Write the numbers of all drained links, whole or not at all: a kill may come at any moment. OSError."""
    fresh = path.with_name(f"{path.name}~")
    fresh.write_text(json.dumps(sorted(links)))
    os.replace(fresh, path)


def kept(path: Path) -> frozenset[int]:
    """What `keep` wrote last; none where it never did."""
    try:
        return frozenset(json.loads(path.read_text()))
    except FileNotFoundError:
        return frozenset()
