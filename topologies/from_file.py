"""A Topo class in a user's own file, as `mn --custom` would take it."""
from __future__ import annotations

import inspect
import re
import sys
import traceback
import types
from pathlib import Path

from mininet.topo import Topo

from emulator.errors import BadInput, nearest
from emulator.specs import parse_spec
from topologies.from_mininet import graph_from_topo
from topologies.graph import Graph

_SPEC = re.compile(r"(?P<file>.+\.py)(?::(?P<name>[^:=]*)(?::(?P<params>.*))?)?")


def is_file_spec(text: str) -> bool:
    """Does this SPEC name a Python file?"""
    return _SPEC.fullmatch(text) is not None


def graph_from_file(text: str) -> Graph:
    """The Graph of 'FILE.py:Class' or 'FILE.py:Class:key=value,…'; Class may also be a name in `topos`.

    The file's code is run, as `mn --custom` runs it, but by its path and without leaving bytecode.
    Raises BadInput for a missing file, a missing class, one that is no Topo, and for whatever its
    code raises (with file and line).
    """
    match = _SPEC.fullmatch(text)
    path, name = Path(match["file"]), match["name"]
    given = parse_spec(f"{name}:{match['params']}", "the topology").params if match["params"] else {}
    namespace = _run(path)
    classes = {key: value for key, value in namespace.items()
               if inspect.isclass(value) and issubclass(value, Topo) and value is not Topo}
    makers = classes | _topos(namespace, path)
    if not name:
        raise BadInput(f"{path} needs the name of a Topo class, {path}:Class{_known(makers)}.")
    if name not in makers:
        if name in namespace:
            raise BadInput(f"{name} in {path} is not a Mininet Topo class{_known(makers)}.")
        raise BadInput(f'{path} has no Topo class "{name}"{nearest(name, makers) if makers else ""}.')
    params = {key: _number(value) for key, value in given.items()}
    topo = _guarded(path, f"making {name}", lambda: makers[name](**params))
    if not isinstance(topo, Topo):
        raise BadInput(f"{name} in {path} makes a {type(topo).__name__}, not a Mininet Topo.")
    return graph_from_topo(topo, text)


def _known(makers: dict) -> str:
    return f" (it has: {', '.join(sorted(makers))})" if makers else " (it has none)"


def _number(text: str) -> object:
    """As mn reads parameters: a whole number, else a number, else text."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _topos(namespace: dict, path: Path) -> dict:
    topos = namespace.get("topos", {})
    if not isinstance(topos, dict):
        raise BadInput(f"`topos` in {path} is a {type(topos).__name__}, not a dictionary of Topo classes.")
    return {str(key): value for key, value in topos.items() if callable(value)}


def _run(path: Path) -> dict:
    if not path.exists():
        raise BadInput(f"the topology file {path} does not exist.")
    try:
        source = path.read_bytes()
    except OSError as error:
        raise BadInput(f"the topology file {path} cannot be read: {error.strerror}.") from None
    module = types.ModuleType(f"topology_{path.stem}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module  # dataclasses and pickles look their module up
    _guarded(path, "running it", lambda: exec(compile(source, str(path), "exec"), module.__dict__))
    return module.__dict__


def _guarded(path: Path, doing: str, call):
    """call(), with whatever a user's code raises turned into a sentence that names the line."""
    try:
        return call()
    except (Exception, SystemExit) as error:
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__)
                 if frame.filename == str(path)]
        line = error.lineno if isinstance(error, SyntaxError) else lines[-1] if lines else None
        where = f"{path}:{line}" if line else str(path)
        what = error.msg if isinstance(error, SyntaxError) else error
        raise BadInput(f"{where}: {doing} failed: {type(error).__name__}: {what}") from error
