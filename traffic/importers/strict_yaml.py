"""YAML as `safe_load` reads it, but a key that is given twice is refused instead of dropped."""
from __future__ import annotations

from typing import Any

import yaml


class Loader(yaml.SafeLoader):
    """For yaml.load; raises a ConstructorError that names the key."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
            if key.value in seen:
                raise yaml.constructor.ConstructorError(
                    problem=f'"{key.value}" is given twice', problem_mark=key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)
