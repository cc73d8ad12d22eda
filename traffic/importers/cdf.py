"""Flow-size distributions as files give them: `size percent` (HPCC) or `size n probability` (pFabric).

    0 0
    10000 15
    20000 20
    1000000 100
"""
from __future__ import annotations

from emulator.errors import BadInput
from traffic.importers.text import decimal, read_lines, slip, words_of

LARGEST_BYTES = 1e15


def read_points(path: str) -> tuple[tuple[float, float], ...]:
    """(size in bytes, probability of a flow being no larger), ascending, from 0 to exactly 1.

    Two columns are `size percent` with 100 at the end, or `size probability` with 1; three are those of
    pFabric's files, `size index probability`. Sizes are taken as bytes. Raises BadInput with file, line
    and column where the file is none, or falls.
    """
    points: list[tuple[float, float]] = []
    columns = 0
    number = 0
    for number, text in enumerate(read_lines(path, "a flow-size distribution"), 1):
        words = words_of(text)
        if not words or words[0].startswith("#"):
            continue
        columns = columns or len(words)
        if len(words) != columns or columns not in (2, 3):
            raise slip(path, number, f"{len(words)} columns; a line is 'size percent' or 'size n "
                                     "probability'.")
        size = decimal(path, number, "size", words[0], LARGEST_BYTES)
        share = decimal(path, number, "percent", words[-1], 100)
        if points and (size < points[-1][0] or share < points[-1][1]):
            raise slip(path, number, "sizes and percentages must not fall from line to line.", words[0])
        points.append((size, share))
    if not points:
        raise BadInput(f"{path} has no points; the last line must have 100 percent of the flows.")
    last = points[-1][1]
    if last not in (1.0, 100.0):
        raise slip(path, number, f"the last line must have 100 percent of the flows (or 1), not {last:g}.")
    if points[-1][0] <= 0:
        raise BadInput(f"{path}: the largest flow has 0 bytes.")
    return tuple((size, share / last) for size, share in points)
