"""Events as a user writes them: 'AT KIND TARGET VALUE', such as '3s link l1-s1 down'. Pure.

AT is a time after the start of the replay (`3s`, `200ms`), or a step of the workload with a time after it
or without (`iteration=2`, `phase=all-reduce+500ms`): the first moment at which the step is reached.
"""
from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from emulator.errors import BadInput, nearest
from emulator.specs import whole
from emulator.units import parse_time

MOST_EVENTS, MOST_FLAPS = 200, 50
EXAMPLES = {
    "link": "link A-B down|up", "switch": "switch S down|up", "degrade": "degrade A-B 10%",
    "flap": "flap A-B period=200ms,count=5", "loss": "loss A-B 1e-6|end", "controller": "controller down|up",
    "drain": "drain A-B|S", "undrain": "undrain A-B|S"}
ABOUT = ("AT KIND TARGET …: at a time after the start (3s) or at a step (iteration=2, phase=NAME, "
         "each also +TIME) " + "; ".join(EXAMPLES.values()))


@dataclass(frozen=True)
class When:
    """time_s after the start of the replay, of iteration `iteration` (from 1), or of phase `phase`."""

    time_s: float
    iteration: int | None = None
    phase: str | None = None

    @property
    def timed(self) -> bool:
        """Is it a time on the clock, not a step?"""
        return self.iteration is None and self.phase is None

    @property
    def moment(self) -> tuple[int | None, str | None]:
        """What its time is counted from."""
        return self.iteration, self.phase

    def later(self, time_s: float) -> When:
        """The same, time_s later."""
        return replace(self, time_s=self.time_s + time_s)


@dataclass(frozen=True)
class Event:
    """One thing to do. kind: link, switch, degrade, loss, controller, drain or undrain.

    up: it comes back, or is given back what it had. value: the share of its rate that a degraded link
    keeps, or the bit error rate of a lossy one, None for that of --loss. text: as it was written.
    """

    when: When
    kind: str
    target: str
    text: str
    up: bool = False
    value: float | None = 0.0


def parse_events(texts: Iterable[str]) -> tuple[Event, ...]:
    """All events in the order in which they happen; BadInput with one sentence for the first slip.

    A flap becomes its single downs and ups. Of different steps, and of steps and times, nobody knows which
    comes first: they keep the order in which they were written. Those that count from the same moment are
    put in order among their own places.
    """
    events = [event for text in texts for event in _parse(text)]
    if len(events) > MOST_EVENTS:
        raise BadInput(f"{len(events)} events are more than {MOST_EVENTS}; take some out.")
    following = {moment: iter(sorted((event for event in events if event.when.moment == moment),
                                     key=lambda event: event.when.time_s))
                 for moment in {event.when.moment for event in events}}
    return tuple(next(following[event.when.moment]) for event in events)


def _parse(text: str) -> list[Event]:
    words = text.split()
    if len(words) < 2:
        raise BadInput(f'event "{text}" is not of the form AT KIND TARGET, such as "3s link A-B down".')
    at, kind, rest = words[0], words[1], words[2:]
    if kind not in EXAMPLES:
        raise BadInput(f'event "{text}": there is no event "{kind}"{nearest(kind, EXAMPLES)}.')
    try:
        return _PARSERS[kind](_when(at), kind, rest, " ".join(words))
    except BadInput as error:
        raise BadInput(f'event "{text}": {error}') from None


def _when(text: str) -> When:
    match = re.fullmatch(r"(?:(iteration|phase)=([^+]+)(?:\+(.+))?|(.+))", text)
    if match is None:
        raise BadInput(f'"{text}" is no time and no step; write 3s, iteration=2 or phase=NAME.')
    step, name, after, time = match.groups()
    time_s = parse_time(time or after or "0s", "its time")
    if step == "iteration":
        return When(time_s, iteration=whole(1, 10**6)(name))
    return When(time_s, phase=name)


def _words(kind: str, rest: list[str], count: int) -> list[str]:
    if len(rest) != count:
        raise BadInput(f"it is written {EXAMPLES[kind]}.")
    return rest


def _up(kind: str, word: str) -> bool:
    if word not in ("up", "down"):
        raise BadInput(f'"{word}" is neither up nor down; it is written {EXAMPLES[kind]}.')
    return word == "up"


def _state(when: When, kind: str, rest: list[str], text: str) -> list[Event]:
    target, word = _words(kind, rest, 2)
    return [Event(when, kind, target, text, up=_up(kind, word))]


def _controller(when: When, kind: str, rest: list[str], text: str) -> list[Event]:
    return [Event(when, kind, "controller", text, up=_up(kind, *_words(kind, rest, 1)))]


def _drain(when: When, kind: str, rest: list[str], text: str) -> list[Event]:
    return [Event(when, kind, *_words(kind, rest, 1), text)]


def _degrade(when: When, kind: str, rest: list[str], text: str) -> list[Event]:
    target, share = _words(kind, rest, 2)
    match = re.fullmatch(r"([0-9.]+)%", share)
    value = float(match[1]) / 100 if match and match[1].count(".") <= 1 and match[1] != "." else 0.0
    if not 0 < value <= 1:
        raise BadInput(f'"{share}" is not a share of the rate above 0% and up to 100% (100% gives it back).')
    return [Event(when, kind, target, text, up=value == 1, value=value)]


def _loss(when: When, kind: str, rest: list[str], text: str) -> list[Event]:
    target, rate = _words(kind, rest, 2)
    if rate == "end":
        return [Event(when, kind, target, text, up=True, value=None)]
    try:
        value = float(rate)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1:
        raise BadInput(f'"{rate}" is neither a bit error rate from 0 (none) to 1, such as 1e-6, nor the word '
                       "end.")
    return [Event(when, kind, target, text, up=value == 0, value=value)]


def _flap(when: When, kind: str, rest: list[str], text: str) -> list[Event]:
    """Down for half of each period, then up."""
    if len(rest) < 2:
        raise BadInput(f"it is written {EXAMPLES[kind]}.")
    target, given = rest[0], dict(_pair(word) for word in ",".join(rest[1:]).split(","))
    if set(given) != {"period", "count"}:
        raise BadInput(f"a flap has a period and a count: {EXAMPLES[kind]}.")
    period_s, count = parse_time(given["period"], "its period"), whole(1, MOST_FLAPS)(given["count"])
    if period_s < 0.02:
        raise BadInput(f"a period of {given['period']} is shorter than 20ms, which no link is.")
    return [Event(when.later(period_s * (number + (0.5 if up else 0.0))), "link", target,
                  f"{text} ({'up' if up else 'down'} {number + 1})", up=up)
            for number in range(count) for up in (False, True)]


def _pair(word: str) -> tuple[str, str]:
    key, equals, value = word.partition("=")
    if not equals:
        raise BadInput(f'"{word}" is not of the form key=value.')
    return key, value


_PARSERS: Mapping[str, Callable[[When, str, list[str], str], list[Event]]] = {
    "link": _state, "switch": _state, "controller": _controller, "drain": _drain, "undrain": _drain,
    "degrade": _degrade, "loss": _loss, "flap": _flap}
