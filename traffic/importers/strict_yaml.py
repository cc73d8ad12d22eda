"""YAML as `safe_load` reads it, but a key that is given twice is refused instead of dropped."""
from __future__ import annotations

from typing import Any

import yaml

from emulator.errors import BadInput
from traffic.importers.text import read_lines

MOST_SHOWN = 60


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


def read_yaml(path: str, what: str) -> Any:
    """What the file holds; BadInput with one sentence where it cannot be read. `what` says what it should
    hold, as in 'an experiment file'.
    """
    text = "\n".join(read_lines(path, what))
    try:
        return yaml.load(text, Loader)
    except RecursionError:
        raise BadInput(f"{path}: not valid YAML for {what}: its lists are too deep.") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f":{mark.line + 1}:{mark.column + 1}" if mark else ""
        raise BadInput(f"{path}{place}: not valid YAML: {getattr(error, 'problem', error)}.") from None
    except ValueError as error:  # a date of month 13, a number that is none
        raise BadInput(f"{path}: not valid YAML for {what}: {error}.") from None


def written(value: Any) -> str:
    """A value as a file has it, on one line: 'null', 'true', '[1, 2]', '{a: 1}', not as Python says it."""
    text = str(value)
    if value is None or isinstance(value, (bool, dict, list, tuple)):
        try:
            text = yaml.safe_dump(value, default_flow_style=True, allow_unicode=True, width=10**6)
        except yaml.YAMLError:  # of an object that is none of YAML's
            pass
    line = " ".join(text.removesuffix("...\n").split())
    return line if len(line) <= MOST_SHOWN else f"{line[:MOST_SHOWN - 1]}…"
