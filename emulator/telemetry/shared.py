"""Arrays that two processes see: one memory file, cut up by a layout that both know."""
from __future__ import annotations

import mmap
import os
from collections.abc import Mapping

import numpy as np

Layout = Mapping[str, tuple[str, tuple[int, ...]]]  # name -> (numpy dtype, shape)
_ALIGN = 64


def size_of(layout: Layout) -> int:
    """Bytes that the arrays of a layout take."""
    return sum(_padded(dtype, shape) for dtype, shape in layout.values())


def map_arrays(descriptor: int, layout: Layout) -> dict[str, np.ndarray]:
    """The arrays of `layout` in the file `descriptor`, which is made long enough; zero at first.

    Pages take memory only once they are written, so a layout may be generous.
    """
    size = max(size_of(layout), mmap.PAGESIZE)
    if os.fstat(descriptor).st_size < size:
        os.ftruncate(descriptor, size)
    memory = mmap.mmap(descriptor, size)
    arrays, offset = {}, 0
    for name, (dtype, shape) in layout.items():
        arrays[name] = np.ndarray(tuple(shape), dtype, memory, offset)
        offset += _padded(dtype, shape)
    return arrays


def _padded(dtype: str, shape: tuple[int, ...]) -> int:
    size = np.dtype(dtype).itemsize
    for extent in shape:
        size *= extent
    return -(-size // _ALIGN) * _ALIGN
