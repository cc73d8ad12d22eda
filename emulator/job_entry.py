"""One of several jobs, as a user writes it: a mapping under `jobs:`, or the text of --job.

The text is a workload's SPEC, then what else there is to say, after semicolons:
'allreduce:bytes=1MB,ranks=4; name=a; start=2s; hosts=h1-h4'.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import pydantic

KEYS = ("name", "start", "after", "hosts", "share", "class")


def _names(value: Any) -> Any:
    """'h1-h4,h9' as a list would be written."""
    return tuple(part.strip() for part in value.split(",")) if isinstance(value, str) else value


class JobEntry(pydantic.BaseModel):
    """A job. Values keep their units as text; `traffic.jobs.resolve_jobs` gives them meaning."""

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    workload: str = pydantic.Field(description="SPEC, or a file")
    name: str = pydantic.Field("", pattern=r"^[A-Za-z0-9_.-]*$",
                               description="what reports call it (default: jobN)")
    start: str = pydantic.Field("0s", description="time from the beginning, or from the end of the job in "
                                                  "`after`")
    after: str = pydantic.Field("", description="name of a job before it whose end it waits for, or previous")
    hosts: Annotated[tuple[str, ...], pydantic.BeforeValidator(_names)] = pydantic.Field(
        (), description="hosts that are its own, such as h1-h4; default: those that are left")
    share: bool = pydantic.Field(False, description="its hosts may carry other jobs too")
    traffic_class: str = pydantic.Field("", alias="class", description="class of all its traffic")

    @pydantic.model_validator(mode="before")
    @classmethod
    def _from_text(cls, value: Any) -> Any:
        return parse_job(value) if isinstance(value, str) else value


def with_workload_files(entries: Any, place: Callable[[str], str]) -> Any:
    """Entries, read or as YAML gives them, with place(workload) for each workload; the rest as it is."""
    if not isinstance(entries, (list, tuple)):
        return entries
    placed: list[Any] = []
    for entry in entries:
        if isinstance(entry, str):
            spec, semicolon, rest = entry.partition(";")
            entry = place(spec.strip()) + semicolon + rest
        elif isinstance(entry, dict) and isinstance(entry.get("workload"), str):
            entry = {**entry, "workload": place(entry["workload"])}
        elif isinstance(entry, JobEntry):
            entry = entry.model_copy(update={"workload": place(entry.workload)})
        placed.append(entry)
    return tuple(placed)


def parse_job(text: str) -> dict[str, str]:
    """'SPEC; key=value; …' as a mapping; ValueError with the end of a sentence for each slip."""
    workload, *rest = (part.strip() for part in text.split(";"))
    values = {"workload": workload}
    if not workload:
        raise ValueError("begins with no workload")
    for item in rest:
        key, equals, value = (part.strip() for part in item.partition("="))
        if not equals or not value or key not in KEYS:
            raise ValueError(f'has "{item}", which is not key=value with one of {", ".join(KEYS)}')
        if key in values:
            raise ValueError(f"gives {key} twice")
        values[key] = value
    return values
