"""A job as a YAML file: `workload:` names its kind, the other keys are that workload's parameters."""
from __future__ import annotations

import yaml

from emulator.errors import BadInput
from emulator.specs import Spec
from traffic.importers.strict_yaml import Loader
from traffic.importers.text import read_lines


def read_job(path: str) -> Spec:
    """The spec in a file such as 'workload: llm', 'params: 70e9', … (workload: llm where it is left out).

    BadInput for a file that cannot be read, is no mapping, or holds anything but single values.
    """
    if not path:
        raise BadInput("workload job needs a file: job:FILE.yaml.")
    try:
        read = yaml.load("\n".join(read_lines(path, "a job file")), Loader)
    except (yaml.YAMLError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        place = f":{mark.line + 1}" if mark else ""
        raise BadInput(f"{path}{place}: not valid YAML: {getattr(error, 'problem', error)}.") from None
    if not isinstance(read, dict):
        raise BadInput(f"{path}: a job file is a mapping such as 'params: 70e9'.")
    params = {}
    for key, value in read.items():
        if isinstance(value, (dict, list)) or value is None:
            raise BadInput(f"{path}: {key} is not a single value.")
        params[str(key)] = {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)
    return Spec(params.pop("workload", "llm"), params)
