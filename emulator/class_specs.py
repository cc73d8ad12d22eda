"""The option `classes`: from what a user wrote (off, default, a mapping, a file, a SPEC) to a table.

    off | default | FILE.yaml | gradients=weight:8,tensor=strict+dscp:46,storage=weight:1+buffer:0.1

A file, like the key `classes` of an experiment file, is a mapping of names to
{dscp, weight or strict, buffer, ecn, lossless}.
"""
from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from emulator.classes import DEFAULT_TABLE, ClassTable, ServiceClass, checked
from emulator.errors import BadInput, nearest
from emulator.units import parse_size
from traffic.importers.strict_yaml import read_yaml, written

OFF, DEFAULT = "off", "default"
KEYS = ("dscp", "weight", "strict", "buffer", "ecn", "lossless")
_NAME = re.compile(r"[a-z][a-z0-9-]*")
_SELECTORS = tuple(range(8, 64, 8))  # CS1 to CS7 (RFC 2474), for names that have no customary DSCP


def parse_classes(value: str | Mapping[str, Any]) -> ClassTable | None:
    """The table that `value` names, None for 'off'; every slip is a BadInput of one sentence."""
    if isinstance(value, Mapping):
        return _table(value)
    text = value.strip()
    if text == OFF:
        return None
    if text == DEFAULT:
        return DEFAULT_TABLE
    if text.endswith((".yaml", ".yml")):
        return _table(_read(text))
    if "=" not in text:
        raise BadInput(f'--classes "{text}" is none of off, default, FILE.yaml and '
                       "NAME=weight:N,NAME=strict,….")
    return _table(_rows(text))


def _read(path: str) -> Mapping[str, Any]:
    found = read_yaml(path, "a table of classes")
    if isinstance(found, Mapping) and set(found) == {"classes"}:
        found = found["classes"]
    if not isinstance(found, Mapping):
        raise BadInput(f"{path}: a table of classes is a mapping such as 'gradients: {{weight: 4}}'.")
    return found


def _rows(text: str) -> dict[str, dict[str, Any]]:
    """The SPEC as a mapping: classes part by ',', the keys of one by '+'."""
    rows: dict[str, dict[str, Any]] = {}
    for item in text.split(","):
        name, _, rest = (part.strip() for part in item.partition("="))
        if not name or not rest:
            raise BadInput(f'--classes "{text}": "{item}" is not of the form NAME=weight:N or NAME=strict.')
        if name in rows:
            raise BadInput(f'--classes "{text}" names {name} twice.')
        row: dict[str, Any] = {}
        for part in rest.split("+"):
            key, colon, value = (word.strip() for word in part.partition(":"))
            if key in row:
                raise BadInput(f'--classes "{text}" gives {key} of {name} twice.')
            row[key] = value if colon else True
        rows[name] = row
    return rows


def _table(rows: Mapping[str, Any]) -> ClassTable:
    if not rows:
        raise BadInput("classes: the table is empty; write classes: off for a single queue.")
    for name, row in rows.items():
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise BadInput(f'classes: "{written(name)}" is no name of a class; use small letters, digits and '
                           "hyphens.")
        if not isinstance(row, Mapping):
            raise BadInput(f'class "{name}": {written(row)} is not a mapping such as {{weight: 4}}.')
        for key in row:
            if key not in KEYS:
                raise BadInput(f'class "{name}": unknown key "{key}"{nearest(str(key), KEYS)}.')
            if row[key] is None or isinstance(row[key], (list, dict)):
                raise BadInput(f'class "{name}": {key}: {written(row[key])} is not a single value.')
    free = _free_dscps(rows)
    return checked(tuple(_class(name, row, free[name]) for name, row in rows.items()))


def _free_dscps(rows: Mapping[str, Mapping[str, Any]]) -> dict[str, int]:
    """The DSCP of each class that gives none: its customary one, else the lowest free class selector."""
    customary = {each.name: each.dscp for each in DEFAULT_TABLE.classes}
    silent = [name for name, row in rows.items() if "dscp" not in row]
    found = {name: customary[name] for name in silent if name in customary}
    taken = {*found.values(), *(_dscp(name, row["dscp"]) for name, row in rows.items() if "dscp" in row)}
    selectors = iter([dscp for dscp in _SELECTORS if dscp not in taken])
    for name in silent:
        if name not in found:
            # nine classes are refused by their number, with a sentence of its own
            found[name] = next(selectors, -1)
    return {name: found.get(name, -1) for name in rows}


def _class(name: str, row: Mapping[str, Any], dscp: int) -> ServiceClass:
    strict = _flag(name, "strict", row.get("strict", False))
    if strict and "weight" in row:
        raise BadInput(f'class "{name}" is both strict and of weight {written(row["weight"])}; a strict '
                       "class is served before all weights, so give one of the two.")
    weight = None if strict else _whole(name, "weight", row.get("weight", 1))
    ecn = row.get("ecn")
    return ServiceClass(
        name, _dscp(name, row["dscp"]) if "dscp" in row else dscp, weight, _share(name, row.get("buffer")),
        None if ecn is None else parse_size(written(ecn), f'class "{name}": ecn'),
        _flag(name, "lossless", row.get("lossless", False)))


def _dscp(name: str, value: Any) -> int:
    dscp = _whole(name, "dscp", value)
    if not 0 <= dscp <= 63:
        raise BadInput(f'class "{name}": dscp={dscp} is outside 0 to 63.')
    return dscp


def _whole(name: str, key: str, value: Any) -> int:
    try:
        if isinstance(value, bool) or not re.fullmatch(r"[-+]?[0-9]{1,9}", str(value).strip()):
            raise ValueError
        return int(value)
    except ValueError:
        raise BadInput(f'class "{name}": {key}={written(value)} is not a whole number.') from None


def _flag(name: str, key: str, value: Any) -> bool:
    known = {"true": True, "yes": True, "false": False, "no": False}
    flag = known.get(str(value).lower())
    if flag is None:
        raise BadInput(f'class "{name}": {key}={written(value)} is neither true nor false.')
    return flag


def _share(name: str, value: Any) -> float | None:
    """A part of the buffer: 0.25 or '25%'."""
    if value is None:
        return None
    text = str(value).strip()
    try:
        share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        share = -1.0
    if isinstance(value, bool) or not 0 < share <= 1:
        raise BadInput(f'class "{name}": buffer={written(value)} is not a part of the port\'s buffer, such '
                       "as 0.25 or 25%.")
    return share


