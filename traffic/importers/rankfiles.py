"""What traces of several files share: raw bytes, JSON with a place for each slip, groups of ranks."""
from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from emulator.errors import BadInput
from traffic.importers.text import LARGEST_BYTES, read_lines, shown


def read_raw(path: str, what: str) -> bytes:
    """The bytes of a regular file that is neither empty nor too large."""
    file = Path(path)
    try:
        if not file.is_file():
            raise BadInput(f"{path} is not a regular file; {what} was expected there.")
        size_bytes = file.stat().st_size
        if not 0 < size_bytes <= LARGEST_BYTES:
            raise BadInput(f"{path} has {size_bytes} bytes; {what} has 1 to {LARGEST_BYTES}.")
        return file.read_bytes()
    except OSError as error:
        raise BadInput(f"{path} cannot be read ({error.strerror or error}); {what} was expected "
                       "there.") from None
    except ValueError:  # a zero byte in the path
        raise BadInput(f"{path!r} is not a file name; {what} was expected there.") from None


def read_json(path: str, what: str) -> Any:
    """The value of a JSON file; nan and infinity, which are no JSON, are refused."""
    text = "\n".join(read_lines(path, what))
    try:
        return json.loads(text, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        raise BadInput(f"{path}:{error.lineno}:{error.colno}: not JSON: {error.msg}; {what} was "
                       "expected.") from None
    except (RecursionError, ValueError) as error:  # ValueError: a whole number of thousands of digits
        raise BadInput(f"{path}: not JSON that can be read ({shown(str(error), 80)}); {what} was "
                       "expected.") from None


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def read_groups(path: str, ranks: int) -> Mapping[str, tuple[int, ...]]:
    """name -> ranks of each group, from {"0": [0, 1], "1": [2, 3]}."""
    value = read_json(path, "a JSON object of groups")
    if not isinstance(value, dict):
        raise BadInput(f'{path}: the groups are a JSON object such as {{"0": [0, 1]}}.')
    return {name: check_group(path, name, members, ranks) for name, members in value.items()}


def check_group(path: str, name: str, members: Any, ranks: int) -> tuple[int, ...]:
    """The ranks of a group: at least one, none twice, all there."""
    if not isinstance(members, list) or not members:
        raise BadInput(f'{path}: the group "{shown(name)}" is not a list of ranks.')
    for member in members:
        if type(member) is not int or not 0 <= member < ranks:
            raise BadInput(f'{path}: the group "{shown(name)}" names {shown(repr(member))}, which is none of '
                           'the '
                           f"{ranks} ranks.")
    if len(set(members)) < len(members):
        raise BadInput(f'{path}: the group "{shown(name)}" names a rank twice.')
    return tuple(members)
