"""--background: flows between random hosts at random times, at a share of what the host links carry."""
from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator, Sequence

from emulator.errors import BadInput
from emulator.specs import Spec, take
from traffic.jobs import numbered_hosts
from traffic.schedule import Background, BackgroundFlow
from traffic.setting import Setting, check_class
from traffic.sizes import PUBLISHED, SizeCdf, read_cdf

MOST_FLOWS = 50_000
OFF = "off"
EXAMPLE = "cdf:websearch,load=0.3"


def resolve_background(text: str, setting: Setting, horizon_s: float) -> Background | None:
    """The flows of 'cdf:NAME,load=0.3,hosts=h1-h4+h9,class=storage,seed=2' until horizon_s; None for 'off'.

    NAME is a published distribution or a file. Sizes are divided by the byte scale. Raises BadInput
    with one sentence for every slip.
    """
    if text == OFF:
        return None
    kind, _, rest = text.partition(":")
    name, _, parameters = rest.partition(",")
    if kind != "cdf" or not name or "=" in name:
        raise BadInput(f'--background "{text}" is not of the form {EXAMPLE}.')
    what = "the background"
    pairs = [item.partition("=") for item in parameters.split(",")] if parameters else []
    wrong = next((key for key, equals, value in pairs if not equals or not value), None)
    if wrong is not None:
        raise BadInput(f'--background "{text}": "{wrong}" is not of the form key=value.')
    keys = [key.strip() for key, _, _ in pairs]
    if twice := next((key for key in keys if keys.count(key) > 1), ""):
        raise BadInput(f'--background "{text}" gives {twice} twice.')
    v = take(Spec(kind, {key.strip(): value.strip() for key, _, value in pairs}), what,
             {"load": _load, "hosts": str, "class": str, "seed": _seed})
    check_class(what, v.get("class", ""), setting)
    graph = setting.graph
    hosts = numbered_hosts(what, v["hosts"].split("+"), graph) if "hosts" in v else list(range(setting.hosts))
    if len(hosts) < 2:
        raise BadInput(f"{what}: one host has nobody to send to; name at least two.")
    load = v.get("load", 0.3)
    flows = tuple(_until(horizon_s, arrivals(read_cdf(name), load, len(hosts), setting,
                                             v.get("seed", setting.seed)), text))
    if not flows:
        raise BadInput(f'--background "{text}": no flow begins within {horizon_s:.4g} s at '
                       f"{setting.rate_bps:.4g} b/s; raise the load or --byte-scale, which divides sizes.")
    return Background(text, tuple(hosts), flows, load, v.get("class", ""))


def arrivals(cdf: SizeCdf, load: float, hosts: int, setting: Setting, seed: int) -> Iterator[BackgroundFlow]:
    """Flows in order of their starts, without end; the same seed gives the same ones.

    Poisson arrivals over all hosts (Alizadeh et al., pFabric, SIGCOMM 2013, 5.1): each host link is offered
    `load` of its rate, headers included. Source and destination are any two hosts.
    """
    rng = random.Random(f"background {seed}")
    mean_bytes = max(1.0, cdf.mean_bytes / setting.byte_scale)
    wire_bits = 8 * mean_bytes * setting.wire.frame_bytes / setting.wire.payload_bytes
    per_s = hosts * load * setting.rate_bps / wire_bits
    now_s = 0.0
    while True:
        now_s += rng.expovariate(per_s)
        source = rng.randrange(hosts)
        destination = (source + 1 + rng.randrange(hosts - 1)) % hosts
        size_bytes = max(1, round(cdf.at(rng.random()) / setting.byte_scale))
        yield BackgroundFlow(now_s, source, destination, size_bytes)


def with_cdf_file(text: str, where: Callable[[str], str]) -> str:
    """A background's SPEC with where(NAME) for a NAME that is not a published distribution's, where that file
    is there; else as it is.
    """
    kind, colon, rest = text.partition(":")
    name, comma, parameters = rest.partition(",")
    if not name or name in PUBLISHED or not os.path.exists(where(name)):
        return text
    return f"{kind}:{where(name)}{comma}{parameters}"


def _until(horizon_s: float, flows: Iterator[BackgroundFlow], text: str) -> Sequence[BackgroundFlow]:
    found: list[BackgroundFlow] = []
    for flow in flows:
        if flow.start_s > horizon_s:
            return found
        if len(found) == MOST_FLOWS:
            raise BadInput(f'--background "{text}" makes more than {MOST_FLOWS} flows until the deadline of '
                           f"{horizon_s:.4g} s; lower load, --rate or --deadline.")
        found.append(flow)
    raise AssertionError("arrivals never end")


def _load(text: str) -> float:
    load = float(text)
    if not 0 < load < 1:
        raise BadInput(f"{text} is not between 0 and 1, a share of the host links' rate.")
    return load


def _seed(text: str) -> int:
    seed = int(text)
    if not 0 <= seed < 2**32:
        raise BadInput(f"{text} is not from 0 to 2^32 - 1.")
    return seed
