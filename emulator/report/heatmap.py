"""A matrix of bytes between ranks as a picture: SVG, written by hand, legible in any browser."""
from __future__ import annotations

from collections.abc import Sequence
from xml.sax.saxutils import escape

import numpy

from emulator.units import show_size

CELL_PX, MARGIN_PX, LARGEST_PX = 22, 70, 1400
_LIGHT, _DARK = (255, 250, 235), (150, 20, 40)


def heatmap(matrix: numpy.ndarray, labels: Sequence[str], title: str) -> str:
    """Rows send, columns receive; the darker, the more. A cell tells its bytes to who points at it."""
    ranks, most = len(labels), max(int(matrix.max(initial=0)), 1)
    cell = max(2, min(CELL_PX, LARGEST_PX // max(ranks, 1)))
    side = ranks * cell
    width, height = MARGIN_PX + side + 110, MARGIN_PX + side + 20
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
             'font-family="sans-serif" font-size="11">',
             f'<text x="8" y="18" font-size="14">{escape(title)}</text>',
             f'<text x="{MARGIN_PX}" y="36">to rank</text><text x="8" y="{MARGIN_PX - 6}">from rank</text>',
             f'<rect x="{MARGIN_PX}" y="{MARGIN_PX}" width="{side}" height="{side}" fill="{_colour(0)}"/>']
    step = max(1, -(-14 // cell))  # a label needs 14 pixels
    for place in range(0, ranks, step):
        middle, text = MARGIN_PX + place * cell + cell / 2, escape(labels[place])
        parts.append(f'<text x="{MARGIN_PX - 4}" y="{middle + 4}" text-anchor="end">{text}</text>')
        parts.append(f'<text transform="translate({middle + 4},{MARGIN_PX - 4}) rotate(-60)">{text}</text>')
    for row, column in zip(*(found.tolist() for found in numpy.nonzero(matrix))):
        amount = int(matrix[row, column])
        parts.append(f'<rect x="{MARGIN_PX + column * cell}" y="{MARGIN_PX + row * cell}" width="{cell}" '
                     f'height="{cell}" fill="{_colour(amount / most)}"><title>{escape(labels[row])} to '
                     f'{escape(labels[column])}: {show_size(amount)}</title></rect>')
    for place in range(5):  # the scale
        share, y = 1 - place / 4, MARGIN_PX + place * 22
        x = MARGIN_PX + side + 12
        parts.append(f'<rect x="{x}" y="{y}" width="18" height="22" fill="{_colour(share)}"/>'
                     f'<text x="{x + 23}" y="{y + 15}">{show_size(share * most)}</text>')
    return "\n".join([*parts, "</svg>\n"])


def _colour(share: float) -> str:
    mixed = (round(light + share * (dark - light)) for light, dark in zip(_LIGHT, _DARK))
    return "#{:02x}{:02x}{:02x}".format(*mixed)
