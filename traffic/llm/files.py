"""A job as a YAML file: `workload:` names its kind, the other keys are that workload's parameters."""
from __future__ import annotations

from emulator.errors import BadInput
from emulator.specs import Spec
from traffic.importers.strict_yaml import read_yaml, written


def read_job(path: str) -> Spec:
    """The spec in a file such as 'workload: llm', 'params: 70e9', … (workload: llm where it is left out).

    BadInput for a file that cannot be read, is no mapping, or holds anything but single values.
    """
    if not path:
        raise BadInput("workload job needs a file: job:FILE.yaml.")
    read = read_yaml(path, "a job file")
    if not isinstance(read, dict):
        raise BadInput(f"{path}: a job file is a mapping such as 'params: 70e9'.")
    params = {}
    for key, value in read.items():
        if isinstance(value, (dict, list)) or value is None:
            raise BadInput(f"{path}: {key}: {written(value)} is not a single value.")
        params[str(key)] = {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)
    return Spec(params.pop("workload", "llm"), params)
