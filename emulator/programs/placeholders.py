"""`{rank}` and its like in the words of a program: which there are, and how they are filled in. Pure.

One name of small letters in braces, `{rank}`, is a placeholder and must be one of NAMES; `{{print}}` is the
program's own `{print}`. All other braces are the program's and stay as they are: `{print $1}`, `{"a": 1}`,
and after a dollar, `${rank}`, a shell's.
"""
from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from emulator.errors import BadInput, nearest

NAMES = ("rank", "world", "host", "address", "peer", "master", "port", "hosts", "interface")
_BRACES = re.compile(r"\{\{(?P<own>[a-z_]+)\}\}|(?<![$])\{(?P<name>[a-z_]+)\}")


def check_placeholders(kind: str, command: Sequence[str], filled: bool) -> None:
    """BadInput for a name that nobody fills in. `filled`: does this kind of program fill in any?"""
    for match in (match for word in command for match in _BRACES.finditer(word)):
        name = match["name"]
        if name is None:
            continue
        own = f"for braces of the program's own write {{{{{name}}}}}"
        if name not in NAMES:
            raise BadInput(f"--run {kind}: {match[0]} is no placeholder{nearest(name, NAMES)}; {own}.")
        if not filled:
            raise BadInput(f"--run {kind} starts one command for all ranks, fills in no {match[0]}; {own}.")


def fill(word: str, values: Mapping[str, str]) -> str:
    """The word with its placeholders as `values` has them, and `{{print}}` as `{print}`."""

    def of(match: re.Match[str]) -> str:
        return f"{{{match['own']}}}" if match["own"] else values.get(match["name"], match[0])

    return _BRACES.sub(of, word)
