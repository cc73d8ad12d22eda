"""An experiment: what a user asks for, from options or a YAML file, still in the user's own words.

The names in the file are those of the command line. `matrix:` lists values to compare (`matrix.py`).
Nothing is computed here (see `resolve.py`).
"""
from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import pydantic
import yaml

from emulator.beside import Place, in_folder, placed
from emulator.errors import BadInput, nearest
from emulator.job_entry import JobEntry
from emulator.programs.spec import words as program_words
from traffic.importers.strict_yaml import read_yaml, written

MAX_RUNS = 1000
JOBS, PROGRAM = "jobs", "program"
"""The workload of an experiment that lists several jobs, or runs a real program."""


def _text(value: Any) -> str:
    """YAML turns `9000` or `1e6` into numbers; the parsers want the words."""
    if isinstance(value, bool) or value is None or isinstance(value, (list, dict)):
        raise ValueError("is not a single value")
    return str(value)


def _number(value: Any) -> Any:
    """YAML's `yes` would pass for 1."""
    if isinstance(value, bool):
        raise ValueError("is not a number")
    return value


def _table(value: Any) -> Any:
    """A mapping, or the words; YAML reads a bare `off` as False."""
    return "off" if value is False else value if isinstance(value, dict) else _text(value)


Text = Annotated[str, pydantic.BeforeValidator(_text)]
Whole = Annotated[int, pydantic.BeforeValidator(_number)]
Number = Annotated[float, pydantic.BeforeValidator(_number)]
Scaling = Annotated[float, pydantic.BeforeValidator(_number), pydantic.Field(ge=1, le=1e9)]
Auto = Annotated[Scaling | Literal["auto"], pydantic.Field(union_mode="left_to_right")]
Table = Annotated[str | dict[str, Any], pydantic.BeforeValidator(_table)]

Words = Annotated[tuple[str, ...], pydantic.BeforeValidator(program_words), pydantic.WithJsonSchema(
    {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]})]


