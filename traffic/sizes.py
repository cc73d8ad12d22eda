"""Flow-size distributions: the published ones that come with the project, and files of one's own."""
from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from pathlib import Path

from emulator.errors import BadInput, nearest
from traffic.importers.cdf import read_points

FOLDER = Path(__file__).resolve().parent / "cdf"
PUBLISHED = ("websearch", "datamining")


@dataclass(frozen=True)
class SizeCdf:
    """`points` are (bytes, share of flows that are no larger), both ascending, the last share 1.

    Between points sizes are spread evenly, as those generators do.
    """

    name: str
    points: tuple[tuple[float, float], ...]

    @property
    def mean_bytes(self) -> float:
        """Mean size; the first point's share has its size."""
        size, share = self.points[0]
        mean = size * share
        for (low, below), (high, above) in zip(self.points, self.points[1:]):
            mean += (above - below) * (low + high) / 2
        return mean

    def at(self, share: float) -> float:
        """The size that this share of flows (0 to 1) does not exceed."""
        place = bisect_left([above for _, above in self.points], share)
        if place == 0:
            return self.points[0][0]
        (low, below), (high, above) = self.points[place - 1:place + 1]
        return low + (high - low) * (share - below) / (above - below)


def read_cdf(name: str) -> SizeCdf:
    """A published distribution by its name, else the file of that name; BadInput with its line for a slip."""
    path = str(FOLDER / f"{name}.cdf") if name in PUBLISHED else name
    if name not in PUBLISHED and not Path(path).exists():
        raise BadInput(f'there is no flow-size distribution "{name}" and no such file'
                       f"{nearest(name, PUBLISHED)}.")
    return SizeCdf(name, read_points(path))
