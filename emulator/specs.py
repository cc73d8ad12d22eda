"""The text form `name:key=value,key=value` that topologies, workloads and routings share."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from emulator.errors import BadInput, nearest


@dataclass(frozen=True)
class Spec:
    """A parsed SPEC: a name and its parameters, still as text."""

    name: str
    params: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        if not self.params:
            return self.name
        return f"{self.name}:{','.join(f'{k}={v}' for k, v in self.params.items())}"


def parse_spec(text: str, what: str) -> Spec:
    """Split 'fat-tree:k=4' into name and parameters; a sentence for each kind of slip."""
    name, colon, rest = text.partition(":")
    if not name.strip():
        raise BadInput(f'{what} "{text}" has no name; write name:key=value,….')
    params: dict[str, str] = {}
    for item in rest.split(",") if colon else ():
        key, equals, value = item.partition("=")
        key, value = key.strip(), value.strip()
        if not equals or not key or not value:
            raise BadInput(f'{what} "{text}": "{item}" is not of the form key=value.')
        if key in params:
            raise BadInput(f'{what} "{text}" gives {key} twice.')
        params[key] = value
    return Spec(name.strip(), params)


def take(spec: Spec, what: str, known: Mapping[str, Callable[[str], object]]) -> dict[str, object]:
    """The parameters of `spec`, each through its parser; unknown keys are refused with the nearest name.

    A parser raises BadInput with its own sentence, to which the key is added, or ValueError for
    'not a number'.
    """
    values: dict[str, object] = {}
    for key, text in spec.params.items():
        if key not in known:
            hint = nearest(key, known) if known else "; it takes none"
            raise BadInput(f'{what} {spec.name} has no parameter "{key}"{hint}.')
        try:
            values[key] = known[key](text)
        except BadInput as error:
            raise BadInput(_named(f"{what} {spec.name}: {key}", key, str(error))) from None
        except ValueError:
            raise BadInput(f'{what} {spec.name}: {key}="{text}" is not a valid value.') from None
    return values


def _named(named: str, key: str, sentence: str) -> str:
    """The sentence of a parser after the name of its parameter, which it may have said by itself."""
    if sentence.startswith(named):
        return sentence
    for said in (f"{key} ", f"the {key} "):
        if sentence.startswith(said):
            return f"{named} {sentence.removeprefix(said)}"
    return f"{named}: {sentence}"


def whole(low: int, high: int) -> Callable[[str], int]:
    """A parser of whole numbers from `low` to `high`."""

    def parse(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            raise BadInput(f'"{text}" is not a whole number from {low} to {high}.') from None
        if not low <= value <= high:
            raise BadInput(f"{text} is outside {low} to {high}.")
        return value

    return parse