class Experiment(pydantic.BaseModel):
    """One run. Values keep their units as text ('10mbit'); `plan.resolve` gives them meaning."""

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    topology: Text = pydantic.Field("fat-tree:k=4", description="SPEC of the fabric, or FILE.py:Class")
    switch: Text = pydantic.Field("auto", description="auto, ovs or bpf")
    routing: Text = pydantic.Field("ecmp", description="how switches choose among paths, see below")
    workload: Text = pydantic.Field("training", description="SPEC, or a file")
    run: Words = pydantic.Field(
        (), description="KIND COMMAND…: a real program on every host instead of a workload, see below")
    rate: Text = pydantic.Field("auto", description="emulated wire of a host link, such as 10mbit, or auto")
    mtu: Whole = pydantic.Field(1500, ge=576, le=9000, description="IP packet size in bytes")
    buffer: Text = pydantic.Field("auto", description="queue limit of each port, a size or a time at the "
                                                      "rate of a host link; auto is 100 frames")
    ecn: Text = pydantic.Field("off", description="mark packets that find more than SIZE in the queue (bpf "
                               "switch)")
    delay: Text = pydantic.Field("0s", description="one-way propagation delay of each link, in emulated time")
    loss: Text = pydantic.Field("0", description="bit error rate of each link: 1e-7 loses 0.12 % of full "
                                                 "frames of 1514 bytes (bpf switch)")
    classes: Table = pydantic.Field("off", description="classes of service (bpf switch): off, default, "
                                    "FILE.yaml, or NAME=weight:N,NAME=strict,…; in a file also a mapping, "
                                    "see docs/classes.md")
    cc: Text = pydantic.Field("cubic", description="TCP congestion control of every socket")
    seed: Whole = pydantic.Field(1, ge=0, lt=2**32, description="of hashes, ports and random choices")
    repeat: Whole = pydantic.Field(1, ge=1, le=MAX_RUNS, description="runs with seeds seed, seed+1, …")
    events: tuple[Text, ...] = pydantic.Field((), description="what fails and heals meanwhile, each "
                                              "AT KIND TARGET …, see docs/failures.md")
    deadline: Text = pydantic.Field("auto", description="time after which a replay is given up")
    dilation: Auto = pydantic.Field("auto", description="K: the target is K times faster; times in the "
                                    "workload are multiplied by K; auto: target-rate / rate where one is "
                                    "given or the workload is an llm job, else 1")
    byte_scale: Auto = pydantic.Field("auto", alias="byte-scale",
                                      description="S: message sizes are divided by S (and an llm job's "
                                      "times); auto: an iteration of an llm job takes about 12 s; 1 for all "
                                      "else")
    target_rate: Text = pydantic.Field("auto", alias="target-rate",
                                       description="rate of a network card of the real cluster, such as "
                                       "400gbit")
    verify: bool = pydantic.Field(False, description="real sums and checksums on the payload")
    jobs: tuple[JobEntry, ...] = pydantic.Field((), description="several jobs instead of one workload")
    only: Text = pydantic.Field("all", description="of several jobs the one that runs, "
                                "alone on the fabric of all; or all")
    background: Text = pydantic.Field("off", description="Poisson flows beside the jobs, SPEC "
                                      "cdf:NAME,load=…,hosts=…,class=…, or off")
    pcap: tuple[Text, ...] = pydantic.Field((), description="ports to capture, such as e0_0-eth1")

    @pydantic.model_validator(mode="before")
    @classmethod
    def _one_of_three(cls, values: Any) -> Any:
        """With jobs or a program there is no workload besides; it reads JOBS or PROGRAM where written."""
        if not isinstance(values, dict):
            return values
        given = [(key, word) for key, word in (("jobs", JOBS), ("run", PROGRAM)) if values.get(key)]
        if len(given) > 1:
            raise ValueError("jobs and run are both given; leave one of them out")
        for key, word in given:
            if values.get("workload", word) != word:
                raise ValueError(f"workload and {key} are both given; leave one of them out")
        return {**values, "workload": given[0][1]} if given else values


_NO_JOB = "is neither a line such as 'allreduce; name=a' nor a mapping with a workload"
PLAINLY = {"bool_type": "is neither yes nor no", "bool_parsing": "is neither yes nor no",
           "missing": "is missing", "string_type": "is not text",
           "string_pattern_mismatch": "may have letters, digits, and _ . - only",
           "tuple_type": "is not a list", "list_type": "is not a list",
           "dict_type": "is not a mapping of names to values",
           "model_type": _NO_JOB, "model_attributes_type": _NO_JOB}
"""What the checks of pydantic mean, by their names."""


class ExperimentFile(Experiment):
    """An experiment file: one experiment, or with `matrix` all combinations of the listed values."""

    matrix: dict[str, list[Any]] = pydantic.Field(default_factory=dict,
                                              description="option: values to compare")
    reference: dict[str, Any] = pydantic.Field(default_factory=dict, description="options of the run that "
                                               "each row of the table is measured against")
    table: dict[str, Any] = pydantic.Field(default_factory=dict, description="rows, columns, figure, "
                                           "published: one table out of all runs")


def _range(field: pydantic.fields.FieldInfo | None) -> str:
    """'a whole number from 1 to 1000' for a field with bounds; empty for one without."""
    if field is None:
        return ""
    # a number or 'auto' has its bounds with the number
    parts = [part for one in get_args(field.annotation) for part in get_args(one)[1:]]
    parts = [inner for part in parts for inner in getattr(part, "metadata", ())]
    bounds = {type(each).__name__: each for each in (*field.metadata, *parts)}
    if "Ge" not in bounds:
        return ""
    kind = "a whole number" if field.annotation is int else "a number"
    most = bounds["Lt"].lt - 1 if "Lt" in bounds else bounds["Le"].le
    return f"{kind} from {bounds['Ge'].ge:.0f} to {most:.0f}{', or auto' if parts else ''}"


def _sentence(error: pydantic.ValidationError, where: str) -> str:
    """The first complaint of pydantic, as a sentence."""
    first = error.errors()[0]
    # of a value that may be of two kinds, pydantic names the kind as well
    named = [str(part) for part in first["loc"] if not str(part).startswith(("function-", "[key]"))]
    name = ".".join(named) or "the experiment"
    if not first["loc"] and "both given" in first["msg"]:
        return f"{where}: {first['msg'].removeprefix('Value error, ')}."
    if first["type"] == "extra_forbidden" and first["loc"][0] == "jobs":
        known = [field.alias or key for key, field in JobEntry.model_fields.items()]
        return f'{where}: a job has no key "{first["loc"][-1]}"{nearest(str(first["loc"][-1]), known)}.'
    if first["type"] == "extra_forbidden":
        known = [field.alias or key for key, field in ExperimentFile.model_fields.items()]
        return f'{where}: unknown key "{name}"{nearest(name, known)}.'
    span = _range(ExperimentFile.model_fields.get(name.replace("-", "_")))
    if span and first["type"] != "value_error":
        return f"{where}: {name}={written(first['input'])} is not {span}."
    message = PLAINLY.get(first["type"]) or first["msg"].removeprefix("Value error, ")
    if first["type"] == "missing":
        return f"{where}: {name} {message}."
    colon = ":" if message is first["msg"] else ""  # pydantic's own words are a sentence
    given = f' "{first["input"]}"' if isinstance(first["input"], str) else f"={written(first['input'])}"
    return f'{where}: {name}{given}{colon} {message[0].lower()}{message[1:]}.'


def make(values: dict[str, Any], where: str = "the options") -> Experiment:
    """An Experiment from plain values; BadInput with one sentence where they do not fit."""
    try:
        return Experiment(**values)
    except pydantic.ValidationError as error:
        raise BadInput(_sentence(error, where)) from None


def read_file(path: str) -> dict[str, Any]:
    """The mapping in a YAML experiment file, unknown keys refused; BadInput for anything unreadable.

    Files that it names lie relative to it, as an include would.
    """
    values = read_yaml(path, "an experiment file")
    if not isinstance(values, dict):
        raise BadInput(f"{path}: an experiment file is a mapping such as 'topology: fat-tree:k=4'.")
    named = [option_name(str(key)) for key in values]
    if twice := next((name for name in named if named.count(name) > 1), ""):
        raise BadInput(f'{path}: "{twice}" is given twice.')  # byte-scale and byte_scale are one
    values = dict(zip(named, values.values()))
    try:
        ExperimentFile(**values)
    except pydantic.ValidationError as error:
        raise BadInput(_sentence(error, path)) from None
    matrix = {option_name(str(key)): listed for key, listed in values.pop("matrix", {}).items()}
    here = in_folder(Path(path).parent)
    values = {key: _placed(path, key, value, here) for key, value in values.items()}
    matrix = {key: [_placed(path, key, value, here) for value in listed] for key, listed in matrix.items()}
    return {**values, "matrix": matrix} if matrix else values


def _placed(path: str, key: str, value: Any, here: Place) -> Any:
    try:
        return placed(key, value, here)
    except ValueError as error:
        raise BadInput(f"{path}: {key}={written(value)} {error}.") from None


def option_names() -> list[str]:
    """The names of all options."""
    return [field.alias or key for key, field in Experiment.model_fields.items()]


def option_name(key: str) -> str:
    """The name of an option as it is written in a file and on the command line."""
    field = Experiment.model_fields.get(key)
    return field.alias if field is not None and field.alias else key


def schema() -> dict[str, Any]:
    """The JSON schema of an experiment file (JSON Schema 2020-12)."""
    made = ExperimentFile.model_json_schema(by_alias=True)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **made}


def dump(experiment: Experiment) -> str:
    """The experiment as YAML that runs again as it stands."""
    values = experiment.model_dump(by_alias=True, mode="json")
    return yaml.safe_dump(values, sort_keys=False, allow_unicode=True)
